//! Runs a command with a PostgreSQL server of its own, in a temporary folder.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// Variable in which the command finds the URL of the database.
const URL: &str = "AGENT_MEMORY_TEST_POSTGRES_URL";
/// Variable that names the folder with the server's programs.
const BIN: &str = "AGENT_MEMORY_PG_BIN";

/// Starts a server and prints a line. Stops it and removes its folder when the input ends, which it does however the task
/// ends. Nothing is synchronized with the disk. One role has to give a password.
const SERVER: &str = r#"
set -eu
bin=$1 port=$2 as=
folder=$(mktemp -d "${TMPDIR:-/tmp}/agent-memory-postgres-XXXXXX")
cd "$folder"
if [ "$(id -u)" = 0 ]; then
  as='setpriv --reuid=postgres --regid=postgres --clear-groups'
  chown postgres .
fi
trap '$as "$bin/pg_ctl" --pgdata=data --mode=immediate --silent stop 2>/dev/null || :; cd /; rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
$as "$bin/initdb" --pgdata=data --username=postgres --encoding=UTF8 --locale=C.UTF-8 --locale-provider=icu \
  --icu-locale=en-US --auth=trust --no-sync >/dev/null
echo 'host all agent_memory_password 127.0.0.1/32 scram-sha-256' | cat - data/pg_hba.conf >hba
cat hba >data/pg_hba.conf
$as "$bin/pg_ctl" --pgdata=data --log=data/log --silent --options="-p $port -k $folder -h 127.0.0.1 -c fsync=off \
  -c full_page_writes=off -c synchronous_commit=off -c max_connections=200" start || { cat data/log >&2; exit 1; }
"$bin/createdb" --host="$folder" --port="$port" --username=postgres agent_memory
echo started
read -r _ || :
"#;

/// Runs a command with the URL of a new server. Without a command, prints the URL and waits. The server ends with this
/// process.
pub(crate) fn run(command: &[String]) -> anyhow::Result<()> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut server = Command::new("sh");
    server.args(["-c", SERVER, "sh"]).arg(programs()?);
    server.arg(port.to_string());
    server.stdin(Stdio::piped()).stdout(Stdio::piped());
    // The terminal interrupts the command and this task alone.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut server, 0);
    let mut server = server.spawn().context("run sh")?;
    let input = server.stdin.take();
    let mut started = String::new();
    let output = server.stdout.take().context("the output of sh")?;
    BufReader::new(output).read_line(&mut started)?;
    ensure!(!started.is_empty(), "the server did not start: see above");
    let url = format!("postgres://postgres@127.0.0.1:{port}/agent_memory");
    let Some((program, arguments)) = command.split_first() else {
        println!("{url}");
        server.wait()?;
        return Ok(());
    };
    let mut command = Command::new(program);
    command.args(arguments).env(URL, url);
    // Cargo sets these for this program. Build scripts that read them would run again for every other package.
    for (name, _) in std::env::vars() {
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    let status = command.status();
    drop(input);
    server.wait()?;
    let status = status.with_context(|| format!("run {program}"))?;
    std::process::exit(status.code().unwrap_or(1))
}

/// Returns the folder with the server's programs: the one that the variable names, the one in the path, or the latest
/// of Debian's.
pub(crate) fn programs() -> anyhow::Result<PathBuf> {
    if let Some(folder) = std::env::var_os(BIN) {
        return Ok(folder.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A link in the path leads to the folder with all of them.
    let in_path = std::env::split_paths(&path).find_map(|folder| {
        let program = folder.join("initdb").canonicalize().ok()?;
        program.parent().map(Path::to_owned)
    });
    in_path
        .or_else(|| newest(Path::new("/usr/lib/postgresql")))
        .with_context(|| {
            format!(
                "no PostgreSQL server was found: install one (Debian: postgresql), or name the folder with initdb in {BIN}"
            )
        })
}

/// Returns the programs of the latest version in a folder.
fn newest(versions: &Path) -> Option<PathBuf> {
    let numbers = std::fs::read_dir(versions).ok()?.flatten();
    let numbers = numbers.filter_map(|version| version.file_name().to_str()?.parse::<u32>().ok());
    let folders = numbers.map(|number| (number, versions.join(format!("{number}/bin"))));
    let there = folders.filter(|(_, folder)| folder.join("initdb").is_file());
    there.max().map(|(_, folder)| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_with_a_server_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(newest(&folder.path().join("none")), None);
        for (version, has_server) in [("9", true), ("15", true), ("17", false), ("doc", true)] {
            let bin = folder.path().join(version).join("bin");
            std::fs::create_dir_all(&bin).unwrap();
            if has_server {
                std::fs::write(bin.join("initdb"), "").unwrap();
            }
        }
        assert_eq!(newest(folder.path()), Some(folder.path().join("15/bin")));
    }
}
