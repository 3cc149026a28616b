//! Generated transcripts with many branches.

use std::fmt::Write as _;

use message_formats::{ReadOptions, Transcript};

/// Arrangement of the forks in a transcript.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// Every fork begins in the log of the root.
    Star,
    /// Every fork begins in the log of the previous fork.
    Chain,
    /// A chain in which a second fork begins at each step.
    Comb,
}

pub(crate) const SHAPES: [Shape; 3] = [Shape::Star, Shape::Chain, Shape::Comb];

/// Number of messages in the log of the root.
pub(crate) const TRUNK: usize = 40;

/// A pi transcript: a root of [`TRUNK`] messages and `forks` forks of two messages each.
pub(crate) struct Branched {
    pub(crate) text: String,
}

impl Branched {
    pub(crate) fn new(shape: Shape, forks: usize) -> Self {
        let mut file = Self {
            text: "{\"type\":\"session\",\"version\":3,\"id\":\"branched\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\"}\n".to_owned(),
        };
        let mut parent = None;
        for n in 1..=TRUNK {
            parent = Some(file.message(&format!("trunk{n}"), parent.as_deref()));
        }
        let trunk = format!("trunk{}", TRUNK - 4);
        let mut link = trunk.clone();
        for n in 0..forks {
            let from = match shape {
                Shape::Star => trunk.clone(),
                Shape::Chain => link.clone(),
                // Two forks begin at the same message; the chain goes on from the second.
                Shape::Comb => link.clone(),
            };
            let first = file.message(&format!("fork{n}a"), Some(&from));
            file.message(&format!("fork{n}b"), Some(&first));
            if matches!(shape, Shape::Chain) || n % 2 == 1 {
                link = first;
            }
        }
        file
    }

    fn message(&mut self, id: &str, parent: Option<&str>) -> String {
        let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
        let role = if id.ends_with('a') {
            "user"
        } else {
            "assistant"
        };
        writeln!(
            self.text,
            "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:01.000Z\",\
             \"message\":{{\"role\":\"{role}\",\"content\":[{{\"type\":\"text\",\"text\":\"This is what {id} says: the \
             module was renamed, its callers were changed and its tests were run.\"}}]}}}}"
        )
        .unwrap();
        id.to_owned()
    }

    pub(crate) fn transcript(&self) -> Transcript {
        message_formats::read(self.text.as_bytes(), &ReadOptions::default()).unwrap()
    }
}
