//! Internals of the calibrated estimator, for the program that fits its coefficients. Not a part of the public API.
#![allow(missing_docs, missing_debug_implementations)]

pub use crate::calibrated::class::RANGES;
use crate::calibrated::{class, floor, machine, model};

/// Numbers of the coarse and the fine classes, by name.
pub mod fine {
    pub use crate::calibrated::class::*;
}

pub const COUNTERS: usize = machine::COUNTERS;
pub const PAIRS: usize = model::PAIRS;

pub struct Classes(Box<class::Classes>);

impl Classes {
    /// Creates the classes from one byte for each code point of [`RANGES`]: the class minus `FIRST_WIDE`.
    pub fn new(classes: &[u8]) -> Self {
        Self(Box::new(class::Classes::read(classes, 0)))
    }
}

/// Returns the two bit positions of a pair or triple of characters in a filter of `1 << bits` bits.
pub fn places(characters: [u32; 3], bits: u32) -> [u32; 2] {
    floor::places(characters, bits)
}

pub fn raise(classes: &Classes, text: &str, counter: &mut dyn FnMut(usize)) {
    model::raise(&classes.0, text, counter);
}

pub fn group(counter: u16) -> u16 {
    machine::group(counter)
}
