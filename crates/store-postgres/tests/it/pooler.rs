//! Tests with pgbouncer, which gives out connections of the server for one transaction.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use memory_store::{ErrorKind, Maintain as _};
use store_conformance::{Chat, sound};
use store_postgres::{PostgresOptions, PostgresStore};

use crate::common::{Schemas, is_required, server, with};
use crate::writers::{append_all, complete};

/// A pgbouncer before the server for tests, with four connections. It ends with the test.
struct Pooler {
    process: Child,
    folder: PathBuf,
}

/// Ends pgbouncer when its input ends, which it does however the test ends. It does not run as root.
const SCRIPT: &str = r#"
as=
[ "$(id -u)" != 0 ] || { as='setpriv --reuid=postgres --regid=postgres --clear-groups'; chown -R postgres "$1"; }
$as "$2" --quiet "$1/pgbouncer.ini" &
read -r _
kill $!
wait
"#;

impl Pooler {
    /// Starts a pooler. Returns it with its URL, or `None` if pgbouncer is not installed.
    fn start(server: &str) -> Option<(Self, String)> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        folders.push("/usr/sbin".into());
        let mut programs = folders.iter().map(|folder| folder.join("pgbouncer"));
        let Some(program) = programs.find(|program| program.is_file()) else {
            assert!(!is_required(), "pgbouncer is not there: install it");
            eprintln!("left out: there is no pgbouncer");
            return None;
        };
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let (scheme, place) = server.split_once("://").unwrap();
        let (user, place) = place.split_once('@').unwrap();
        let (address, database) = place.split_once('/').unwrap();
        let (host, server_port) = address.split_once(':').unwrap_or((address, "5432"));
        let folder = format!("agent-memory-pgbouncer-{}-{port}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir(&folder).unwrap();
        let name = user.split(':').next().unwrap();
        let settings = format!(
            "[databases]\n* = host={host} port={server_port} user={name}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
             default_pool_size = 4\nmax_client_conn = 200\n"
        );
        std::fs::write(folder.join("pgbouncer.ini"), settings).unwrap();
        let mut process = Command::new("sh");
        process.args(["-c", SCRIPT, "sh"]).arg(&folder).arg(program);
        let process = process.stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
        let pooler = Self {
            process: process.unwrap(),
            folder,
        };
        for _ in 0..200 {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                let url = format!("{scheme}://{user}@127.0.0.1:{port}/{database}");
                return Some((pooler, url));
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("pgbouncer did not start");
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        if let Some(mut input) = self.process.stdin.take() {
            let _ = input.write_all(b"\n");
        }
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The parameter that a store needs at such a pooler.
const POOLED: &str = "statement-cache-capacity=0";

#[tokio::test(flavor = "multi_thread")]
async fn random_operations_through_a_pooler_agree_with_the_reference() {
    let Some(server) = server() else { return };
    let Some((_pooler, url)) = Pooler::start(&server) else {
        return;
    };
    let schemas = Schemas::new(&server).through(with(&url, POOLED));
    store_conformance::random_ops(&schemas, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_that_write_through_a_pooler_lose_nothing() {
    let Some(server) = server() else { return };
    let Some((_pooler, url)) = Pooler::start(&server) else {
        return;
    };
    let schemas = Schemas::new(&server).through(with(&url, POOLED));
    let (url, store) = schemas.store().await;
    let chat = Chat::root(&store, "shared").await;
    let other = Chat::root(&store, "other").await;
    let options = PostgresOptions::new().with_max_connections(2);
    let ids = [chat.id, other.id].repeat(4);
    append_all(&url, &options, ids).await;
    complete(chat, &[0, 2, 4, 6]).await;
    complete(other, &[1, 3, 5, 7]).await;
    assert_eq!(store.check().await.unwrap(), []);
    sound(&store).await;
}

#[tokio::test]
async fn a_pooler_without_its_parameter_is_named() {
    let Some(server) = server() else { return };
    let Some((_pooler, url)) = Pooler::start(&server) else {
        return;
    };
    let error = PostgresStore::open(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error:?}");
    assert!(
        error.to_string().contains("add statement-cache-capacity=0"),
        "{error}"
    );
}
