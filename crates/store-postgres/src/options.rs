//! Options for opening a store in PostgreSQL.

use std::str::FromStr as _;
use std::time::Duration;

use memory_store::Result;
use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;

use crate::error;

/// Options for opening a store in PostgreSQL.
///
/// By default the tables are in the schema `agent_memory`, and are created if they do not exist.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    pub(crate) max_connections: u32,
    pub(crate) timeout: Duration,
    pub(crate) lock_timeout: Duration,
    pub(crate) partitions: u32,
    pub(crate) read_only: bool,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            max_connections: 8,
            timeout: Self::TIMEOUT,
            lock_timeout: Self::LOCK_TIMEOUT,
            partitions: 0,
            read_only: false,
        }
    }
}

impl PostgresOptions {
    /// Default maximum time of one SQL statement, and of waiting for a connection: thirty seconds.
    pub const TIMEOUT: Duration = Duration::from_secs(30);
    /// Default lock time-out: ten seconds.
    pub const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of connections that the store opens. The default is 8, the minimum 1.
    pub fn with_max_connections(mut self, connections: u32) -> Self {
        self.max_connections = connections.max(1);
        self
    }

    /// Sets the maximum time of one SQL statement, of waiting for a connection, and of repeating reads while the server
    /// cannot be reached. The maximum is one day.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.min(Duration::from_secs(86_400));
        self
    }

    /// Sets the maximum time that a write waits for other writes to the same family of conversations. After this time
    /// it fails with `Busy`. The maximum is one day.
    pub fn with_lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout.min(Duration::from_secs(86_400));
        self
    }

    /// Sets the number of partitions of each table if the tables are created now. A family of conversations is in one
    /// partition. The default is 0: no partitions.
    pub fn with_partitions(mut self, partitions: u32) -> Self {
        self.partitions = partitions;
        self
    }

    /// Opens an existing database for reading only. The store does not create or migrate the tables, and every write
    /// fails with `ReadOnly`.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }
}

/// Parameters of a URL that the driver reads.
const PARAMETERS: [&str; 18] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// A URL with the parameters that this crate reads.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) connect: PgConnectOptions,
    pub(crate) schema: String,
    /// Number of partitions of each table that is created.
    pub(crate) partitions: u32,
    /// Whether connections are given out for one transaction.
    pub(crate) pooled: bool,
    /// The URL without a password.
    pub(crate) place: String,
}

impl Target {
    pub(crate) fn parse(url: &str, options: &PostgresOptions) -> Result<Self> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut theirs = Vec::new();
        let (mut schema, mut partitions) = ("agent_memory", options.partitions);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("schema", name) => schema = name,
                ("partitions", number) => {
                    let number = number.parse().map_err(|_| error::parameter(pair));
                    partitions = number?;
                }
                (name, _) if PARAMETERS.contains(&name) || name.starts_with("options[") => {
                    theirs.push(pair);
                }
                (name, _) => return Err(error::parameter(name)),
            }
        }
        let schema = schema.to_owned();
        let is_name = |name: &str| {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            !name.is_empty() && name.len() <= 63 && name.chars().all(plain)
        };
        if !is_name(&schema)
            || schema.starts_with("pg_")
            || schema.starts_with(|c: char| c.is_ascii_digit())
        {
            return Err(error::schema_name(&schema));
        }
        let pooled = theirs.contains(&"statement-cache-capacity=0");
        let plain = match theirs.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{}", theirs.join("&")),
        };
        if !["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| base.starts_with(scheme))
        {
            return Err(error::url("another scheme"));
        }
        let connect = PgConnectOptions::from_str(&plain).map_err(error::url)?;
        let connect = match connect.get_application_name() {
            Some(_) => connect,
            None => connect.application_name("agent-memory"),
        };
        // A pooler refuses parameters that it does not know.
        let connect = connect.extra_float_digits(None).disable_statement_logging();
        let place = place(&connect, &schema);
        let mut target = Self {
            connect,
            schema,
            partitions,
            pooled,
            place,
        };
        if !pooled {
            let settings = target.settings(options);
            let settings = settings.iter().map(|(name, value)| (*name, value));
            target.connect = target.connect.options(settings);
        }
        Ok(target)
    }

    /// Returns the settings of a session: of each transaction if connections are given out for one.
    pub(crate) fn settings(&self, options: &PostgresOptions) -> Vec<(&'static str, String)> {
        vec![
            ("search_path", self.schema.clone()),
            ("statement_timeout", options.timeout.as_millis().to_string()),
            ("lock_timeout", options.lock_timeout.as_millis().to_string()),
        ]
    }
}

/// Returns a URL without a password.
fn place(connect: &PgConnectOptions, schema: &str) -> String {
    let host = match connect.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", connect.get_host(), connect.get_port()),
    };
    let user = connect.get_username();
    let database = connect.get_database().unwrap_or(user);
    format!("postgres://{user}@{host}/{database}?schema={schema}")
}
