//! Chooses the pictures and files that are left out of a request.

use memory_model::Message;

use super::media_list::{Kind, Medium};
use super::size::bytes;
use super::table::RequestLimits;

/// Returns the reason for which a picture or a document alone exceeds the limits.
pub(super) fn too_large(medium: &Medium, limits: &RequestLimits) -> Option<&'static str> {
    if medium.kind == Kind::Picture {
        if limits.side.is_some_and(|side| medium.side() > side) {
            return Some("more pixels than the provider takes");
        }
        if medium.bytes > limits.picture_bytes {
            return Some("more bytes than the provider takes");
        }
    }
    let pages = match limits.pages_are_pictures {
        true => limits.pages.min(limits.pictures),
        false => limits.pages,
    };
    (medium.pages > pages).then_some("more pages than the provider takes")
}

/// Leaves out media in their order while their sum is above `most`.
fn leave_out(all: &mut [Medium], most: u64, why: &'static str, counts: impl Fn(&Medium) -> u64) {
    let shown = all.iter().filter(|medium| medium.left_out.is_none());
    let mut sum = shown.map(&counts).fold(0, u64::saturating_add);
    for medium in all.iter_mut() {
        let counted = counts(medium);
        if sum <= most {
            break;
        }
        if medium.left_out.is_none() && counted > 0 {
            medium.left_out = Some(why);
            sum -= counted;
        }
    }
}

pub(super) fn leave_out_pages(all: &mut [Medium], limits: &RequestLimits) {
    let why = "the provider takes no more pages";
    leave_out(all, limits.pages, why, |medium| medium.pages);
}

pub(super) fn leave_out_pictures(all: &mut [Medium], limits: &RequestLimits) {
    let why = "the provider takes no more pictures";
    leave_out(all, limits.pictures, why, |medium| medium.pictures(limits));
}

/// Many pictures have a smaller limit of pixels. Leaves out the large pictures, or the oldest of all pictures if these
/// are fewer or if a large one belongs to the request.
pub(super) fn leave_out_large_of_many(all: &mut [Medium], limits: &RequestLimits) {
    let Some((many, side)) = limits.many else {
        return;
    };
    let is_shown = |one: &Medium| one.left_out.is_none() && one.kind == Kind::Picture;
    let shown: Vec<&Medium> = all.iter().filter(|one| is_shown(one)).collect();
    let large = shown.iter().filter(|one| one.side() > side);
    let (large, requested_large): (u64, bool) = large.fold((0, false), |(count, any), one| {
        (count + 1, any || one.is_requested)
    });
    let over = (shown.len() as u64).saturating_sub(many);
    if over == 0 || large == 0 {
        return;
    }
    let why = "the provider takes only smaller pictures among so many";
    let requested = shown.iter().filter(|one| one.is_requested).count() as u64;
    let oldest = match requested_large {
        true => requested <= many,
        false => over < large,
    };
    if oldest {
        leave_out(all, many, why, |medium| {
            u64::from(medium.kind == Kind::Picture)
        });
        return;
    }
    for medium in all.iter_mut() {
        if medium.left_out.is_none() && medium.side() > side {
            medium.left_out = Some(why);
        }
    }
}

pub(super) fn leave_out_bytes(messages: &[Message], all: &mut [Medium], limits: &RequestLimits) {
    let most = limits.message_bytes();
    let data = all.iter().map(|medium| medium.bytes);
    let data = data.fold(0, u64::saturating_add);
    let whole = bytes(messages);
    let words = whole.saturating_sub(data);
    let why = "the provider takes no larger request";
    leave_out(all, most.saturating_sub(words), why, |medium| medium.bytes);
}
