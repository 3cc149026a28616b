//! Summaries of sources that do not fit in a model's window. Each part of the source is summarized alone, and then the
//! summaries are merged.

use extractive_summarizer::{Source, SummarySource, cut_to_tokens};
use memory_model::{SeqRange, Timestamp};
use model_client::{ChatPrompt, Failure, FailureKind, Stop};

use super::asker::Asker;
use super::window::{ModelWindow, answer_in, answer_room, input};
use crate::criteria::Gate;
use crate::error::Error;
use crate::gate;
use crate::prompt::{Clip, Length, piece_texts};
use crate::refusal::Reason;
use crate::request::{Style, SummaryRequest};
use crate::summarizer::SummarizerResponse;

/// Minimum number of tokens that a window must leave for source and answer together.
const LEAST_ROOM: u64 = 256;
/// Reserve for the tags around a source, in tokens, in addition to the cost of a prompt with an empty source.
const SEAMS: u64 = 64;
/// Length of the summary of a part, as a share of the part's length, in thousandths: minimum, maximum for parts of
/// messages, and maximum for parts of summaries. The maximums make the summaries of each round over the parts shorter
/// than those of the round before.
const SHARES: (u64, u64, u64) = (62, 500, 400);
/// Minimum target length of a part's summary, in tokens. A shorter part has a shorter target.
const LEAST_TARGET: u64 = 16;
/// Minimum number of characters that a prompt shows of a piece (a message or summary) that is too long.
const LEAST_CHARS: usize = 40;

/// Division of a model's window between the source, the merge of summaries, and the answer.
#[derive(Debug, Clone, Copy)]
struct Division {
    /// Tokens for the source and the answer together.
    room: u64,
    /// Target length of the final summary, in tokens.
    target: u64,
    /// Maximum cost of the summaries of all parts together, in tokens, so that one call can merge them.
    merge: u64,
}

impl Division {
    /// Returns the length of a part's summary as a share of the part's length, in thousandths. Within the limits of
    /// [`SHARES`], the summaries of a source of `total` tokens together have the request's target length, but at most
    /// four fifths of the tokens that one call can merge.
    fn answer_share(&self, request: &SummaryRequest<'_>, total: u64) -> u64 {
        let wanted = request.target_tokens.min(self.merge * 4 / 5);
        let (least, messages, summaries) = SHARES;
        let most = match request.depth() {
            0 => messages,
            _ => summaries,
        };
        (wanted * 1_000 / total).clamp(least, most)
    }

    /// Returns the maximum cost of a part, in tokens, if its summary has the length `share`, in thousandths of the
    /// part. Part and answer together fill the room: part + 3/2 × share × part.
    fn group_room(&self, share: u64) -> u64 {
        let most = self.room.saturating_sub(answer_room(LEAST_TARGET));
        (self.room * 2_000 / (2_000 + 3 * share)).min(most)
    }
}

/// Summary of one part of a source.
struct PartSummary {
    range: SeqRange,
    depth: u32,
    text: String,
    tokens: u64,
    earliest_at: Timestamp,
    latest_at: Timestamp,
}

impl PartSummary {
    /// Creates the summary of a part from a model's answer; `None` if the answer is blank. The answer is cut to twice
    /// its target length, so that all summaries together are shorter than their source.
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
            provisional: false,
        })
    }
}

/// Neighbouring pieces of a source (messages and summaries) that one call summarizes.
struct Group {
    first: usize,
    end: usize,
    /// Limit on the characters that the prompt shows of each piece.
    clip: Clip,
    /// Cost of the pieces as the prompt shows them, in tokens.
    tokens: u64,
}

/// Outcome of summarizing all parts of a source once.
enum Pass {
    Parts(Vec<PartSummary>),
    /// The model's answer for a part was stopped early.
    Stopped(SummarizerResponse),
}

/// Summarizes a source part by part. Then summarizes the summaries, until one summary remains.
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
        if let Some(prompt) = window.prompt(asker.prompts, &merge) {
            return asker.ask(&prompt, &merge).await;
        }
        made = match pass(asker, &merge, window, division, &mut asked).await? {
            Pass::Parts(made) => made,
            Pass::Stopped(text) => return Ok(text),
        };
    }
}

/// Returns the minimum number of calls for a summary in parts: one for each part, and one to merge the summaries.
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

