//! Similarity of vectors.

use memory_store::Vector;

/// Number of vectors at which their mean is subtracted with weight 1/2. With fewer vectors the weight is lower, because
/// the mean of a few vectors mostly reflects their own meanings, not the part that all messages have in common.
const MEAN_PRIOR: f32 = 10.0;

/// Returns the cosine of the angle between a question's vector and each of a conversation's vectors. `None` for a
/// missing vector, and for all vectors if the question's vector is zero.
///
/// The mean of the conversation's vectors is subtracted from all vectors first, because the part that all messages have
/// in common does not distinguish them. A vector with another dimension than the question's vector has no cosine.
pub(crate) fn cosines(question: &[f32], vectors: &[Option<Vector>]) -> Vec<Option<f64>> {
    let usable = |vector: &&Vector| vector.dimension() == question.len();
    let mut mean = vec![0.0; question.len()];
    let mut count = 0.0_f32;
    for vector in vectors.iter().flatten().filter(usable) {
        count += 1.0;
        let sums = mean.iter_mut().zip(vector.components());
        sums.for_each(|(sum, component)| *sum += component);
    }
    mean.iter_mut().for_each(|sum| *sum /= count + MEAN_PRIOR);
    let centred: Vec<f32> = question.iter().zip(&mean).map(|(q, m)| q - m).collect();
    let length = centred.iter().map(|q| q * q).sum::<f32>().sqrt();
    let is_zero = question.iter().all(|component| *component == 0.0);
    let cosine = |vector: &Vector| {
        let (mut product, mut square) = (0.0_f32, 0.0_f32);
        for ((component, mean), asked) in vector.components().zip(&mean).zip(&centred) {
            let component = component - mean;
            product += component * asked;
            square += component * component;
        }
        let cosine = f64::from(product / (square.sqrt() * length));
        cosine.is_finite().then_some(cosine)
    };
    let vectors = vectors.iter().map(Option::as_ref);
    vectors
        .map(|vector| vector.filter(usable).filter(|_| !is_zero).and_then(cosine))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors(all: &[[f32; 2]]) -> Vec<Option<Vector>> {
        all.iter().map(|one| Vector::from_slice(one)).collect()
    }

    #[test]
    fn cosines_are_those_of_angles() {
        let found = cosines(
            &[2.0, 0.0],
            // The mean of these vectors is zero.
            &vectors(&[[1.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [0.0, -3.0], [0.0; 2]]),
        );
        assert_eq!(found, [Some(1.0), Some(0.0), Some(-1.0), Some(0.0), None]);
        assert_eq!(cosines(&[0.0, 0.0], &vectors(&[[1.0, 0.0]])), [None]);
        assert_eq!(cosines(&[1.0], &vectors(&[[1.0, 0.0]])), [None]);
    }

    #[test]
    fn what_all_have_in_common_does_not_count() {
        let all: Vec<[f32; 2]> = (0..100).map(|at| [10.0, (at % 2 * 2 - 1) as f32]).collect();
        let found = cosines(&[10.0, 1.0], &vectors(&all));
        let gap = found[1].unwrap_or_default() - found[0].unwrap_or_default();
        // Without subtracting the mean, the cosine is 2/101.
        assert!(gap > 20.0 / 101.0, "{found:?}");
    }
}
