//! Failures of models, as they are recorded in the metadata of the summaries that were written without the model.

use memory_model::{RawJson, Summary};
use serde::Deserialize;
use summarize_escalation::FailureKind;

/// Failure of a model because of which a summary was written without it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ModelFailure {
    /// Kind of the failure; `None` if it is not known.
    #[serde(rename = "failure", deserialize_with = "kind")]
    pub(crate) kind: Option<FailureKind>,
    /// Text of the failure, for people.
    pub(crate) message: String,
    /// Whether it does not pass by itself, although others of its kind may.
    #[serde(default)]
    is_lasting: bool,
}

/// The part of a summary's metadata with the refused attempts to write it.
#[derive(Deserialize)]
struct Meta {
    #[serde(default)]
    refused: Vec<Attempt>,
}

#[derive(Deserialize)]
struct Attempt {
    reason: Reason,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Reason {
    Failed { failed: ModelFailure },
    Other(serde::de::IgnoredAny),
}

/// Reads the name of a kind. A name that another version writes is not known.
fn kind<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<FailureKind>, D::Error> {
    let name = Option::<serde_json::Value>::deserialize(from)?;
    Ok(name.and_then(|name| serde_json::from_value(name).ok()))
}

impl ModelFailure {
    /// Returns the failure because of which a summary was written without a model: the first of several. `None` if the
    /// summary is not provisional, or if no failure is recorded.
    pub(crate) fn of(summary: &Summary) -> Option<Self> {
        let meta = summary.meta.as_ref().filter(|_| summary.provisional)?;
        let read = serde_json::from_str::<Meta>(RawJson::as_str(meta)).ok()?;
        let attempts = read.refused.into_iter();
        attempts
            .filter_map(|attempt| match attempt.reason {
                Reason::Failed { failed } => Some(failed),
                Reason::Other(_) => None,
            })
            .next()
    }

    /// Returns whether the model may write the summary later: the failure may pass by itself.
    pub(crate) fn may_pass(&self) -> bool {
        self.kind.is_some_and(FailureKind::may_pass) && !self.is_lasting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memory_model::{Hash, Recipe, Seq, SeqRange};

    #[test]
    fn the_first_failure_is_read_and_whether_it_may_pass() {
        let read = |provisional, refused: &str| {
            let range = SeqRange::single(Seq(1));
            let summary = Summary {
                provisional,
                meta: RawJson::parse(format!(r#"{{"tokens_in":9,"refused":{refused}}}"#)).ok(),
                ..Summary::new(range, 0, Vec::new(), Hash::ZERO, Recipe::new("test"), "")
            };
            let failure = ModelFailure::of(&summary)?;
            Some((failure.message.clone(), failure.may_pass()))
        };
        let failed = |kind: &str| {
            format!(
                r#"[{{"tier":"normal","reason":"empty"}},
                {{"tier":"aggressive","reason":{{"failed":{{"failure":{kind},"message":"first"}}}}}},
                {{"tier":"aggressive","reason":{{"failed":{{"failure":"breaker_open","message":"then"}}}}}}]"#
            )
        };
        for (kind, may_pass) in [
            (r#""timed_out""#, true),
            (r#""unreachable""#, true),
            (r#""breaker_open""#, true),
            (r#""breaker_open","is_lasting":true"#, false),
            (r#""auth""#, false),
            (r#""spend_limit""#, false),
            (r#""of_a_later_version""#, false),
            ("null", false),
        ] {
            let expected = ("first".to_owned(), may_pass);
            assert_eq!(read(true, &failed(kind)), Some(expected), "{kind}");
            assert_eq!(read(false, &failed(kind)), None);
        }
        let other = r#"[{"tier":"normal","reason":{"too_long":{"tokens":9,"limit":1}}}]"#;
        assert_eq!(read(true, other), None);
        assert_eq!(read(true, "{}"), None);
    }
}
