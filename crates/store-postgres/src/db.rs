//! A database on a server, on which the store runs.

use std::time::Duration;

use memory_store::{Usage, Violation};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};
use store_sql::{Database, Family};

use crate::connection::{Connection, Use};
use crate::error::{self, Result};
use crate::options::{PostgresOptions, Target};
use crate::pool::Connections;
use crate::{check, migrate, sql, usage};

/// Maximum time that an erasure waits for transactions that still see the erased words.
const WIPE_PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two looks at such transactions.
const WIPE_PAUSE: Duration = Duration::from_millis(50);

/// Connections of one store to a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresDatabase {
    connections: Connections,
}

impl PostgresDatabase {
    /// Returns the number in the answer of a query that is made of fixed words, numbers and the name of the schema.
    async fn number(&self, sql: String) -> Result<i64> {
        self.connections.count(1);
        // As simple queries, which a pooler never divides.
        let row = sqlx::raw_sql(sql::trusted(sql)).fetch_one(self.connections.pool());
        let number = row.await.and_then(|row| row.try_get(0));
        number.map_err(|e| error::failed(self.connections.place(), e))
    }

    /// Waits until no other transaction of the database can see rows that are dead now.
    async fn outlive_readers(&self) -> Result<()> {
        let ours = self
            .number("select pg_current_xact_id()::text::bigint".to_owned())
            .await?;
        let older = format!(
            "select count(*) from pg_stat_activity where backend_xmin is not null \
             and datname = current_database() and pid <> pg_backend_pid() \
             and age(backend_xmin) >= age('{ours}'::xid8::xid)"
        );
        let deadline = tokio::time::Instant::now() + WIPE_PATIENCE;
        loop {
            let older = self.number(older.clone()).await?;
            if older == 0 {
                return Ok(());
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(error::not_gone(self.connections.place(), WIPE_PATIENCE));
            }
            tokio::time::sleep(WIPE_PAUSE).await;
        }
    }
}

impl Database for PostgresDatabase {
    const BY_FAMILY: bool = true;
    const ERASURE_NOTE: Option<&'static str> = Some(
        "the words are in no row; they may stay in the server's write-ahead log, in replicas until they replay it, in \
         backups, and in free space of the tables until it is written again",
    );

    type Place = str;
    type Reader<'a> = Connection<'a>;
    type Writer<'a> = Connection<'a>;
    type Transaction<'a> = Connection<'a>;

    async fn open(url: &str) -> Result<(Self, bool)> {
        open(url, PostgresOptions::default()).await
    }

    fn statements(&self) -> u64 {
        self.connections.statements()
    }

    async fn read(&self) -> Result<Self::Reader<'_>> {
        Ok(Connection::new(&self.connections, Use::Read))
    }

    async fn write(&self) -> Result<Self::Writer<'_>> {
        match self.connections.is_read_only() {
            true => Err(error::read_only(self.connections.place())),
            false => Ok(Connection::new(&self.connections, Use::Write)),
        }
    }

    async fn begin<'a>(
        &'a self,
        writer: &'a mut Self::Writer<'_>,
        family: Family,
    ) -> Result<Self::Transaction<'a>> {
        writer.release();
        let transaction = self.connections.transaction(false, family).await?;
        Ok(Connection::within(&self.connections, transaction))
    }

    async fn lock_directory(&self, on: &mut Self::Transaction<'_>) -> Result<()> {
        on.fixed("select pg_advisory_xact_lock(1634559341, hashtext(current_schema()))")
            .await?;
        Ok(())
    }

    async fn commit(&self, transaction: Self::Transaction<'_>) -> Result<()> {
        self.connections.count(1);
        transaction.commit().await
    }

    async fn check(&self) -> Result<Vec<Violation>> {
        let mut reader = self.read().await?;
        check::check(&mut reader).await
    }

    /// Removes dead rows from the tables that had words. Only the owner of the tables can.
    async fn wipe(&self) -> Result<()> {
        let others = format!(
            "select count(*) from pg_class where relkind in ('r', 'p') and relnamespace = '{}'::regnamespace \
             and not pg_has_role(relowner, 'usage')",
            self.connections.schema()
        );
        if self.number(others).await? > 0 {
            return Err(error::not_owner(self.connections.place()));
        }
        self.outlive_readers().await?;
        let failed = |e| error::failed(self.connections.place(), e);
        let mut connection = self.connections.pool().acquire().await.map_err(failed)?;
        let schema = self.connections.schema();
        let tables = [
            "message",
            "payload",
            "facts",
            "summary",
            "conversation",
            "job",
            "state",
            "search_segment",
            "search_chunk",
            "message_vector",
        ];
        let tables = tables.map(|table| format!("{schema}.{table}")).join(", ");
        // A vacuum may take longer than other statements, and waits for another one. The settings end with the connection.
        if !self.connections.pooled() {
            connection.close_on_drop();
            sqlx::raw_sql("set statement_timeout = 0; set lock_timeout = 0")
                .execute(&mut *connection)
                .await
                .map_err(failed)?;
        }
        self.connections.count(1);
        let vacuum = sql::trusted(format!("vacuum {tables}"));
        let vacuumed = sqlx::raw_sql(vacuum).execute(&mut *connection).await;
        vacuumed.map_err(failed)?;
        Ok(())
    }

    async fn usage(&self) -> Result<Usage> {
        usage::read(&mut self.read().await?).await
    }

    fn location(&self) -> String {
        self.connections.place().to_owned()
    }

    async fn close(&self) -> Result<()> {
        self.connections.pool().close().await;
        Ok(())
    }
}

/// Opens a database. Also returns whether an erasure was interrupted before dead rows were removed.
pub(crate) async fn open(url: &str, options: PostgresOptions) -> Result<(PostgresDatabase, bool)> {
    let target = Target::parse(url, &options)?;
    let opening = |e| error::opening(&target.place, e);
    let connecting = tokio::time::timeout(options.timeout, target.connect.connect());
    let connected = connecting.await.map_err(|e| {
        let timed_out = std::io::Error::new(std::io::ErrorKind::TimedOut, e);
        opening(sqlx::Error::Io(timed_out))
    })?;
    let mut connection = connected.map_err(opening)?;
    let opened = match options.read_only {
        true => migrate::check(&mut connection, &target).await,
        false => migrate::bring_up(&mut connection, &target).await,
    };
    let wipes = match opened {
        Ok(()) => migrate::has_wipes(&mut connection, &target).await,
        Err(error) => Err(error),
    };
    connection.close().await.map_err(opening)?;
    let wipes = wipes? && !options.read_only;
    let database = PostgresDatabase {
        connections: Connections::new(target, options),
    };
    Ok((database, wipes))
}
