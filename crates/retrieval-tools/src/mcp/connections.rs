//! Connections of an HTTP server on the loopback address: how many there may be, and how long each may take.
//!
//! A client is a stranger until one of its requests was admitted. Strangers share a small number of places, and a
//! further one takes the place of the oldest, so that no number of silent strangers keeps a client with the token out.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::io::{self, IoSlice};
use std::net::Ipv4Addr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONNECTION, HOST, HeaderValue, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;

/// Time after which a connection without a complete request is closed.
pub(super) const IDLE: Duration = Duration::from_secs(60);

/// Maximum length of a request's first line and headers, in bytes.
const MAX_HEAD_BYTES: usize = 32 << 10;

/// Interval at which a connection's limits are looked at.
const LOOKING: Duration = Duration::from_millis(250);

/// Limits of a server's connections.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Maximum number of strangers. A further one closes the connection of the oldest.
    strangers: usize,
    /// Maximum number of other connections. The requests of further ones wait.
    admitted: usize,
    /// Time in which a stranger must send a request that is admitted.
    introduction: Duration,
    /// Time in which a client must take some bytes of an answer.
    writing: Duration,
    /// The same time once the server stops.
    stopping: Duration,
}

const LIMITS: Limits = Limits {
    strangers: 64,
    admitted: 128,
    introduction: Duration::from_secs(5),
    writing: Duration::from_secs(30),
    stopping: Duration::from_secs(1),
};

/// The connection of a request, which is an extension of each request that [`accept`] passes on.
#[derive(Debug, Clone)]
pub struct Connection(Arc<Client>);

impl Connection {
    /// Counts the client as one that may use the server, from this request on. Waits for a place if there are too many.
    pub async fn admit(&self) {
        let client = &self.0;
        if !client.is_admitted.swap(true, Ordering::SeqCst) {
            client.places.forget(client);
            let place = Arc::clone(&client.places.admitted).acquire_owned().await;
            *lock(&client.place) = place.ok();
        }
    }
}

/// Returns whether a request names this machine as its only host, with any port, and does not come from a web page. The
/// port may be one that is forwarded to this machine's.
pub fn is_local<B>(request: &Request<B>) -> bool {
    let is_own = |host: &str| {
        let names = ["127.0.0.1", "localhost", "[::1]"];
        let mut rest = names.iter().filter_map(|name| {
            let (found, rest) = host.split_at_checked(name.len())?;
            found.eq_ignore_ascii_case(name).then_some(rest)
        });
        rest.any(|rest| match rest.strip_prefix(':') {
            None => rest.is_empty(),
            Some(port) => port.bytes().all(|c| c.is_ascii_digit()) && port.parse::<u16>().is_ok(),
        })
    };
    let headers = request.headers();
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let authority = request.uri().authority().map(Authority::as_str);
    host.is_some_and(is_own)
        && authority.is_none_or(is_own)
        && hosts.next().is_none()
        && !headers.contains_key(ORIGIN)
}

/// Listens at a port of the loopback address, or at a free one for 0.
///
/// # Errors
/// The error of the system, for example if another process uses the port.
pub async fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
}

/// Serves clients until `stop` is ready. Then closes all connections without a request, and waits up to `grace` for the
/// answers to the others.
///
/// A client counts as a stranger until [`Connection::admit`] was called for one of its requests. A connection is closed
/// after a request that was not admitted, after five seconds without one that was, and if its client does not take an
/// answer. There are at most 64 strangers: a further one closes the connection of the oldest.
pub async fn accept(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()>,
    grace: Duration,
) {
    let places = Arc::new(Places::new(LIMITS));
    let (stopping, stopped) = watch::channel(false);
    let (open, mut closed) = mpsc::channel::<()>(1);
    let accepting = async {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Too many files are open, or the client has already disconnected.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let client = places.enter();
            let (router, stopped, open) = (router.clone(), stopped.clone(), open.clone());
            tokio::spawn(async move {
                serve(stream, router, client, stopped).await;
                drop(open);
            });
            // A burst of connections leaves the first ones the time to be read.
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = stop => {}
        () = accepting => {}
    }
    drop(listener);
    drop(open);
    let _ = stopping.send(true);
    // A request that still runs then has taken its whole time.
    let _ = tokio::time::timeout(grace, closed.recv()).await;
}

/// The places of a server's connections.
#[derive(Debug)]
struct Places {
    limits: Limits,
    /// The oldest first.
    strangers: Mutex<VecDeque<Arc<Client>>>,
    admitted: Arc<Semaphore>,
}

