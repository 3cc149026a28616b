//! Searches a store by an index that is brought in from outside and lags behind the log.
//!
//! Run it with `cargo run -p memory-search --example trigram_index`.
#![allow(
    clippy::print_stdout,
    dead_code,
    reason = "an example prints, and uses a part of the index"
)]

mod index;

use std::error::Error;
use std::sync::Arc;

use index::TrigramIndex;
use memory_model::Message;
use memory_search::{Query, Search};
use memory_store::{InMemoryStore, IndexedSearch, LogRead, Store};
use store_conformance::{append, range, root};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(InMemoryStore::new());
    let chat = root(&*store, "telegram:42").await.id;
    let said = (1..=100).map(|n| Message::user(format!("Step {n} of the deployment is done.")));
    append(&*store, chat, said.collect()).await;

    // The application fills the index when it likes; here it has come as far as message 90.
    let index = Arc::new(TrigramIndex::default());
    let page = store.read(chat, &LogRead::new(range(1, 90))).await?;
    index.add_messages(chat, page.items);

    let search = IndexedSearch::new(Arc::clone(&index), Arc::clone(&store));
    let hits = search.search(chat, &Query::new("STEP 9")).await?;
    println!("{} hits by {}:", hits.hits.len(), hits.strategy);
    for hit in &hits.hits {
        println!("  {}", hit.snippet);
    }
    assert!(hits.complete && hits.hits.len() == 11);
    Ok(())
}
