//! `grep` over all conversations of a tool set, with one answer and one cursor.

use std::fmt::Write as _;
use std::ops::Not;

use memory_model::SessionKey;
use memory_search::{AUTO_STAGES, Fallback, HitOrder, SearchMode, SearchScope};
use serde::Serialize;

use crate::arguments::Arguments as _;
use crate::cursor::foreign;
use crate::error::Result;
use crate::grep::{GrepAnswer, GrepArgs, GrepHit};
use crate::retrieval::Retrieval;
use crate::room::Room;
use crate::set::RetrievalSet;
use crate::text::{go_on, short};
use crate::tools::{Extra, no_tool};

/// A hit of a search over several sessions (conversations), with the session that contains it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionHit {
    /// Key of the session that contains the hit.
    pub session: SessionKey,
    /// The message or summary that was found. Scores of hits from different sessions are not comparable.
    #[serde(flatten)]
    pub hit: GrepHit,
}

/// Answer of [`RetrievalSet::grep`], a search over several sessions (conversations). Serializes to JSON for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionsAnswer {
    /// The pattern of the request.
    pub pattern: String,
    /// Mode in which the pattern was interpreted. For a request with [`SearchMode::Auto`]: the first mode in which any
    /// session has a hit or was not searched to its end, or `Auto` if there is no such mode.
    pub mode: SearchMode,
    /// Kind of content that was searched in each session: messages, summaries or both.
    pub scope: SearchScope,
    /// Description of the search that was made in place of the requested search. `None` if the requested search was
    /// made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Note for the reader that the search index of a session is damaged. `None` if no damage was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// Number of sessions that were searched.
    pub sessions: usize,
    /// Whether this is the last answer: `true` if no more hits follow.
    pub complete: bool,
    /// Cursor for the next hits, to pass in [`GrepArgs::cursor`]. `None` if the answer is complete. A cursor is valid
    /// only for the same sessions and the same search.
    pub cursor: Option<String>,
    /// Whether the time limit of the call ended the search early. The answer may then have fewer hits than requested.
    #[serde(skip_serializing_if = "Not::not")]
    pub stopped: bool,
    /// The hits. In the order `Relevance`: first the best hit of each session, in the order of the sessions in the set,
    /// then the second hit of each session, and so on. In the other orders: the hits of all sessions, merged by their
    /// times.
    pub hits: Vec<SessionHit>,
}

impl SessionsAnswer {
    /// Returns the answer as text for a model. Each hit is written as in [`GrepAnswer::to_text`], with the key of its
    /// session before it.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for note in self.note.into_iter().chain(self.fallback.as_deref()) {
            let _ = writeln!(out, "Note: {note}.");
        }
        for (index, hit) in self.hits.iter().enumerate() {
            let _ = write!(out, "{}. ", index + 1);
            hit.write(&mut out);
        }
        let sessions = self.sessions;
        match (&self.cursor, self.hits.is_empty()) {
            (None, true) => {
                let _ = writeln!(out, "No matches found in {sessions} sessions.");
            }
            (None, false) => {
                let _ = writeln!(out, "These are all matches in {sessions} sessions.");
            }
            (Some(cursor), is_empty) => {
                let so_far = if is_empty { "No matches so far. " } else { "" };
                let next = go_on("There are more:", self.stopped || is_empty, cursor);
                let _ = writeln!(out, "{so_far}{next}.");
            }
        }
        out
    }
}

impl SessionHit {
    fn write(&self, out: &mut String) {
        let _ = write!(out, "session {} ", short(self.session.as_str()));
        self.hit.write(out);
    }
}

/// Position of a session in the combined answer: which of its hits earlier answers contained.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SessionPosition {
    Begin,
    /// Number of returned hits of the session, and the cursor of the session after them.
    At(usize, String),
    Done,
}

/// First letter of the cursors of a search with an explicitly requested mode.
const ASKED: char = 'm';

fn write_cursor(stage: char, places: &[SessionPosition]) -> String {
    let mut out = String::from(stage);
    for place in places {
        match place {
            SessionPosition::Begin => out.push('.'),
            SessionPosition::Done => out.push('-'),
            SessionPosition::At(given, cursor) => {
                let _ = write!(out, "{given}/{}:{cursor}", cursor.len());
            }
        }
    }
    out
}

/// Reads a cursor. Returns its first letter, and the position in each of `count` sessions. The search of each session
/// later checks the part of the cursor that belongs to it.
fn read_cursor(text: &str, count: usize) -> Result<(char, Vec<SessionPosition>)> {
    let mut chars = text.trim().chars();
    let stage = chars.next().ok_or_else(|| foreign(text))?;
    let (mut rest, mut places) = (chars.as_str(), Vec::new());
    while !rest.is_empty() && places.len() < count {
        if let Some(behind) = rest.strip_prefix('.') {
            (rest, _) = (behind, places.push(SessionPosition::Begin));
        } else if let Some(behind) = rest.strip_prefix('-') {
            (rest, _) = (behind, places.push(SessionPosition::Done));
        } else {
            let (figures, behind) = rest.split_once(':').ok_or_else(|| foreign(text))?;
            let (given, length) = figures.split_once('/').ok_or_else(|| foreign(text))?;
            let number = |digits: &str| digits.parse::<u32>().map_err(|_| foreign(text));
            let (given, length) = (number(given)? as usize, number(length)? as usize);
            let split = behind.split_at_checked(length);
            let (cursor, behind) = split.ok_or_else(|| foreign(text))?;
            places.push(SessionPosition::At(given, cursor.to_owned()));
            rest = behind;
        }
    }
    match rest.is_empty() && places.len() == count {
        true => Ok((stage, places)),
        false => Err(foreign(text)),
    }
}

