//! Words that a user typed while the program was busy.
//!
//! The program records that words enter its queue, and later how they leave it: as a prompt (`dequeue`), in the middle
//! of a turn (`remove`), or back to the user (`popAll`). Words that leave as a prompt are repeated in a separate line.
//! For words that leave in the middle of a turn, newer versions write an attachment and announce it by an id or a
//! reason. Older versions write no other copy of these words. A copy can hold more than the words, such as a picture,
//! for which the words have a mark.

use memory_model::{Message, Part, Role};

use crate::Report;
use crate::blocks::{Dialect, set_meta};
use crate::json_lines::Line;
use crate::raw::MetaBuilder;

/// Type of the lines that record how words enter and leave the queue.
pub(super) const QUEUE: &str = "queue-operation";

/// Keys of a line that have fields in its message.
const CARRIED: [&str; 2] = ["content", "timestamp"];

/// Keys of a record that announce an attachment with its words.
const ANNOUNCING: [&str; 3] = ["commandUuid", "deliveryId", "reason"];

/// Beginning of the mark for a picture in a user's words. A number and a bracket follow.
const PICTURE: &str = "[Image #";

/// Words in the queue, as a message.
#[derive(Debug)]
pub(super) struct Queued {
    /// The words by which copies are recognised.
    words: String,
    pub(super) message: Message,
    pub(super) line: String,
    number: u64,
}

/// The queue, and the words that have left it.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Vec<Queued>,
    /// Words that were said in the middle of a turn and have no other copy yet. The flag is true if an attachment is
    /// announced.
    removed: Vec<(Queued, bool)>,
    /// Words of attachments that are still in the queue.
    attached: Vec<String>,
    /// Words that were said from the queue without an attachment, and what was said with them.
    said: Vec<(String, Vec<Part>)>,
    /// Words in `said` since the assistant's last words.
    said_last: Vec<(String, Vec<Part>)>,
    passed_over: u64,
}

impl Queue {
    /// Applies a line about the queue. Returns whether to keep the line as a note: its words went back to the user, who
    /// may have sent other words instead.
    pub(super) fn operation(&mut self, line: &Line<'_>) -> bool {
        let operation = line.string("operation");
        match operation.as_deref() {
            Some("enqueue") => match queued(line) {
                Some(queued) => self.waiting.push(queued),
                None => self.passed_over += 1,
            },
            Some("dequeue") => {
                self.passed_over += 1;
                if let Some(left) = self.leave(line) {
                    self.passed_over += 1;
                    forget(&mut self.attached, |words| *words == left.words);
                }
            }
            Some("remove") => {
                self.passed_over += 1;
                let Some(left) = self.leave(line).or_else(|| queued(line)) else {
                    return false;
                };
                if forget(&mut self.attached, |words| *words == left.words).is_some() {
                    self.passed_over += 1;
                } else {
                    let announced = ANNOUNCING.iter().any(|key| line.object.id(key).is_some());
                    self.removed.push((left, announced));
                }
            }
            Some("popAll") => {
                self.passed_over += self.waiting.len() as u64;
                self.waiting.clear();
                if queued(line).is_some() {
                    return true;
                }
                self.passed_over += 1;
            }
            _ => self.passed_over += 1,
        }
        false
    }

    /// Removes the words that the line names, or else the oldest words, from the queue. Returns `None` if they are not
    /// in the queue.
    fn leave(&mut self, line: &Line<'_>) -> Option<Queued> {
        let named = queued(line).map(|named| named.words);
        let at = match named {
            Some(words) => self
                .waiting
                .iter()
                .position(|queued| queued.words == words)?,
            None if self.waiting.is_empty() => return None,
            None => 0,
        };
        Some(self.waiting.remove(at))
    }

    /// Takes the words of an attachment. Returns what was said of it from the queue before, or `None` if its words were
    /// not said.
    pub(super) fn attached(&mut self, message: &Message) -> Option<Vec<Part>> {
        let words = words_of(message);
        if self.supersede(&words) {
            return None;
        }
        if self.waiting.iter().any(|queued| queued.words == words) {
            self.attached.push(words.clone());
        }
        forget(&mut self.said_last, |(said, _)| *said == words);
        Some(forget(&mut self.said, |(said, _)| *said == words)?.1)
    }

