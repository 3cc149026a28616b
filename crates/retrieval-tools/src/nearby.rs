//! Additions of `grep` to its hits: neighbouring messages and later contradictions.

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

/// Maximum length of the excerpt that is shown of a message directly before or after a search hit, in characters.
const NEAR_CHARS: usize = 160;

/// Maximum length of the part of a message that is compared for contradictions, in characters.
const READ_CHARS: usize = 600;

/// Maximum number of messages that are compared with the hits for contradictions.
const CANDIDATES: usize = 40;

/// Number of hits that add words to the query for these messages.
const ASKED_HITS: usize = 3;

/// Maximum length of the pattern in this query, in characters.
const ASKED_PATTERN_CHARS: usize = 2_000;

/// Maximum length of each hit's text in this query, in characters.
const ASKED_CHARS: usize = 120;

impl Retrieval {
    /// Adds the messages before and after each found message, until the room is full.
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
        room.spend(&answer.to_text());
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
                if !room.take(&message.line(label)) {
                    return Ok(());
                }
                shown.insert(entry.seq);
                side.push(message);
            }
        }
        Ok(())
    }

    /// Adds to each found message the latest message after it that contradicts it, if there is room. Makes one search.
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
            // The search does not rank, so there are no further messages to compare.
            Err(error) if error.kind() == SearchErrorKind::Unsupported => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let found: Vec<GrepHit> = found.into_iter().map(GrepHit::from).collect();
        let all = || found.iter().chain(&answer.hits);
        let is_agent = all().any(|hit| hit.role == Some(Role::Tool));
        // The hits and the further messages, in the order of the log.
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
        room.spend(&answer.to_text());
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
                snippet: change.statement.text().to_owned(),
                ..by.clone()
            };
            if room.take(&later.line(LATER)) {
                hit.later = Some(later);
            }
        }
        Ok(())
    }
}

/// Returns the beginning of a message's readable text.
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
