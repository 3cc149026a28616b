//! Additions of `grep` to its hits: neighbours, and later contradictions.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{EntryKind, LogEntry, Role, Seq, SeqRange};
use memory_search::{Changes, ErrorKind as SearchErrorKind, Query, SearchMode, SearchScope};
use memory_store::LogRead;

use crate::error::Result;
use crate::grep::{AFTER, BEFORE, GrepAnswer, GrepArgs, GrepHit, LATER, MAX_AROUND, NearMessage};
use crate::renewing::read;
use crate::retrieval::Retrieval;
use crate::room::Room;
use crate::text::clip;

/// Length of the snippet of a neighbour of a hit, in characters.
const NEAR_CHARS: usize = 160;

/// Number of characters of a message that are searched for changes.
const READ_CHARS: usize = 600;

/// Number of candidates for a contradiction.
const CANDIDATES: usize = 40;

/// Number of hits with words that are used in the query for such candidates.
const ASKED_HITS: usize = 3;

/// Maximum length of the pattern in that query, in characters.
const ASKED_PATTERN_CHARS: usize = 2_000;

/// Maximum length of each of these hits in that query, in characters.
const ASKED_CHARS: usize = 120;

impl Retrieval {
    /// Adds the messages before and after each found message, as far as they fit in the room.
    pub(crate) async fn add_around(
        &self,
        around: usize,
        answer: &mut GrepAnswer,
        mut room: Room<'_>,
    ) -> Result<()> {
        let around = u32::try_from(around.min(MAX_AROUND)).unwrap_or_default();
        if around == 0 {
            return Ok(());
        }
        let Some(all) = self.visible().await? else {
            return Ok(());
        };
        room.spend(&answer.to_text(), answer);
        let mut shown: BTreeSet<Seq> = answer.hits.iter().filter_map(|hit| hit.seq).collect();
        for hit in &mut answer.hits {
            let Some(seq) = hit.seq else { continue };
            let first = Seq(seq.0.saturating_sub(around).max(1));
            let last = Seq(seq.0.saturating_add(around));
            let near = SeqRange::new(first, last).and_then(|near| near.intersect(&all));
            let Some(near) = near else { continue };
            let page = self
                .store
                .read(self.conversation, &LogRead::new(near))
                .await?;
            for entry in page.items {
                if entry.kind == EntryKind::Note || shown.contains(&entry.seq) {
                    continue;
                }
                let message = in_short(&entry);
                let (label, side) = match entry.seq < seq {
                    true => (BEFORE, &mut hit.before),
                    false => (AFTER, &mut hit.after),
                };
                if !room.take(&message.line(label), &message) {
                    return Ok(());
                }
                shown.insert(entry.seq);
                side.push(message);
            }
        }
        Ok(())
    }

    /// Adds to each found message the latest message after it that contradicts it, as far as it fits in the room. Makes
    /// one search.
    pub(crate) async fn add_later(
        &self,
        args: &GrepArgs,
        answer: &mut GrepAnswer,
        mut room: Room<'_>,
    ) -> Result<()> {
        let has_messages = answer.hits.iter().any(|hit| hit.seq.is_some());
        if !args.shows_corrections() || !has_messages {
            return Ok(());
        }
        let mut asked = match args.mode {
            SearchMode::Regex => String::new(),
            _ => args.pattern.chars().take(ASKED_PATTERN_CHARS).collect(),
        };
        let said = answer.hits.iter().filter(|hit| hit.seq.is_some());
        for hit in said.take(ASKED_HITS) {
            asked.push(' ');
            asked.extend(hit.snippet.chars().take(ASKED_CHARS));
        }
        let mut query = Query::new(asked)
            .with_mode(SearchMode::Prose)
            .with_scope(SearchScope::Messages)
            .with_limit(CANDIDATES)
            .with_snippet_chars(READ_CHARS);
        query.range = self.grant.range;
        let found = match self.find(&query).await {
            Ok(found) => found.hits,
            // The search does not rank: there are no further messages.
            Err(error) if error.kind() == SearchErrorKind::Unsupported => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let found: Vec<GrepHit> = found.into_iter().map(GrepHit::from).collect();
        let all = || found.iter().chain(&answer.hits);
        let is_agent = all().any(|hit| hit.role == Some(Role::Tool));
        // The hits and the candidates in the order of the log.
        let mut said: BTreeMap<Seq, NearMessage> = BTreeMap::new();
        for hit in all() {
            if let (Some(seq), Some(role)) = (hit.seq, hit.role)
                && role != Role::Tool
            {
                let message = NearMessage {
                    seq,
                    role,
                    snippet: hit.snippet.clone(),
                    created_at: hit.created_at,
                    name: hit.name.clone(),
                };
                said.insert(seq, message);
            }
        }
        let texts = said
            .values()
            .map(|one| read(&one.snippet, Some(one.role), is_agent));
        let texts = texts.collect();
        let changes = Changes::new(texts, &args.pattern);
        room.spend(&answer.to_text(), answer);
        for hit in &mut answer.hits {
            let place = said.keys().position(|seq| Some(*seq) == hit.seq);
            let changes = place.map(|place| changes.of(place)).unwrap_or_default();
            let asked = changes.iter().find(|change| change.is_asked);
            let Some(change) = asked.or(changes.first()) else {
                continue;
            };
            let Some(by) = said.values().nth(change.by) else {
                continue;
            };
            let later = NearMessage {
                snippet: change.statement.to_owned(),
                ..by.clone()
            };
            if room.take(&later.line(LATER), &later) {
                hit.later = Some(later);
            }
        }
        Ok(())
    }
}

/// The beginning of a message's readable text.
fn in_short(entry: &LogEntry) -> NearMessage {
    let mut snippet = String::new();
    entry.visit_texts(&mut |text| {
        if snippet.chars().count() <= NEAR_CHARS {
            if !snippet.is_empty() {
                snippet.push(' ');
            }
            snippet.extend(text.chars().take(NEAR_CHARS + 1));
        }
    });
    NearMessage {
        seq: entry.seq,
        role: entry.role,
        snippet: clip(&snippet, NEAR_CHARS),
        created_at: entry.created_at,
        name: entry.message.name.clone(),
    }
}
