//! Summaries of sources that do not fit into a model's window: part by part, then merged.

use extractive_summarizer::{Source, SummarySource, cut_to_tokens};
use memory_model::{SeqRange, Timestamp};
use model_client::{Failure, FailureKind, Stop};

use super::asker::Asker;
use super::window::{Window, answer_in, answer_room, input};
use crate::error::Error;
use crate::prompt::{Clip, piece_text};
use crate::request::{Style, SummaryRequest};
use crate::summarizer::SummaryText;

/// Least room for source and answer together, in tokens.
const LEAST_ROOM: u64 = 256;
/// What the tags around a source cost beyond those of an empty one, in tokens.
const SEAMS: u64 = 64;
/// A part's summary is asked to be this share of its part, in thousandths: at least, and at most
/// where messages or where summaries are summarised. The latter two make each pass shorter than
/// the one before.
const SHARES: (u64, u64, u64) = (62, 500, 400);
/// Shortest length asked for, in tokens, where the part is not shorter.
const LEAST_TARGET: u64 = 16;

/// How a source is divided for one window.
#[derive(Debug, Clone, Copy)]
struct Division {
    /// Tokens for source and answer together.
    room: u64,
    /// Length of the summary at the end, in tokens.
    target: u64,
    /// Tokens that the summaries of the parts may take together, to be merged by one call.
    merge: u64,
}

/// What was made of a part of a source.
struct Part {
    range: SeqRange,
    depth: u32,
    text: String,
    tokens: u64,
    earliest_at: Timestamp,
    latest_at: Timestamp,
}

impl Part {
    fn source(&self) -> Source<'_> {
        Source::Summary(SummarySource {
            id: "",
            range: self.range,
            depth: self.depth,
            text: &self.text,
            tokens: self.tokens,
            earliest_at: self.earliest_at,
            latest_at: self.latest_at,
        })
    }
}

/// Neighbouring pieces of a source that one call summarises.
struct Group {
    first: usize,
    end: usize,
    /// How much of its pieces is shown.
    clip: Clip,
    /// What they cost as shown, in tokens.
    tokens: u64,
}

/// What a pass over a source came to.
enum Pass {
    Parts(Vec<Part>),
    /// The provider stopped the model in some part.
    Stopped(SummaryText),
}

/// Summarises a source part by part, and then the summaries, until one is left.
pub(super) async fn summarize(
    asker: &mut Asker<'_>,
    request: &SummaryRequest<'_>,
    window: Window,
) -> Result<SummaryText, Error> {
    let division = divide(asker, request, window)?;
    let mut asked = 0;
    let mut made = match pass(asker, request, window, division, &mut asked).await? {
        Pass::Parts(made) => made,
        Pass::Stopped(text) => return Ok(text),
    };
    loop {
        if made.len() < 2 {
            let text = made.pop().map_or_else(String::new, |part| part.text);
            return Ok(SummaryText::new(text));
        }
        let pieces: Vec<Source<'_>> = made.iter().map(Part::source).collect();
        let mut merge = request.with_source(&pieces);
        merge.target_tokens = division.target.min(merge.source_tokens());
        if let Some(prompt) = window.fit(asker.prompts.render(&merge), &merge) {
            return asker.ask(&prompt, &merge).await;
        }
        made = match pass(asker, &merge, window, division, &mut asked).await? {
            Pass::Parts(made) => made,
            Pass::Stopped(text) => return Ok(text),
        };
    }
}

/// Calls that a summary in parts takes at least: one for each part, and one to merge them.
pub(super) fn calls_needed(asker: &Asker<'_>, request: &SummaryRequest<'_>, window: Window) -> u64 {
    let groups =
        divide(asker, request, window).and_then(|division| group(asker, request, window, division));
    match groups {
        Ok((groups, _)) if groups.len() > 1 => groups.len() as u64 + 1,
        _ => 1,
    }
}

/// Divides a window between source, merge and answer.
fn divide(
    asker: &Asker<'_>,
    request: &SummaryRequest<'_>,
    window: Window,
) -> Result<Division, Error> {
    let mut empty = request.with_source(&[]);
    let mut fixed = 0;
    for style in [Style::Normal, Style::Aggressive] {
        empty.style = style;
        fixed = fixed.max(input(&asker.prompts.render(&empty), request));
    }
    // The merge has a prompt of its own.
    let merged = SummarySource {
        id: "",
        range: request
            .range()
            .unwrap_or(SeqRange::single(memory_model::Seq::FIRST)),
        depth: request.depth(),
        text: "",
        tokens: 0,
        earliest_at: Timestamp::default(),
        latest_at: Timestamp::default(),
    };
    let merged = [Source::Summary(merged)];
    let merge = request.with_source(&merged);
    fixed = fixed.max(input(&asker.prompts.render(&merge), request));
    let room = window.usable(request).saturating_sub(fixed + SEAMS);
    if room < LEAST_ROOM {
        return Err(asker.too_long(request, window));
    }
    let target = request.target_tokens.min(room / 3);
    Ok(Division {
        room,
        target,
        merge: room.saturating_sub(answer_room(target)),
    })
}