impl Places {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            strangers: Mutex::default(),
            admitted: Arc::new(Semaphore::new(limits.admitted)),
        }
    }

    /// Adds a stranger. Closes the connection of the oldest if there are too many.
    fn enter(self: &Arc<Self>) -> Arc<Client> {
        let client = Arc::new(Client {
            places: Arc::clone(self),
            since: Instant::now(),
            is_admitted: AtomicBool::new(false),
            place: Mutex::default(),
            pushed_out: Notify::new(),
            stalled: Mutex::default(),
        });
        let mut strangers = lock(&self.strangers);
        strangers.push_back(Arc::clone(&client));
        if strangers.len() > self.limits.strangers
            && let Some(oldest) = strangers.pop_front()
        {
            oldest.pushed_out.notify_one();
        }
        client
    }

    /// Takes a client out of the strangers.
    fn forget(&self, client: &Arc<Client>) {
        lock(&self.strangers).retain(|other| !Arc::ptr_eq(other, client));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State of a connection.
struct Client {
    places: Arc<Places>,
    since: Instant,
    is_admitted: AtomicBool,
    place: Mutex<Option<OwnedSemaphorePermit>>,
    pushed_out: Notify,
    /// Time since when the client takes no bytes of an answer.
    stalled: Mutex<Option<Instant>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("is_admitted", &self.is_admitted)
            .finish_non_exhaustive()
    }
}

impl Client {
    fn is_admitted(&self) -> bool {
        self.is_admitted.load(Ordering::SeqCst)
    }

    /// Returns whether the connection's time is over.
    fn is_late(&self, is_stopping: bool) -> bool {
        let limits = self.places.limits;
        let writing = match is_stopping {
            true => limits.stopping,
            false => limits.writing,
        };
        let stalled = *lock(&self.stalled);
        stalled.is_some_and(|since| since.elapsed() >= writing)
            || !self.is_admitted() && (is_stopping || self.since.elapsed() >= limits.introduction)
    }
}

