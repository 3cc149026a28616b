//! Summaries of sources that do not fit into a model's window: part by part, then merged.

use extractive_summarizer::{Source, SummarySource, cut_to_tokens};
use memory_model::{SeqRange, Timestamp};
use model_client::{Failure, FailureKind, Stop};

use super::asker::Asker;
use super::window::{ModelWindow, answer_in, answer_room, input};
use crate::error::Error;
use crate::prompt::{Clip, piece_text};
use crate::request::{Style, SummaryRequest};
use crate::summarizer::SummarizerResponse;

/// Least room for source and answer together, in tokens.
const LEAST_ROOM: u64 = 256;
/// Cost of the tags around a source in addition to an empty one, in tokens.
const SEAMS: u64 = 64;
/// Length of a part's summary as a share of its part, in thousandths: minimum, maximum for messages, and maximum for
/// summaries. The maxima make each pass shorter than the one before.
const SHARES: (u64, u64, u64) = (62, 500, 400);
/// Shortest requested length, in tokens, unless the part is shorter.
const LEAST_TARGET: u64 = 16;
/// Shortest clip of a piece, in characters.
const LEAST_CHARS: usize = 40;

/// Division of a window between source, merge and answer.
#[derive(Debug, Clone, Copy)]
struct Division {
    /// Tokens for source and answer together.
    room: u64,
    /// Length of the summary at the end, in tokens.
    target: u64,
    /// Tokens that the summaries of the parts may take together, to be merged by one call.
    merge: u64,
}

impl Division {
    /// Length of an answer as a share of its part, in thousandths. The answers for all `total` tokens then fill the
    /// merge.
    fn answer_share(&self, request: &SummaryRequest<'_>, total: u64) -> u64 {
        let wanted = request.target_tokens.min(self.merge * 4 / 5);
        let (least, messages, summaries) = SHARES;
        let most = match request.depth() {
            0 => messages,
            _ => summaries,
        };
        (wanted * 1_000 / total).clamp(least, most)
    }

    /// Maximum cost of a part with an answer of this share, in thousandths: part and answer together fill the room,
    /// part + 3/2 × share × part.
    fn group_room(&self, share: u64) -> u64 {
        let most = self.room.saturating_sub(answer_room(LEAST_TARGET));
        (self.room * 2_000 / (2_000 + 3 * share)).min(most)
    }
}

/// The summary of a part of a source.
struct PartSummary {
    range: SeqRange,
    depth: u32,
    text: String,
    tokens: u64,
    earliest_at: Timestamp,
    latest_at: Timestamp,
}

impl PartSummary {
    /// Returns the summary of a part, cut to twice its target, so that all parts together are shorter
    /// than their source; `None` if the text is blank.
    fn new(request: &SummaryRequest<'_>, text: &str) -> Option<Self> {
        let most = request.target_tokens.saturating_mul(2).max(1);
        let text = cut_to_tokens(text, most, request.estimator)?;
        let (earliest_at, latest_at) = request.times().unwrap_or_default();
        Some(Self {
            range: request.range()?,
            depth: request.depth(),
            tokens: request.estimator.text(&text),
            text,
            earliest_at,
            latest_at,
        })
    }

    fn source(&self) -> Source<'_> {
        Source::Summary(SummarySource {
            id: "",
            range: self.range,
            depth: self.depth,
            text: &self.text,
            ranks: None,
            tokens: self.tokens,
            earliest_at: self.earliest_at,
            latest_at: self.latest_at,
        })
    }
}

/// Neighbouring pieces of a source for one call.
struct Group {
    first: usize,
    end: usize,
    /// Clip of its pieces in the prompt.
    clip: Clip,
    /// Cost of its pieces as shown, in tokens.
    tokens: u64,
}

/// Result of a pass over a source.
enum Pass {
    Parts(Vec<PartSummary>),
    /// The provider stopped the model in a part.
    Stopped(SummarizerResponse),
}