/// The answer of one session, and the number of its hits that were moved to the combined answer.
struct SessionHits {
    begin: SessionPosition,
    /// `None` if earlier answers contained all hits of the session.
    answer: Option<GrepAnswer>,
    /// Number of hits of the session in this combined answer.
    taken: usize,
}

impl SessionHits {
    /// Returns the number of hits of the session in this and all earlier answers.
    fn given(&self) -> usize {
        match &self.begin {
            SessionPosition::At(given, _) => given + self.taken,
            SessionPosition::Begin | SessionPosition::Done => self.taken,
        }
    }

    fn next(&self) -> Option<&GrepHit> {
        self.answer.as_ref()?.hits.get(self.taken)
    }

    /// Returns the position after the hits in this combined answer.
    fn place(&self) -> SessionPosition {
        let Some(answer) = &self.answer else {
            return SessionPosition::Done;
        };
        let cursor = match self.taken {
            taken if taken == answer.hits.len() => answer.cursor.as_ref(),
            0 => return self.begin.clone(),
            taken => answer.hits.get(taken - 1).map(|hit| &hit.cursor),
        };
        cursor.map_or(SessionPosition::Done, |cursor| {
            SessionPosition::At(self.given(), cursor.clone())
        })
    }

    /// Returns whether the session may have more hits, but the next one was not read yet.
    fn is_short(&self) -> bool {
        let more = |answer: &GrepAnswer| answer.cursor.is_some();
        self.next().is_none() && self.answer.as_ref().is_some_and(more)
    }
}

/// Returns the index of the session with the next hit. `None` at the end, or if the next hit of a session was not read
/// yet.
fn next_of(found: &[SessionHits], order: HitOrder) -> Option<usize> {
    let heads = found.iter().enumerate();
    if order == HitOrder::Relevance {
        let open = heads.filter(|(_, one)| one.next().is_some() || one.is_short());
        let (at, next) = open.min_by_key(|(_, one)| one.given())?;
        return (!next.is_short()).then_some(at);
    }
    if found.iter().any(SessionHits::is_short) {
        return None;
    }
    let heads = heads.filter_map(|(at, one)| Some((one.next()?.created_at, at)));
    let (_, at) = match order {
        HitOrder::Newest => heads.max_by_key(|(time, at)| (*time, std::cmp::Reverse(*at))),
        _ => heads.min(),
    }?;
    Some(at)
}

impl RetrievalSet {
    /// Searches all conversations of the set for which the tool `memory_grep` is permitted, and returns the hits of all
    /// of them. Each conversation is ranked separately, so the scores of different conversations are not comparable.
    /// [`SessionsAnswer::hits`] describes the order.
    ///
    /// # Errors
    /// The errors of [`Retrieval::grep`]. `Invalid` also for a cursor of a search over other sessions.
    pub async fn grep(&self, args: impl Into<GrepArgs> + Send) -> Result<SessionsAnswer> {
        let args = args.into();
        let members: Vec<(&SessionKey, &Retrieval)> = self
            .members()
            .filter(|(_, tools)| tools.grant.allows(GrepArgs::NAME))
            .collect();
        let Some((_, first)) = members.first() else {
            return Err(no_tool(GrepArgs::NAME, Extra::default()));
        };
        let (only, places) = match &args.cursor {
            Some(cursor) => {
                let (stage, places) = read_cursor(cursor, members.len())?;
                (Some(stage), places)
            }
            None => (None, vec![SessionPosition::Begin; members.len()]),
        };
        let mut answer = SessionsAnswer {
            pattern: args.pattern.clone(),
            mode: args.mode,
            scope: args.scope,
            fallback: None,
            note: None,
            sessions: members.len(),
            complete: true,
            cursor: None,
            stopped: false,
            hits: Vec::new(),
        };
        for (stage, mode, fallback) in stages(&args, only)? {
            let mut found = search_each(&members, &places, &args, mode).await?;
            let answers = || found.iter().filter_map(|one| one.answer.as_ref());
            answer.note = answer.note.or_else(|| answers().find_map(|one| one.note));
            let found_fallback = answers().find_map(|one| one.fallback.clone());
            let is_nothing = |one: &SessionHits| one.next().is_none() && !one.is_short();
            if only.is_none() && found.iter().all(is_nothing) {
                let of_pattern = found_fallback.filter(Fallback::is_of_pattern);
                answer.fallback = of_pattern.map(|fallback| fallback.to_string());
                continue;
            }
            answer.stopped = answers().any(|one| one.stopped);
            answer.mode = mode;
            answer.fallback = found_fallback
                .or(fallback)
                .map(|fallback| fallback.to_string());
            let limits = members.iter().map(|(_, tools)| tools.limits());
            let limits = limits.reduce(|one, other| one.within(&other));
            let limits = limits.unwrap_or_default();
            let frame = first.room(limits.answer_tokens);
            let mut room = frame.clone();
            let mut taken = Vec::new();
            while answer.hits.len() < limits.hits(args.limit)
                && let Some(at) = next_of(&found, args.order)
                && let (Some((key, _)), Some(one)) = (members.get(at), found.get_mut(at))
                && answer.take(key, one, &mut room)
            {
                taken.push(at);
            }
            // The cursor of many sessions can be long.
            let fits =
                |answer: &SessionsAnswer| first.reply.is_none() || frame.holds(&answer.to_text());
            answer.close(stage, &mut found, taken, fits);
            return Ok(answer);
        }
        Ok(answer)
    }
}