/// Serves one connection until it ends or its time is over.
async fn serve<S>(
    stream: S,
    router: Router,
    client: Arc<Client>,
    mut stopped: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (routes, asking) = (TowerToHyperService::new(router), Arc::clone(&client));
    let service = service_fn(move |mut request: Request<Incoming>| {
        let asking = Arc::clone(&asking);
        request
            .extensions_mut()
            .insert(Connection(Arc::clone(&asking)));
        let answered = routes.call(request);
        async move {
            let mut response: Response<Body> = answered.await?;
            if !asking.is_admitted() {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
            }
            Ok::<_, Infallible>(response)
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .max_buf_size(MAX_HEAD_BYTES);
    let stream = TokioIo::new(Watched {
        stream,
        client: Arc::clone(&client),
    });
    let mut connection = pin!(http.serve_connection(stream, service));
    let mut is_stopping = false;
    loop {
        tokio::select! {
            // Nobody receives the error of a connection.
            _ = connection.as_mut() => break,
            () = client.pushed_out.notified() => break,
            _ = stopped.changed(), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            () = tokio::time::sleep(LOOKING) => {}
        }
        if client.is_late(is_stopping) {
            break;
        }
    }
    client.places.forget(&client);
}

/// A stream that records since when its client takes no bytes.
struct Watched<S> {
    stream: S,
    client: Arc<Client>,
}

impl<S> Watched<S> {
    fn record<T>(&self, polled: Poll<T>) -> Poll<T> {
        let mut stalled = lock(&self.client.stalled);
        match &polled {
            Poll::Ready(_) => *stalled = None,
            Poll::Pending => drop(stalled.get_or_insert_with(Instant::now)),
        }
        polled
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.record(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.record(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use axum::http::StatusCode;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::task::JoinHandle;

    /// Answers `/` with the token, and with a long text at `/long`. Refuses other requests.
    fn router() -> Router {
        async fn admitted(
            request: axum::extract::Request,
            next: axum::middleware::Next,
        ) -> Response<Body> {
            use axum::response::IntoResponse as _;
            if !request.headers().contains_key("token") {
                return StatusCode::UNAUTHORIZED.into_response();
            }
            if let Some(connection) = request.extensions().get::<Connection>() {
                connection.admit().await;
            }
            next.run(request).await
        }
        Router::new()
            .route("/", get(async || "hello"))
            .route("/long", get(async || "long ".repeat(1_000)))
            .layer(axum::middleware::from_fn(admitted))
    }

    struct World {
        places: Arc<Places>,
        stop: watch::Sender<bool>,
    }

    impl World {
        fn new(limits: Limits) -> Self {
            Self {
                places: Arc::new(Places::new(limits)),
                stop: watch::channel(false).0,
            }
        }

        /// Connects a client by way of a buffer of a few bytes.
        fn connect(&self) -> (DuplexStream, JoinHandle<()>) {
            self.connect_by(64)
        }

        fn connect_by(&self, bytes: usize) -> (DuplexStream, JoinHandle<()>) {
            let (here, there) = duplex(bytes);
            let (client, stopped) = (self.places.enter(), self.stop.subscribe());
            (here, tokio::spawn(serve(there, router(), client, stopped)))
        }
    }

    async fn ask(stream: &mut DuplexStream, path: &str, header: &str) {
        let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\n{header}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
    }

    /// Reads the head of an answer and its five bytes.
    async fn greeted(stream: &mut DuplexStream) -> bool {
        let mut seen = Vec::new();
        while !seen.ends_with(b"hello") {
            match stream.read_u8().await {
                Ok(byte) => seen.push(byte),
                Err(_) => return false,
            }
        }
        true
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_keep_no_client_out() {
        let world = World::new(Limits {
            strangers: 3,
            introduction: Duration::from_secs(3_600),
            ..LIMITS
        });
        let mut silent: Vec<_> = (0..10).map(|_| world.connect()).collect();
        for (stream, _) in &mut silent {
            // The connections of the oldest are closed.
            let _ = stream.write_all(b"GET / HT").await;
        }
        let (mut client, _) = world.connect();
        ask(&mut client, "/", "token: 1\r\n").await;
        assert!(greeted(&mut client).await);
        // It is no stranger any more: further ones do not push it out.
        let more: Vec<_> = (0..10).map(|_| world.connect()).collect();
        ask(&mut client, "/", "token: 1\r\n").await;
        assert!(greeted(&mut client).await);
        assert_eq!(lock(&world.places.strangers).len(), 3);
        drop((silent, more));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_request_is_the_last_of_its_connection() {
        let world = World::new(LIMITS);
        let (mut client, served) = world.connect_by(8_192);
        for _ in 0..100 {
            // The server has closed it before the last one.
            if client
                .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                .await
                .is_err()
            {
                break;
            }
        }
        let mut told = String::new();
        client.read_to_string(&mut told).await.unwrap();
        assert_eq!(told.matches("HTTP/1.1 401").count(), 1, "{told}");
        assert!(told.to_lowercase().contains("connection: close"), "{told}");
        served.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn each_connection_has_its_time() {
        let world = World::new(LIMITS);
        let begun = Instant::now();
        // A stranger that sends a byte a second.
        let (mut dripping, served) = world.connect();
        while dripping.write_u8(b'G').await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        served.await.unwrap();
        let took = begun.elapsed();
        assert!(
            took >= LIMITS.introduction && took < 2 * LIMITS.introduction,
            "{took:?}"
        );
        // A client between two requests.
        let (mut idle, served) = world.connect();
        ask(&mut idle, "/", "token: 1\r\n").await;
        assert!(greeted(&mut idle).await);
        let begun = Instant::now();
        served.await.unwrap();
        let took = begun.elapsed();
        assert!(took >= IDLE && took < 2 * IDLE, "{took:?}");
        // A client that does not read its answer, and one that reads it slowly.
        let begun = Instant::now();
        let (mut deaf, served) = world.connect();
        ask(&mut deaf, "/long", "token: 1\r\n").await;
        served.await.unwrap();
        let took = begun.elapsed();
        assert!(
            took >= LIMITS.writing && took < 2 * LIMITS.writing,
            "{took:?}"
        );
        let (mut slow, served) = world.connect();
        ask(&mut slow, "/long", "token: 1\r\nConnection: close\r\n").await;
        let (mut told, mut some) = (0, [0; 64]);
        while let Ok(read @ 1..) = slow.read(&mut some).await {
            told += read;
            tokio::time::sleep(LIMITS.writing / 2).await;
        }
        assert!(told > 5_000, "{told}");
        served.await.unwrap();
        assert_eq!(world.places.admitted.available_permits(), LIMITS.admitted);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_stops_waits_for_nobody() {
        let world = World::new(LIMITS);
        let (_silent, first) = world.connect();
        let (mut idle, second) = world.connect();
        ask(&mut idle, "/", "token: 1\r\n").await;
        assert!(greeted(&mut idle).await);
        let (mut deaf, third) = world.connect();
        ask(&mut deaf, "/long", "token: 1\r\n").await;
        // Its answer has begun.
        deaf.read_u8().await.unwrap();
        let begun = Instant::now();
        world.stop.send(true).unwrap();
        for served in [first, second, third] {
            served.await.unwrap();
        }
        assert!(
            begun.elapsed() <= Duration::from_secs(3),
            "{:?}",
            begun.elapsed()
        );
    }

    #[test]
    fn only_this_machine_is_local() {
        let request = |uri: &str, lines: &[(&str, &str)]| {
            let mut request = Request::builder().uri(uri);
            for (name, value) in lines {
                request = request.header(*name, *value);
            }
            request.body(()).unwrap()
        };
        for host in [
            "127.0.0.1:80",
            "localhost",
            "LOCALHOST:80",
            "LocalHost",
            "[::1]:80",
            "localhost:9999",
        ] {
            assert!(is_local(&request("/", &[("host", host)])), "{host}");
        }
        for lines in [
            &[][..],
            &[("host", "evil.example")],
            &[("host", "127.0.0.1.evil.example")],
            &[("host", "127.0.0.1"), ("host", "127.0.0.1")],
            &[("host", "localhost"), ("host", "evil.example")],
            &[("host", "localhost"), ("origin", "http://localhost")],
        ] {
            assert!(!is_local(&request("/", lines)), "{lines:?}");
        }
        for host in [
            "[::1].evil.example",
            "user@127.0.0.1",
            "evil.example@localhost:80",
            "127.0.0.1:80x",
            "127.0.0.1:+80",
            "127.0.0.1:",
            "localhost.",
        ] {
            assert!(!is_local(&request("/", &[("host", host)])), "{host}");
        }
        let local = [("host", "127.0.0.1:80")];
        assert!(is_local(&request("http://localhost:80/", &local)));
        assert!(!is_local(&request("http://evil.example/", &local)));
    }
}