/// Summarises a source part by part, once.
async fn pass(
    asker: &mut Asker<'_>,
    request: &SummaryRequest<'_>,
    window: Window,
    division: Division,
    asked: &mut u32,
) -> Result<Pass, Error> {
    let (groups, share) = group(asker, request, window, division)?;
    let parts = u32::try_from(groups.len()).unwrap_or(u32::MAX);
    let merge = u32::from(parts > 1);
    if asked.saturating_add(parts).saturating_add(merge) > window.max_calls {
        // Nothing is paid for that cannot be brought to an end.
        return Err(asker.too_long(request, window));
    }
    *asked = asked.saturating_add(parts);
    let mut made = Vec::with_capacity(groups.len());
    for group in &groups {
        let pieces = request.source.get(group.first..group.end);
        let mut part = request.with_source(pieces.unwrap_or_default());
        part.target_tokens = match parts {
            1 => answer_in(division.room.saturating_sub(group.tokens)),
            _ => (group.tokens * share / 1_000).max(LEAST_TARGET),
        };
        part.target_tokens = part
            .target_tokens
            .min(request.target_tokens)
            .min(part.source_tokens())
            .max(1);
        let mut answer = ask_for_part(asker, &part, group, window).await?;
        if answer.stop == Stop::CutOff {
            part.style = Style::Aggressive;
            part.target_tokens = (part.target_tokens / 2).max(1);
            answer = ask_for_part(asker, &part, group, window).await?;
        }
        if answer.stop != Stop::Complete {
            // Of a part alone there is no summary.
            return Ok(Pass::Stopped(SummaryText::default().with_stop(answer.stop)));
        }
        // Twice its length at most, so that the parts together are shorter than their source.
        let most = part.target_tokens.saturating_mul(2).max(1);
        let text = cut_to_tokens(&answer.text, most, request.estimator);
        let (Some(text), Some(range)) = (text, part.range()) else {
            let what = format!("it wrote nothing for part {} of {parts}", made.len() + 1);
            return Err(Error::provider(
                asker.id,
                Failure::new(FailureKind::Empty, what),
            ));
        };
        let (earliest_at, latest_at) = part.times().unwrap_or_default();
        made.push(Part {
            range,
            depth: part.depth(),
            tokens: request.estimator.text(&text),
            text,
            earliest_at,
            latest_at,
        });
    }
    Ok(Pass::Parts(made))
}

async fn ask_for_part(
    asker: &mut Asker<'_>,
    part: &SummaryRequest<'_>,
    group: &Group,
    window: Window,
) -> Result<SummaryText, Error> {
    let prompt = asker.prompts.render_clipped(part, group.clip);
    let Some(prompt) = window.fit(prompt, part) else {
        return Err(asker.too_long(part, window));
    };
    asker.ask(&prompt, part).await
}

/// Divides a source into groups that fit into the window with their answers. The second value
/// is the length of an answer as a share of its group, in thousandths.
fn group(
    asker: &Asker<'_>,
    request: &SummaryRequest<'_>,
    window: Window,
    division: Division,
) -> Result<(Vec<Group>, u64), Error> {
    let cost = |piece: &Source<'_>, clip: Clip| {
        request
            .estimator
            .text(&piece_text(piece, clip))
            .saturating_add(1)
    };
    let shown: Vec<u64> = request
        .source
        .iter()
        .map(|piece| cost(piece, asker.prompts.clip))
        .collect();
    let total = shown.iter().sum::<u64>().max(1);
    let wanted = request.target_tokens.min(division.merge * 4 / 5);
    let (least, messages, summaries) = SHARES;
    let most = match request.depth() {
        0 => messages,
        _ => summaries,
    };
    let share = (wanted * 1_000 / total).clamp(least, most);
    // Group and answer together take the room: g + 3/2 × share × g.
    let room = (division.room * 2_000 / (2_000 + 3 * share))
        .min(division.room.saturating_sub(answer_room(LEAST_TARGET)));
    // Groups of about the same size.
    let even = total.div_ceil(total.div_ceil(room.max(1)));
    let mut groups: Vec<Group> = Vec::new();
    for ((at, piece), mut tokens) in request.source.iter().enumerate().zip(shown) {
        let mut clip = asker.prompts.clip;
        let mut chars = usize::try_from(room.saturating_mul(4)).unwrap_or(usize::MAX);
        while tokens > room {
            if chars < 40 {
                return Err(asker.too_long(request, window));
            }
            clip = asker.prompts.clip.at_most(chars);
            tokens = cost(piece, clip);
            chars = chars / 4 * 3;
        }
        match groups.last_mut() {
            Some(group)
                if group.tokens < even && group.tokens + tokens <= room && group.clip == clip =>
            {
                group.end = at + 1;
                group.tokens += tokens;
            }
            _ => groups.push(Group {
                first: at,
                end: at + 1,
                clip,
                tokens,
            }),
        }
    }
    Ok((groups, share))
}
