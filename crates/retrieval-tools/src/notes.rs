//! Notes: small text files that a model writes for later, kept in the log of a session.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use memory_model::{
    Accounting, Clock as _, ConversationId, FieldHasher, Hash, LogEntry, Message, RawJson, Seq,
    SeqRange, SystemClock,
};
use memory_store::{
    Append, AppendAt, ConversationRef, ERASED, ErrorKind as StoreErrorKind, LogRead, Store,
};
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::text::short;

/// Maximum length of a path, in bytes.
const MOST_PATH: usize = 240;
/// Maximum size of a note, in bytes.
const MOST_BYTES: usize = 256 << 10;
/// Maximum size of all notes together, in bytes.
const MOST_TOTAL: usize = 4 << 20;
/// Maximum number of notes.
const MOST_NOTES: usize = 1_000;
/// Maximum number of attempts to change the notes while other processes change them.
const ATTEMPTS: u32 = 100;

/// Tool names, arguments and answers of a vendor, which its models know from their training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolNames {
    /// The tools for history and notes of Codex, such as `history_list_windows` and `notes_write_file`.
    ///
    /// Codex calls them `history.list_windows` and so on. The Model Context Protocol allows dots in names, but the
    /// interfaces of OpenAI and Anthropic do not: they allow letters, digits, `_` and `-`. Codex therefore shows a dot
    /// as `_`, and other clients refuse the tool. A name with `_` reaches the model unchanged from every client.
    Codex,
    /// The tool `memory` of the Claude API, with the commands of `memory_20250818`.
    Anthropic,
}

/// Notes of a model: text files with paths such as `plans/first.md`.
///
/// They are kept in the log of a session that has no other purpose. Every change appends an entry, so old versions stay
/// in the log. The external id of the entry is its position, the kind of the change with a mark, and the path, such as
/// `12 write/91b7c0de42a6f835 plan.md`; its text is the text that was written. An erasure keeps external ids. An erased
/// entry therefore removes the note, or the text that it added, and no older version comes back.
///
/// The mark is a hash over the id and a secret that is stored beside the session, and in no entry. A message from
/// elsewhere that has the form of a note therefore changes none.
///
/// Several processes can change the notes of a database at once. A change is computed from the current notes and
/// repeated if another process was faster.
#[derive(Clone)]
pub struct Notes {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) session: ConversationId,
    pub(crate) accounting: Arc<dyn Accounting>,
    /// The secret of a session that has none yet.
    pub(crate) random: [u8; 32],
    /// The notes at the latest known position, so that a call reads only newer entries.
    pub(crate) known: Arc<Mutex<Known>>,
}

/// Texts of the notes, by path.
pub(crate) type Texts = BTreeMap<String, String>;

/// The notes at a position of the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    head: Seq,
    erasures: u64,
    texts: Texts,
    secret: Option<Secret>,
}

/// Key of the secret among the small values of the session.
const SECRET: &str = "notes";

/// The secret of a session's notes.
#[derive(Clone, Serialize, Deserialize)]
struct Secret(Hash);

impl Secret {
    /// Returns the mark of a change at a position.
    fn mark(&self, seq: Seq, kind: &str, path: &str) -> String {
        let mut hasher = FieldHasher::new("agent-memory note");
        hasher.hash(self.0);
        hasher.number(i64::from(seq.0));
        hasher.bytes(kind.as_bytes());
        hasher.bytes(path.as_bytes());
        let mut mark = hasher.finish().to_string();
        mark.truncate(16);
        mark
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notes {{ session: {} }}", self.session)
    }
}

/// A change of one note.
#[derive(Debug)]
pub(crate) enum Change {
    Write(String, String),
    Append(String, String),
    Delete(String),
}

impl Change {
    /// Returns the change that an entry of the log records. `None` for any other entry.
    fn of(entry: &LogEntry, secret: &Secret) -> Option<Self> {
        let mut words = entry.message.external_id.as_deref()?.splitn(3, ' ');
        let (seq, kind, path) = (words.next()?, words.next()?, words.next()?.to_owned());
        let (kind, mark) = kind.split_once('/')?;
        if mark != secret.mark(entry.seq, kind, &path) {
            return None;
        }
        let text = Some(entry.message.text());
        let text = text.filter(|text| text != ERASED && !entry.message.parts.is_empty());
        match kind {
            _ if seq != entry.seq.to_string() => None,
            "write" => Some(text.map_or_else(
                || Self::Delete(path.clone()),
                |text| Self::Write(path.clone(), text),
            )),
            "append" => text.map(|text| Self::Append(path, text)),
            "delete" => Some(Self::Delete(path)),
            _ => None,
        }
    }

