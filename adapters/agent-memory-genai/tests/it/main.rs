//! Integration tests, in one binary.

mod messages;
