//! Conversion of messages to the borrowed views that `token-estimate` counts and `turn-map` groups.

use token_estimate::{MessageView, PartView, Role};

use crate::message::{EntryKind, LogEntry, Message};
use crate::part::{Media, MediaSource, Part, ResultContent};

impl MessageView for Message {
    fn role(&self) -> Role {
        self.role
    }

    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        self.parts.iter().for_each(|part| part.view(visit));
    }

    fn turn(&self) -> Option<u64> {
        self.turn.as_ref().map(|turn| u64::from(turn.turn))
    }

    fn response(&self) -> Option<&str> {
        self.response.as_deref()
    }

    fn is_note(&self) -> bool {
        self.kind == EntryKind::Note
    }
}

impl MessageView for LogEntry {
    fn role(&self) -> Role {
        self.message.role
    }

    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        MessageView::parts(&self.message, visit);
    }

    fn turn(&self) -> Option<u64> {
        MessageView::turn(&self.message)
    }

    fn response(&self) -> Option<&str> {
        MessageView::response(&self.message)
    }

    fn is_note(&self) -> bool {
        self.message.is_note()
    }
}

/// A message with these parts, from which tokens are counted.
pub(crate) struct PartsOf<'a> {
    pub(crate) role: Role,
    pub(crate) parts: &'a [Part],
}

impl MessageView for PartsOf<'_> {
    fn role(&self) -> Role {
        self.role
    }

    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        self.parts.iter().for_each(|part| part.view(visit));
    }
}

impl Part {
    /// Calls `visit` once with a borrowed view of the part.
    pub fn view(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        let Part::ToolResult { content, .. } = self else {
            return visit(flat_view(self));
        };
        match content {
            ResultContent::Text(text) => visit(result_view(self, &[PartView::Text(text)])),
            ResultContent::Parts(parts) => visit(result_view(self, &content_views(parts))),
        }
    }
}

/// Returns views of the parts in a tool result's content. Parts that are not results come first. Each nested result
/// follows as a view without content, and then the views of its parts.
fn content_views(parts: &[Part]) -> Vec<PartView<'_>> {
    let is_result = |part: &&Part| matches!(part, Part::ToolResult { .. });
    let mut views: Vec<PartView<'_>> = parts
        .iter()
        .filter(|part| !is_result(part))
        .map(flat_view)
        .collect();
    for part in parts.iter().filter(is_result) {
        views.push(flat_view(part));
        match part {
            Part::ToolResult {
                content: ResultContent::Parts(parts),
                ..
            } => views.extend(content_views(parts)),
            Part::ToolResult {
                content: ResultContent::Text(text),
                ..
            } => views.push(PartView::Text(text)),
            _ => {}
        }
    }
    views
}

fn result_view<'a>(result: &'a Part, content: &'a [PartView<'a>]) -> PartView<'a> {
    match flat_view(result) {
        PartView::ToolResult {
            call_id,
            name,
            is_error,
            ..
        } => PartView::ToolResult {
            call_id,
            name,
            content,
            is_error,
        },
        other => other,
    }
}

/// Returns a view of a part. The content of a tool result is left out.
fn flat_view(part: &Part) -> PartView<'_> {
    match part {
        Part::Text { text } => PartView::Text(text),
        Part::Reasoning { text, .. } => PartView::Reasoning(text),
        Part::ToolCall {
            id,
            name,
            arguments,
        } => PartView::ToolCall {
            id,
            name,
            arguments: arguments.as_str(),
        },
        Part::ToolResult {
            call_id, is_error, ..
        } => PartView::ToolResult {
            call_id,
            name: None,
            content: &[],
            is_error: is_error.unwrap_or(false),
        },
        Part::Image(media) => PartView::Image {
            base64_len: base64_len(media),
        },
        Part::File(media) => PartView::File { data: data(media) },
        Part::Unknown { raw } => PartView::Other(raw.as_str()),
    }
}

/// Returns the data of a file, or an empty text for a URL that is no data URL.
fn data(media: &Media) -> &str {
    match &media.source {
        MediaSource::Data(data) => data,
        MediaSource::Url(url) if url.trim_start().starts_with("data:") => url,
        MediaSource::Url(_) => "",
    }
}

fn base64_len(media: &Media) -> usize {
    match &media.source {
        MediaSource::Data(data) => data.len(),
        MediaSource::Url(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use token_estimate::{Calibrated, TokenEstimator};

    use super::*;
    use crate::json::RawJson;

    fn result(content: ResultContent) -> Part {
        Part::ToolResult {
            call_id: "c".to_owned(),
            content,
            is_error: Some(true),
        }
    }

    #[test]
    fn nested_results_come_last_and_are_not_text_of_the_outer_result() {
        let raw = RawJson::parse(r#"{"type":"x"}"#).unwrap();
        let inner = result(ResultContent::Parts(vec![Part::text("inner")]));
        let content = ResultContent::Parts(vec![
            inner,
            Part::text("before"),
            Part::Unknown { raw },
            result(ResultContent::Text("also inner".to_owned())),
        ]);
        let expected = content.text().into_owned();
        let mut seen = Vec::new();
        result(content).view(&mut |part| {
            assert_eq!(part.text(), expected);
            let PartView::ToolResult {
                content, is_error, ..
            } = part
            else {
                panic!("a result became {part:?}");
            };
            assert!(is_error);
            seen.extend(content.iter().map(|part| part.text().into_owned()));
        });
        assert_eq!(
            seen,
            ["before", r#"{"type":"x"}"#, "", "inner", "", "also inner"]
        );
    }

    #[test]
    fn a_note_costs_nothing() {
        let note = Message::note(Role::System, vec![Part::text("model changed")]);
        assert_eq!(Calibrated::O200k.message(&note), 0);
    }
}