    /// Returns the entry that records the change at a position of the log.
    fn entry(&self, seq: Seq, secret: &Secret) -> Message {
        let (kind, path, text) = match self {
            Self::Write(path, text) => ("write", path, text.as_str()),
            Self::Append(path, text) => ("append", path, text.as_str()),
            Self::Delete(path) => ("delete", path, ""),
        };
        let mark = secret.mark(seq, kind, path);
        Message::assistant(text).with_external_id(format!("{seq} {kind}/{mark} {path}"))
    }

    fn apply(self, texts: &mut Texts) {
        match self {
            Self::Write(path, text) => drop(texts.insert(path, text)),
            Self::Append(path, text) => texts.entry(path).or_default().push_str(&text),
            Self::Delete(path) => drop(texts.remove(&path)),
        }
    }
}

impl Notes {
    /// Returns the current notes.
    pub(crate) async fn texts(&self) -> Result<Texts> {
        Ok(self.read().await?.texts)
    }

    /// Returns the secret of the session. Stores the secret if there is none.
    async fn secret(&self) -> Result<Secret> {
        let new = Secret(Hash(self.random));
        let unreadable = |error: &dyn fmt::Display| {
            Error::new(
                ErrorKind::Corrupt,
                format!("the secret of the notes: {error}"),
            )
        };
        loop {
            if let Some(stored) = self.store.state(self.session, SECRET).await? {
                return serde_json::from_str(stored.value.as_str())
                    .map_err(|error| unreadable(&error));
            }
            let value = RawJson::from_value(&new).map_err(|error| unreadable(&error))?;
            match self
                .store
                .put_state(self.session, SECRET, 0, Some(&value))
                .await
            {
                // Another process has stored one.
                Err(error) if error.kind() == StoreErrorKind::Stale => {}
                stored => return stored.map(|_| new).map_err(Error::from),
            }
        }
    }

    async fn read(&self) -> Result<Known> {
        let session = ConversationRef::Id(self.session);
        let info = self.store.conversation(&session).await?.ok_or_else(|| {
            let message = "the session of the notes was deleted: start the server again";
            Error::new(ErrorKind::NotFound, message)
        })?;
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = lock().clone();
        if known.erasures != info.erasures || known.head > info.head {
            known = Known {
                erasures: info.erasures,
                secret: known.secret,
                ..Known::default()
            };
        }
        let secret = match known.secret.take() {
            Some(secret) => secret,
            None => self.secret().await?,
        };
        let mut rest = SeqRange::new(known.head.next(), info.head);
        while let Some(range) = rest {
            let page = self.store.read(self.session, &LogRead::new(range)).await?;
            for change in page
                .items
                .iter()
                .filter_map(|entry| Change::of(entry, &secret))
            {
                change.apply(&mut known.texts);
            }
            rest = page.next;
        }
        known.head = info.head;
        known.secret = Some(secret);
        lock().clone_from(&known);
        Ok(known)
    }

    /// Changes the notes. `plan` computes the changes from the current notes, with the answer for the model. It runs
    /// again if another process changed the notes meanwhile.
    pub(crate) async fn change(
        &self,
        plan: impl Fn(&Texts) -> Result<(Vec<Change>, String)>,
    ) -> Result<String> {
        for _ in 0..ATTEMPTS {
            let known = self.read().await?;
            let secret = match known.secret {
                Some(secret) => secret,
                None => self.secret().await?,
            };
            let (changes, answer) = plan(&known.texts)?;
            let places = (1..).map(|ahead| Seq(known.head.0.saturating_add(ahead)));
            let now = SystemClock.now();
            let entries = changes.iter().zip(places);
            let entries =
                entries.map(|(change, seq)| change.entry(seq, &secret).with_created_at(now));
            let mut append = Append::messages(entries, self.accounting.estimator(), now);
            append.at = AppendAt::Head(known.head);
            let mut texts = known.texts;
            changes
                .into_iter()
                .for_each(|change| change.apply(&mut texts));
            check_size(&texts)?;
            match self.store.append(self.session, &append).await {
                Err(error) if error.kind() == StoreErrorKind::HeadMoved => {}
                done => return done.map(|_| answer).map_err(Error::from),
            }
        }
        Err(Error::invalid(
            "other processes change the notes all the time: repeat the call",
        ))
    }
}