/// Summarises a source part by part, and then the summaries, until one summary remains.
pub(super) async fn summarize(
    asker: &mut Asker<'_>,
    request: &SummaryRequest<'_>,
    window: ModelWindow,
) -> Result<SummarizerResponse, Error> {
    let division = divide(asker, request, window)?;
    let mut asked = 0;
    let mut made = match pass(asker, request, window, division, &mut asked).await? {
        Pass::Parts(made) => made,
        Pass::Stopped(text) => return Ok(text),
    };
    loop {
        if made.len() < 2 {
            let text = made.pop().map_or_else(String::new, |part| part.text);
            return Ok(SummarizerResponse::new(text));
        }
        let pieces: Vec<Source<'_>> = made.iter().map(PartSummary::source).collect();
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

/// Minimum number of calls for a summary in parts: one for each part, and one to merge them.
pub(super) fn calls_needed(
    asker: &Asker<'_>,
    request: &SummaryRequest<'_>,
    window: ModelWindow,
) -> u64 {
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
    window: ModelWindow,
) -> Result<Division, Error> {
    let mut empty = request.with_source(&[]);
    let mut fixed = 0;
    for style in [Style::Normal, Style::Aggressive] {
        empty.style = style;
        fixed = fixed.max(input(&asker.prompts.render(&empty), request));
    }
    // The merge has a different prompt.
    let merged = SummarySource {
        id: "",
        range: request
            .range()
            .unwrap_or(SeqRange::single(memory_model::Seq::FIRST)),
        depth: request.depth(),
        text: "",
        ranks: None,
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
    window: ModelWindow,
    division: Division,
    asked: &mut u32,
) -> Result<Pass, Error> {
    let (groups, share) = group(asker, request, window, division)?;
    let parts = u32::try_from(groups.len()).unwrap_or(u32::MAX);
    let merge = u32::from(parts > 1);
    if asked.saturating_add(parts).saturating_add(merge) > window.max_calls {
        // Calls for a summary that cannot be completed are not paid for.
        return Err(asker.too_long(request, window));
    }
    *asked = asked.saturating_add(parts);
    let mut made = Vec::with_capacity(groups.len());
    for group in &groups {
        let pieces = request.source.get(group.first..group.end);
        let mut part = request.with_source(pieces.unwrap_or_default());
        let target = match parts {
            1 => answer_in(division.room.saturating_sub(group.tokens)),
            _ => (group.tokens * share / 1_000).max(LEAST_TARGET),
        };
        let most = request.target_tokens.min(part.source_tokens());
        part.target_tokens = target.min(most).max(1);
        let answer = ask_for_part(asker, &mut part, group, window).await?;
        if answer.stop != Stop::Complete {
            // A summary without one of its parts is none.
            return Ok(Pass::Stopped(SummarizerResponse {
                stop: answer.stop,
                ..SummarizerResponse::default()
            }));
        }
        let Some(part) = PartSummary::new(&part, &answer.text) else {
            let what = format!("it wrote no text for part {} of {parts}", made.len() + 1);
            let failure = Failure::new(FailureKind::Empty, what);
            return Err(Error::provider(asker.id, failure));
        };
        made.push(part);
    }
    Ok(Pass::Parts(made))
}

/// Requests the summary of a part, and a shorter one if the answer is cut off.
async fn ask_for_part(
    asker: &mut Asker<'_>,
    part: &mut SummaryRequest<'_>,
    group: &Group,
    window: ModelWindow,
) -> Result<SummarizerResponse, Error> {
    let answer = ask_once(asker, part, group, window).await?;
    if answer.stop != Stop::CutOff {
        return Ok(answer);
    }
    part.style = Style::Aggressive;
    part.target_tokens = (part.target_tokens / 2).max(1);
    ask_once(asker, part, group, window).await
}

async fn ask_once(
    asker: &mut Asker<'_>,
    part: &SummaryRequest<'_>,
    group: &Group,
    window: ModelWindow,
) -> Result<SummarizerResponse, Error> {
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
    window: ModelWindow,
    division: Division,
) -> Result<(Vec<Group>, u64), Error> {
    let unclipped = asker.prompts.clip;
    let pieces = request.source.iter();
    let shown: Vec<u64> = pieces
        .map(|piece| shown_tokens(piece, unclipped, request))
        .collect();
    let total = shown.iter().sum::<u64>().max(1);
    let share = division.answer_share(request, total);
    let room = division.group_room(share);
    // Groups of about the same size.
    let even = total.div_ceil(total.div_ceil(room.max(1)));
    let mut groups: Vec<Group> = Vec::new();
    for ((at, piece), tokens) in request.source.iter().enumerate().zip(shown) {
        let fitting = match tokens <= room {
            true => Some((unclipped, tokens)),
            false => clip_to(room, piece, unclipped, request),
        };
        let Some((clip, tokens)) = fitting else {
            return Err(asker.too_long(request, window));
        };
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

/// Cost of a piece as a prompt shows it, in tokens.
fn shown_tokens(piece: &Source<'_>, clip: Clip, request: &SummaryRequest<'_>) -> u64 {
    let tokens = request.estimator.text(&piece_text(piece, clip));
    tokens.saturating_add(1)
}

/// The longest clip under which a piece costs at most `room` tokens, and its cost; `None` if almost none of the piece
/// would be shown.
fn clip_to(
    room: u64,
    piece: &Source<'_>,
    clip: Clip,
    request: &SummaryRequest<'_>,
) -> Option<(Clip, u64)> {
    let mut chars = usize::try_from(room.saturating_mul(4)).unwrap_or(usize::MAX);
    while chars >= LEAST_CHARS {
        let clip = clip.at_most(chars);
        let tokens = shown_tokens(piece, clip, request);
        if tokens <= room {
            return Some((clip, tokens));
        }
        chars = chars / 4 * 3;
    }
    None
}
