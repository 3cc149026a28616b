//! A connection of one message a line, with an answer to each request.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

use super::request::{self, HEAD_BYTES, MAX_REQUEST_BYTES, Unreadable};

/// Time for answering requests after the client has closed its side.
pub(super) const CLOSING: Duration = Duration::from_secs(1);

/// Reads and writes messages, one a line. An unreadable or too long line is answered with an error; the rest of a too
/// long line is skipped.
pub(super) struct Lines<R, W> {
    read: BufReader<R>,
    /// The line so far, up to its end or its limit.
    line: Vec<u8>,
    /// Whether the rest of the line is skipped.
    is_skipping: bool,
    write: Arc<Mutex<Option<W>>>,
    /// An error being written. No more is read until it is written.
    replying: Option<JoinHandle<()>>,
    closed: Option<watch::Sender<bool>>,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Returns a connection, and a receiver of `true` when the client has closed its side and answers are too late.
    pub(super) fn new(read: R, write: W) -> (Self, watch::Receiver<bool>) {
        let (sender, receiver) = watch::channel(false);
        let lines = Self {
            read: BufReader::new(read),
            line: Vec::new(),
            is_skipping: false,
            write: Arc::new(Mutex::new(Some(write))),
            replying: None,
            closed: Some(sender),
        };
        (lines, receiver)
    }

    /// Reads to the end of a line. Returns whether the line is too long; `None` at the end of the connection.
    ///
    /// The bytes read so far are kept if the future is dropped.
    async fn next_line(&mut self) -> Option<bool> {
        loop {
            let available = self.read.fill_buf().await.ok()?;
            if available.is_empty() {
                // Half a line is a request all the same.
                return (self.is_skipping || !self.line.is_empty()).then_some(self.is_skipping);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = available.get(..end.unwrap_or(available.len()));
            let part = part.unwrap_or_default();
            if !self.is_skipping {
                self.line.extend_from_slice(part);
                if self.line.len() > MAX_REQUEST_BYTES {
                    self.is_skipping = true;
                    self.line.truncate(HEAD_BYTES);
                    self.line.shrink_to_fit();
                }
            }
            let consumed = part.len() + usize::from(end.is_some());
            self.read.consume(consumed);
            if end.is_some() {
                return Some(self.is_skipping);
            }
        }
    }

    /// Sends an error from a separate task, so that it is written even if reading is cancelled meanwhile.
    fn reply(&mut self, unreadable: Unreadable) {
        let message = ServerJsonRpcMessage::error(*unreadable.error, unreadable.id);
        let sending = self.send(message);
        self.replying = Some(tokio::spawn(async move {
            // A client that has gone needs no error.
            let _ = sending.await;
        }));
    }

    /// Signals after a while that the client has closed its side.
    fn close_soon(&mut self) {
        if let Some(closed) = self.closed.take() {
            tokio::spawn(async move {
                tokio::time::sleep(CLOSING).await;
                closed.send_replace(true);
            });
        }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let write = Arc::clone(&self.write);
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            let write = write.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            write.write_all(&line).await?;
            write.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(replying) = &mut self.replying {
                let _ = replying.await;
                self.replying = None;
            }
            let Some(is_too_long) = self.next_line().await else {
                self.close_soon();
                return None;
            };
            let read = match is_too_long {
                true => Err(Unreadable::too_long(&self.line)),
                false => request::read(&self.line),
            };
            self.is_skipping = false;
            self.line.clear();
            // A long line leaves no room behind.
            self.line.shrink_to(HEAD_BYTES);
            match read {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(unreadable) => self.reply(unreadable),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.close_soon();
        self.write.lock().await.take();
        Ok(())
    }
}