fn check_size(texts: &Texts) -> Result<()> {
    if let Some((path, text)) = texts.iter().find(|(_, text)| text.len() > MOST_BYTES) {
        let bytes = text.len();
        return Err(Error::invalid(format!(
            "{path} would have {bytes} bytes: keep a note below {MOST_BYTES}, in several notes if needed"
        )));
    }
    let total: usize = texts.values().map(String::len).sum();
    if total > MOST_TOTAL || texts.len() > MOST_NOTES {
        return Err(Error::invalid(format!(
            "there would be {} notes of {total} bytes: keep at most {MOST_NOTES} of {MOST_TOTAL} bytes; delete or \
             shorten old ones",
            texts.len()
        )));
    }
    Ok(())
}

/// Returns a path as its names joined by `/`. Empty for the folder of all notes. Refuses every spelling of a path that
/// leads out of this folder on some system.
pub(crate) fn clean(path: &str) -> Result<String> {
    let refused = |problem: &str| {
        Err(Error::invalid(format!(
            "the path {} {problem}: give one such as plan.md or plans/first.md",
            short(path)
        )))
    };
    let is_hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let bytes = path.as_bytes();
    let mut escapes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    let is_drive = matches!(bytes, [drive, b':', ..] if drive.is_ascii_alphabetic());
    if path.len() > MOST_PATH {
        return refused("is too long");
    }
    if path.chars().any(|c| c.is_control() || c == '\\') || is_drive {
        return refused("has a backslash, a drive or a control character");
    }
    if escapes.any(|(at, _)| is_hex(bytes.get(at + 1)) && is_hex(bytes.get(at + 2))) {
        return refused("has a % escape");
    }
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    let is_dots = |name: &&str| {
        let mut chars = name.chars();
        chars.all(|c| c.is_whitespace() || ['.', '．', '․', '‥', '…'].contains(&c))
    };
    if names.iter().any(is_dots) {
        return refused("has a name of dots");
    }
    Ok(names.join("/"))
}

/// Returns whether a path is a folder or lies in it. Every path lies in the folder with the empty path.
pub(crate) fn is_in(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| folder.is_empty() || rest.is_empty() || rest.starts_with('/'))
}

/// Refuses a path for a new note that is a folder, or that has a note in place of a folder.
pub(crate) fn check_new(texts: &Texts, path: &str) -> Result<()> {
    if path.is_empty() {
        return Err(Error::invalid("path is required: give one such as plan.md"));
    }
    let differs = |known: &&String| known.as_str() != path;
    let mut known = texts.keys().filter(differs);
    match known.find(|known| is_in(known, path) || is_in(path, known)) {
        None => Ok(()),
        Some(known) => Err(Error::invalid(format!(
            "{path} cannot be a note beside {known}: a folder and a note cannot have the same path; choose another"
        ))),
    }
}

/// Returns the size of a text for a list, such as `812B` or `1.5K`.
pub(crate) fn size(bytes: usize) -> String {
    let (unit, name) = match bytes {
        0..1_024 => (1, "B"),
        1_024..1_048_576 => (1_024, "K"),
        _ => (1_048_576, "M"),
    };
    match (bytes / unit, bytes % unit * 10 / unit) {
        (whole, 0) => format!("{whole}{name}"),
        (whole, tenth) => format!("{whole}.{tenth}{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spelling_of_a_path_leads_out() {
        for (path, cleaned) in [
            ("plan.md", "plan.md"),
            ("/plans//first draft.md/", "plans/first draft.md"),
            ("", ""),
            ("...md/100%", "...md/100%"),
            (".hidden/緑.md", ".hidden/緑.md"),
        ] {
            assert_eq!(clean(path).unwrap(), cleaned);
        }
        for path in [
            "..",
            "a/../b",
            "a/..",
            "./a",
            ". ./a",
            "．．/a",
            "…",
            "%2e%2e/a",
            "a/%2E%2e/b",
            "%252e/a",
            "a%2fb",
            "a%00",
            "a\0b",
            "a\nb",
            "..\\a",
            "a\\b",
            "C:/a",
            "c:a",
            &"a/".repeat(200),
        ] {
            assert!(clean(path).is_err(), "{path}");
        }
    }

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (0, "0B"),
            (812, "812B"),
            (1_536, "1.5K"),
            (4_096, "4K"),
            (3 << 20, "3M"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
