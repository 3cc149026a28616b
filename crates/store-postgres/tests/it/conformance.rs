//! The suite that every store must pass, on a server.

use store_postgres::PostgresOptions;

use crate::common::{Schemas, schemas, server};

mod plain {
    use super::*;

    store_conformance::conformance_tests!(schemas!());
}

#[tokio::test]
async fn random_operations_agree_with_the_reference() {
    let schemas = schemas!();
    store_conformance::random_ops(&schemas, 8).await;
}

#[tokio::test]
async fn random_operations_agree_with_the_reference_in_partitions() {
    let Some(url) = server() else { return };
    let options = PostgresOptions::new()
        .with_max_connections(1)
        .with_partitions(4);
    store_conformance::random_ops(&Schemas::with_options(&url, options), 4).await;
}