    /// Takes the words of a user's line. Returns what was said of it from the queue since the assistant's last words,
    /// or `None` if its words were not said.
    pub(super) fn typed(&mut self, message: &Message) -> Option<Vec<Part>> {
        let words = words_of(message);
        if self.supersede(&words) {
            return None;
        }
        forget(&mut self.said, |(said, _)| *said == words);
        Some(forget(&mut self.said_last, |(said, _)| *said == words)?.1)
    }

    /// Returns whether words waited for this copy. They then count as passed over.
    fn supersede(&mut self, words: &str) -> bool {
        let same = |(queued, _): &(Queued, bool)| queued.words == words;
        let found = self.removed.iter().position(same);
        if let Some(at) = found {
            self.removed.remove(at);
            self.passed_over += 1;
        }
        found.is_some()
    }

    /// Records that the assistant said something.
    pub(super) fn replied(&mut self) {
        self.said_last.clear();
    }

    /// Returns the words that were said by now: those before the first ones with an announced attachment, or all words
    /// if `next` is set. `next` means that another record follows, which is no copy of the announced words.
    pub(super) fn due(&mut self, next: bool) -> Vec<Queued> {
        let waits = |(_, announced): &(Queued, bool)| *announced && !next;
        let waiting = self.removed.iter().position(waits);
        let due = self.removed.drain(..waiting.unwrap_or(self.removed.len()));
        let due: Vec<Queued> = due.map(|(queued, _)| queued).collect();
        let said = due.iter();
        let said = said.map(|queued| (queued.words.clone(), queued.message.parts.clone()));
        self.said_last.extend(said.clone());
        self.said.extend(said);
        due
    }

    /// Returns whether no later line can refer to words of the queue.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
            && self.removed.is_empty()
            && self.attached.is_empty()
            && self.said.is_empty()
            && self.said_last.is_empty()
    }

    /// Counts the lines that did not become messages, and warns about words that no later line mentions.
    pub(super) fn finish(&self, report: &mut Report) {
        for _ in 0..self.passed_over {
            report.skip(QUEUE);
        }
        let removed = self.removed.iter().map(|(queued, _)| queued);
        for queued in removed.chain(&self.waiting) {
            report.await_more(QUEUE, "queued", queued.number);
        }
    }
}

/// Removes and returns the first item of a list that matches.
fn forget<T>(list: &mut Vec<T>, matches: impl Fn(&T) -> bool) -> Option<T> {
    let found = list.iter().position(matches)?;
    Some(list.remove(found))
}

/// Returns the words of a message without the marks of its pictures and the white space, which its copies may lack.
fn words_of(message: &Message) -> String {
    let text = message.text();
    let mut pieces = text.split(PICTURE);
    let mut words = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let behind = piece.trim_start_matches(|one: char| one.is_ascii_digit());
        match behind
            .strip_prefix(']')
            .filter(|_| behind.len() < piece.len())
        {
            Some(behind) => words.push_str(behind),
            None => words.extend([PICTURE, piece]),
        }
    }
    words.retain(|one| !one.is_whitespace());
    words
}

/// Returns the words of a line, as a user's message.
fn queued(line: &Line<'_>) -> Option<Queued> {
    let object = &line.object;
    let content = object.present("content").filter(|_| !object.repeats())?;
    let mut blocks = MetaBuilder::default();
    let parts = Dialect::Claude.content(content, &mut blocks);
    let mut message = Message::new(Role::User, parts);
    if message.text().trim().is_empty() {
        return None;
    }
    let words = words_of(&message);
    message.created_at = object.time("timestamp").unwrap_or_default();
    let meta = object.facts(&CARRIED);
    set_meta(&mut message, meta, MetaBuilder::default(), blocks);
    Some(Queued {
        words,
        message,
        line: line.text.to_owned(),
        number: line.number,
    })
}
