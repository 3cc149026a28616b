//! Vectors of texts, stored with one byte for each component.

use crate::error::{Error, ErrorKind, Result};

/// A vector (embedding) of a text. Each component is stored as a signed byte, and one scale applies to all components.
/// A vector is never zero.
///
/// Rounding changes a component by at most 1/254 of the largest component.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    scale: f32,
    components: Box<[i8]>,
}

impl Vector {
    /// Creates a vector and rounds its components. Returns `None` if the vector is zero or almost zero, or if a
    /// component is not a finite number.
    pub fn from_slice(vector: &[f32]) -> Option<Self> {
        let largest = vector.iter().fold(0.0_f32, |most, one| most.max(one.abs()));
        let is_sound = largest.is_normal() && vector.iter().all(|one| one.is_finite());
        let scale = largest / f32::from(i8::MAX);
        if !is_sound || !scale.is_normal() {
            return None;
        }
        Some(Self {
            scale,
            components: vector.iter().map(|one| rounded(one / scale)).collect(),
        })
    }

    /// Returns the number of components of the vector.
    pub fn dimension(&self) -> usize {
        self.components.len()
    }

    /// Returns the components of the vector, in order.
    pub fn components(&self) -> impl Iterator<Item = f32> + '_ {
        let components = self.components.iter();
        components.map(|component| f32::from(*component) * self.scale)
    }

    /// Returns the vector as bytes: the scale as a 32-bit float, little-endian, then a signed byte for each component.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.scale.to_le_bytes().to_vec();
        let components = self.components.iter();
        bytes.extend(components.map(|component| component.to_le_bytes()[0]));
        bytes
    }

    /// Reads a vector of `dimension` components from the bytes that [`to_bytes`](Self::to_bytes) returned.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a vector of this dimension.
    pub fn from_bytes(bytes: &[u8], dimension: usize) -> Result<Self> {
        let corrupt = || {
            let message = format!(
                "{} bytes are not a vector of {dimension} components: embed the conversation again",
                bytes.len()
            );
            Error::new(ErrorKind::Corrupt, message)
        };
        let (scale, components) = bytes.split_first_chunk::<4>().ok_or_else(corrupt)?;
        let scale = f32::from_le_bytes(*scale);
        let is_zero = components.iter().all(|component| *component == 0);
        if components.len() != dimension || !scale.is_normal() || scale < 0.0 || is_zero {
            return Err(corrupt());
        }
        let components = components.iter();
        Ok(Self {
            scale,
            components: components.map(|one| i8::from_le_bytes([*one])).collect(),
        })
    }
}

/// Returns the nearest whole number between -127 and 127.
#[expect(clippy::cast_possible_truncation, reason = "clamped before")]
fn rounded(component: f32) -> i8 {
    component.round().clamp(-127.0, 127.0) as i8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_survive_their_bytes() {
        let vector = Vector::from_slice(&[0.5, -1.0, 0.25, 0.0]).expect("it is not zero");
        let read = Vector::from_bytes(&vector.to_bytes(), 4).expect("it is one");
        assert_eq!(read, vector);
        for (was, is) in [0.5, -1.0, 0.25, 0.0].into_iter().zip(vector.components()) {
            assert!((was - is).abs() <= 1.0 / 254.0, "{was} {is}");
        }
    }

    #[test]
    fn invalid_vectors_are_refused() {
        let bytes = Vector::from_slice(&[1.0, 2.0]).expect("one").to_bytes();
        for (bytes, dimension) in [
            (&bytes[..], 3),
            (&bytes[..5], 2),
            (&[][..], 2),
            (&[0; 6], 2),
            (&[0, 0, 192, 127, 1, 1], 2),
        ] {
            let error = Vector::from_bytes(bytes, dimension).expect_err("it is none");
            assert_eq!(error.kind(), ErrorKind::Corrupt);
        }
        for none in [&[0.0, 0.0][..], &[], &[f32::NAN, 1.0], &[f32::INFINITY]] {
            assert_eq!(Vector::from_slice(none), None);
        }
    }
}
