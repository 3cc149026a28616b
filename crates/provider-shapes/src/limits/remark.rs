//! The text in place of a picture or a file that is left out.

use memory_model::Part;

use super::media_list::{Kind, Medium};
use crate::media::named;
use crate::unknown::medium;

/// Returns the text that replaces a picture or a file.
pub(super) fn remark(part: &Part, left_out: &Medium, why: &str, pointer: Option<String>) -> String {
    let found;
    let part = match part {
        Part::Unknown { raw } => match medium(raw) {
            Some(part) => {
                found = part;
                &found
            }
            None => {
                return format!("{} [data left out: {why}]", raw.without_bytes());
            }
        },
        part => part,
    };
    let (Part::Image(media) | Part::File(media)) = part else {
        return format!("[left out: {why}]");
    };
    let kind = match left_out.kind {
        Kind::Picture => "image left out",
        _ => "file left out",
    };
    let mut text = named(kind, media);
    text.truncate(text.len().saturating_sub(1));
    if let Some((width, height)) = left_out.sides {
        text.push_str(&format!(", {width} x {height} pixels"));
    }
    if left_out.kind == Kind::Document {
        text.push_str(&format!(", {} pages", left_out.pages));
    }
    text.push_str(&format!(": {why}"));
    if let Some(pointer) = pointer {
        text.push_str(&format!("; expand {pointer}"));
    }
    text.push(']');
    text
}
