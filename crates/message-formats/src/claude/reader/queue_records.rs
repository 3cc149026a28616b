//! Adds the words that were said from the queue, once each.

use memory_model::{EntryKind, Message, Part, Role, short_hash};

use super::Reader;
use crate::claude::attachment;
use crate::claude::queue::Queued;
use crate::claude::tree::Step;
use crate::made_id::QUEUED;
use crate::raw::RawObject;
use crate::session::note;

impl Reader {
    /// Returns what was said from the queue already of a line with the same words. The queue then forgets the words.
    /// Returns `None` if the words were not said.
    pub(super) fn said_from_queue(
        &mut self,
        tag: &str,
        object: &RawObject<'_>,
        message: &Message,
    ) -> Option<Vec<Part>> {
        if message.kind != EntryKind::Message {
            return None;
        }
        match tag {
            "attachment" if attachment::is_queued_command(object) => self.queue.attached(message),
            "user" if message.role == Role::User => self.queue.typed(message),
            _ => None,
        }
    }

    /// Adds the words that were said from the queue by now. `next` means that another record follows.
    pub(super) fn push_queued(&mut self, next: bool) {
        for Queued { message, line, .. } in self.queue.due(next) {
            // Words that were sent twice before an answer are the same words.
            let message = match self.has_just_said(&message) {
                true => note(Role::User, &line),
                false => message,
            };
            self.push_record(message, &line);
        }
    }

    /// Returns whether the last message of the branch in use equals a message.
    fn has_just_said(&self, message: &Message) -> bool {
        let Some(log) = self.sessions.get(self.current).map(|chain| &chain.log) else {
            return false;
        };
        let is_message = |at: &usize| {
            log.head(*at)
                .is_some_and(|head| head.kind == EntryKind::Message)
        };
        let last = (0..log.len()).rev().find(is_message);
        last.and_then(|last| log.message(last))
            .is_some_and(|last| last.role == message.role && last.parts == message.parts)
    }

    /// Adds a message of a queue record.
    pub(super) fn push_record(&mut self, mut message: Message, line: &str) {
        // A repeated record makes no second message.
        let id = format!("{QUEUED}{}", short_hash(line));
        if !message.created_at.is_known()
            && let Some(line) = RawObject::parse(line)
        {
            let time = line.time("timestamp");
            message.created_at = time.unwrap_or_default();
        }
        let branch = *self.queued.entry(id.clone()).or_insert(self.current);
        let pushed = self.push(branch, message, Some(id), line);
        if let Some(chain) = self.sessions.get_mut(branch).filter(|_| pushed.is_some()) {
            chain.steps.push(Step::beside_the_tree());
        }
    }
}
