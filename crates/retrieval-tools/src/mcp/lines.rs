//! A connection with one message per line, on which every request gets an answer.

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

/// Time in which remaining requests are answered after the client has closed the connection.
pub(super) const CLOSING: Duration = Duration::from_secs(1);

/// A connection that reads and writes messages, one per line. A line that cannot be parsed or is too long is answered
/// with an error. The rest of a line that is too long is skipped.
pub(super) struct Lines<R, W> {
    read: BufReader<R>,
    /// The bytes of the current line that were read so far, up to the maximum length.
    line: Vec<u8>,
    /// Whether the rest of the current line is skipped, because the line is too long.
    is_skipping: bool,
    write: Arc<Mutex<Option<W>>>,
    /// Task that writes an error. The next line is read only after this task has ended.
    replying: Option<JoinHandle<()>>,
    closed: Option<watch::Sender<bool>>,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Returns a connection and a receiver. The receiver gets `true` when the client has closed the connection and the
    /// time for answers has ended.
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

    /// Reads to the end of a line. Returns whether the line is too long. `None` at the end of the connection.
    ///
    /// The bytes read so far are kept if the future is dropped.
    async fn next_line(&mut self) -> Option<bool> {
        loop {
            let available = self.read.fill_buf().await.ok()?;
            if available.is_empty() {
                // A last line without a line break is a request as well.
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
            // A client that has disconnected needs no error.
            let _ = sending.await;
        }));
    }

    /// Signals, after a delay, that the client has closed the connection.
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
            // Frees the memory of a long line.
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
