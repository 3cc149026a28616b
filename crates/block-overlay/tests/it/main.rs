//! Integration tests, in one binary.

mod blocks;
mod bugs;
mod corpus;
mod golden;
mod json;
mod laws;
mod planner;
mod prune;
mod reduce;
mod running;
mod session;
mod summaries;
mod world;