/// Returns the stages of a search: the modes to try in order, each with its letter in cursors and the fallback to report.
/// `only` is the letter of a cursor, which continues its own stage.
fn stages(
    args: &GrepArgs,
    only: Option<char>,
) -> Result<Vec<(char, SearchMode, Option<Fallback>)>> {
    let mut stages = match args.mode {
        SearchMode::Auto => AUTO_STAGES.to_vec(),
        mode => vec![(ASKED, mode, None)],
    };
    match only {
        Some(only) => stages.retain(|(stage, ..)| *stage == only),
        // The pattern is too long for the modes `Literal` and `Words`.
        None if args.query(1).has_long_pattern() => drop(stages.drain(..stages.len() - 1)),
        None => {}
    }
    match stages.is_empty() {
        true => Err(foreign(args.cursor.as_deref().unwrap_or_default())),
        false => Ok(stages),
    }
}

/// Searches each session in one mode, from its position on.
async fn search_each(
    members: &[(&SessionKey, &Retrieval)],
    places: &[SessionPosition],
    args: &GrepArgs,
    mode: SearchMode,
) -> Result<Vec<SessionHits>> {
    let mut found = Vec::with_capacity(members.len());
    for ((_, tools), begin) in members.iter().zip(places) {
        let asked = GrepArgs {
            mode,
            cursor: match begin {
                SessionPosition::At(_, cursor) => Some(cursor.clone()),
                SessionPosition::Begin | SessionPosition::Done => None,
            },
            ..args.clone()
        };
        let answer = match begin {
            SessionPosition::Done => None,
            _ => Some(tools.answer_grep(&asked, false).await?),
        };
        found.push(SessionHits {
            begin: begin.clone(),
            answer,
            taken: 0,
        });
    }
    Ok(found)
}

impl SessionsAnswer {
    /// Adds the next hit of a session if it fits in the room. The first hit is always added. Returns whether a hit was
    /// added.
    fn take(&mut self, key: &SessionKey, found: &mut SessionHits, room: &mut Room<'_>) -> bool {
        let Some(hit) = found.next().cloned() else {
            return false;
        };
        let hit = SessionHit {
            session: key.clone(),
            hit,
        };
        let mut line = String::from("100. ");
        hit.write(&mut line);
        if !room.take(&line) && !self.hits.is_empty() {
            return false;
        }
        found.taken += 1;
        self.hits.push(hit);
        true
    }

    /// Sets the cursor after the hits. Removes the last hits until the answer fits with it, but never the first one.
    /// `taken` has the session of each hit, in order.
    fn close(
        &mut self,
        stage: char,
        found: &mut [SessionHits],
        mut taken: Vec<usize>,
        fits: impl Fn(&Self) -> bool,
    ) {
        loop {
            let next: Vec<SessionPosition> = found.iter().map(SessionHits::place).collect();
            self.complete = next.iter().all(|place| *place == SessionPosition::Done);
            self.cursor = (!self.complete).then(|| write_cursor(stage, &next));
            if fits(self) {
                break;
            }
            let Some(at) = taken.pop().filter(|_| !taken.is_empty()) else {
                break;
            };
            self.hits.pop();
            found.get_mut(at).into_iter().for_each(|one| one.taken -= 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_read_back() {
        let places = [
            SessionPosition::Begin,
            SessionPosition::At(12, "lm7@0123abcd".to_owned()),
            SessionPosition::Done,
            SessionPosition::At(3, "-.3:@".to_owned()),
        ];
        let text = write_cursor('l', &places);
        assert_eq!(read_cursor(&text, 4).unwrap(), ('l', places.to_vec()));
        for (text, count) in [
            (text.as_str(), 3),
            (text.as_str(), 5),
            ("", 1),
            ("l", 1),
            ("l5:short", 1),
            ("l1/9:short", 1),
            ("l1/x:short", 1),
            ("l1/1:緑", 1),
        ] {
            assert!(read_cursor(text, count).is_err(), "{text:?}");
        }
    }
}