/// Divides a model's window between the source, the merge of summaries, and the answer.
fn divide(
    asker: &Asker<'_>,
    request: &SummaryRequest<'_>,
    window: ModelWindow,
) -> Result<Division, Error> {
    let mut empty = request.with_source(&[]);
    let mut fixed = 0;
    // The prompt of a part may say why the answer before was refused.
    let refused = [None, Some(&Reason::CutOff)];
    for (style, refused) in [Style::Normal, Style::Aggressive].into_iter().zip(refused) {
        empty.style = style;
        empty.refused = refused;
        fixed = fixed.max(input(&asker.prompts.render(&empty), request));
    }
    // The prompt of the merge may be longer than the prompt for messages.
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
        provisional: false,
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

/// Divides a source into parts, and summarizes each part once.
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
        // Fails before the calls of this round, so that they are not paid for a summary that cannot be completed.
        return Err(asker.too_long(request, window));
    }
    *asked = asked.saturating_add(parts);
    let mut made = Vec::with_capacity(groups.len());
    for group in &groups {
        let pieces = request.source.get(group.first..group.end);
        let mut part = request.with_source(pieces.unwrap_or_default());
        // The refused summary is that of the whole source.
        part.refused = None;
        let before = made.last().map(|before: &PartSummary| before.text.clone());
        part.previous = before.as_deref().or(part.previous);
        if made.is_empty() {
            part.before = request.before;
        }
        let target = match parts {
            1 => answer_in(division.room.saturating_sub(group.tokens)),
            _ => (group.tokens * share / 1_000).max(LEAST_TARGET),
        };
        let most = request.target_tokens.min(part.source_tokens());
        part.target_tokens = target.min(most).max(1);
        let mut answer = ask_for_part(asker, &mut part, request.previous, group, window).await?;
        if let Some(reason) = refused(&part, &answer) {
            // A part that is no summary would vanish in the merge without a word.
            *asked = asked.saturating_add(1);
            let again = SummaryRequest {
                refused: Some(&reason),
                ..part
            };
            answer = ask_once(asker, &again, group, window).await?;
            answer.refused = refused(&part, &answer);
            if answer.refused.is_some() {
                return Ok(Pass::Stopped(answer));
            }
        }
        if answer.stop != Stop::Complete {
            // Without the summary of one part, the whole summary is incomplete.
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

/// Returns the reason for which a complete answer is no summary of its part.
fn refused(part: &SummaryRequest<'_>, answer: &SummarizerResponse) -> Option<Reason> {
    let criteria = part.gate.map(Gate::of_parts)?;
    let judged = answer.stop == Stop::Complete && !answer.text.trim().is_empty();
    gate::refuses(&criteria, &answer.text, part).filter(|_| judged)
}

/// Requests the summary of a part. If the answer is cut off, requests a shorter summary once. `previous` is what was
/// before the whole source; the prompt shows it if there is no room for what was before the part.
async fn ask_for_part<'a>(
    asker: &mut Asker<'_>,
    part: &mut SummaryRequest<'a>,
    previous: Option<&'a str>,
    group: &Group,
    window: ModelWindow,
) -> Result<SummarizerResponse, Error> {
    if part_prompt(asker, part, group, window).is_none() {
        part.previous = previous;
        part.before = &[];
    }
    let answer = ask_once(asker, part, group, window).await?;
    if answer.stop != Stop::CutOff {
        return Ok(answer);
    }
    part.style = Style::Aggressive;
    part.refused = Some(&Reason::CutOff);
    part.target_tokens = (part.target_tokens / 2).max(1);
    ask_once(asker, part, group, window).await
}

async fn ask_once(
    asker: &mut Asker<'_>,
    part: &SummaryRequest<'_>,
    group: &Group,
    window: ModelWindow,
) -> Result<SummarizerResponse, Error> {
    let Some(prompt) = part_prompt(asker, part, group, window) else {
        return Err(asker.too_long(part, window));
    };
    asker.ask(&prompt, part).await
}

/// Returns the prompt for a part; `None` if it does not fit in the window.
fn part_prompt(
    asker: &Asker<'_>,
    part: &SummaryRequest<'_>,
    group: &Group,
    window: ModelWindow,
) -> Option<ChatPrompt> {
    // The target already follows from the shown source.
    let length = Length::of(part.target_tokens, part);
    let rendered = asker.prompts.render_clipped(part, group.clip, length);
    window.fit(rendered, part)
}

/// Divides a source into groups of neighbouring pieces. Each group fits in the window together with its answer. The
/// second value is the length of an answer as a share of its group, in thousandths.
fn group(
    asker: &Asker<'_>,
    request: &SummaryRequest<'_>,
    window: ModelWindow,
    division: Division,
) -> Result<(Vec<Group>, u64), Error> {
    let clip = request.prompts.unwrap_or(asker.prompts).clip;
    let unclipped = clip.shortest(request.source.len());
    // The shown text of a result may depend on its call, and a part may lack the call.
    let whole = piece_texts(request.source, unclipped, request.conventions);
    let pieces = request.source.iter().zip(&whole);
    let shown: Vec<u64> = pieces
        .map(|(piece, text)| {
            let alone = shown_tokens(piece, unclipped, request);
            alone.max(text_tokens(text, request))
        })
        .collect();
    let total = shown.iter().sum::<u64>().max(1);
    let share = division.answer_share(request, total);
    let room = division.group_room(share);
    // Groups get about the same size.
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

/// Returns the cost of a piece as a prompt shows it, in tokens.
fn shown_tokens(piece: &Source<'_>, clip: Clip, request: &SummaryRequest<'_>) -> u64 {
    let piece = std::slice::from_ref(piece);
    let texts = piece_texts(piece, clip, request.conventions);
    texts.iter().map(|text| text_tokens(text, request)).sum()
}

fn text_tokens(text: &str, request: &SummaryRequest<'_>) -> u64 {
    request.estimator.text(text).saturating_add(1)
}

/// Returns a limit on the shown characters under which a piece costs at most `room` tokens, and the cost of the piece
/// then. Tries larger limits first. `None` if fewer than [`LEAST_CHARS`] characters would be shown.
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
