//! Embeddings: what a text means, as a vector, beside its words.
//!
//! An [`Embedder`] turns texts into [`Vector`]s; a search that has one adds how near a message's vector
//! is to the question's to the ranking of the mode `Prose`, as a
//! [`FusionPolicy`](crate::ranking::FusionPolicy) says. Without one, which is the default, nothing here
//! is used. Exact modes never use it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use memory_search::Result;
//! use memory_search::embedding::{Embedder, Vector, cosines};
//!
//! /// Counts legs and wheels.
//! #[derive(Debug)]
//! struct LegsAndWheels;
//!
//! #[async_trait]
//! impl Embedder for LegsAndWheels {
//!     fn id(&self) -> &str {
//!         "legs-and-wheels/1"
//!     }
//!
//!     fn dimension(&self) -> usize {
//!         2
//!     }
//!
//!     async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
//!         let count = |text: &str, words: &[&str]| {
//!             words.iter().filter(|word| text.contains(*word)).count() as f32
//!         };
//!         let embed = |text: &String| {
//!             vec![count(text, &["dog", "horse"]), count(text, &["car", "bus"])]
//!         };
//!         Ok(texts.iter().map(embed).collect())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let embedder: Arc<dyn Embedder> = Arc::new(LegsAndWheels);
//! let texts = ["a dog", "a bus", "a tree", "a horse"].map(String::from);
//! let vectors: Vec<Option<Vector>> = embedder
//!     .embed(&texts)
//!     .await?
//!     .iter()
//!     .map(|vector| Vector::from_slice(vector))
//!     .collect();
//! let nearness = cosines(&[1.0, 0.0], &vectors, false);
//! assert_eq!(nearness[0], nearness[3]);
//! assert!(nearness[0] > nearness[1]);
//! assert_eq!(nearness[2], None); // It says nothing that this embedder knows.
//! # Ok(())
//! # }
//! ```

mod embedder;
mod similarity;
#[cfg(feature = "static-embeddings")]
mod static_table;
mod vector;

pub use embedder::{Embedder, Semantics};
pub use similarity::cosines;
#[cfg(feature = "static-embeddings")]
pub use static_table::{MAX_TABLE_BYTES, StaticTable, TableError};
pub use vector::Vector;
