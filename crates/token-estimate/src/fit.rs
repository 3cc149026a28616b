//! Internals of the calibrated estimator for the fit. No part of the interface.
#![allow(missing_docs, missing_debug_implementations)]

pub use crate::calibrated::class::RANGES;
use crate::calibrated::{class, floor, machine, model};

/// The fine classes by name.
pub mod fine {
    pub use crate::calibrated::class::*;
}

pub const COUNTERS: usize = machine::COUNTERS;
pub const PAIRS: usize = model::PAIRS;

pub struct Classes(Box<class::Classes>);

impl Classes {
    /// From one byte for each code point of [`RANGES`]: its class less `FIRST_WIDE`.
    pub fn new(classes: &[u8]) -> Self {
        Self(Box::new(class::Classes::read(classes, 0)))
    }
}

/// The bits of a pair or triple of characters in the sets of joins.
pub fn places(characters: [u32; 3], bits: u32) -> [u32; 2] {
    floor::places(characters, bits)
}

pub fn raise(classes: &Classes, text: &str, counter: &mut dyn FnMut(usize)) {
    model::raise(&classes.0, text, counter);
}

pub fn group(counter: u16) -> u16 {
    machine::group(counter)
}
