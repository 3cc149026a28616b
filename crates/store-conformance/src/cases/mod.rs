//! Cases of the suites, as functions.

mod batch;
mod erase;
mod family;
mod inherit;
mod jobs;
mod lineage;
mod log;
mod modes;
mod publish;
mod refusals;
mod search;
mod unchanged;
mod views;

pub use batch::*;
pub use erase::*;
pub use family::*;
pub use inherit::*;
pub use jobs::*;
pub use lineage::*;
pub use log::*;

pub use modes::*;
pub use publish::*;
pub use refusals::*;
pub use search::*;
pub(crate) use search::{MODES, ORDERS, SCOPES};
pub use views::*;
