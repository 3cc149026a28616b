//! Builds an index segment from messages or summaries.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use memory_model::{EntryKind, LogEntry, Summary};

use super::dictionary::DictionaryWriter;
use super::grams::{GROUP, Gram, add_grams, text_of};
use super::postings::PostingList;
use super::record::write;
use super::unbroken::{SHORTEST, longest_unbroken};
use super::{SegmentData, UNBROKEN, gram_key, tool_key, word_key};
use crate::calls::CallNames;
use crate::ranking::{Document, Record, SummaryRecord};
use sentence_model::fold::{compared_forms, composed};
use sentence_model::words::{Language, Tokenizer, WordLists, is_stop_word};

/// Name of the segments' format. Segments of another format are not read.
pub(crate) const FORMAT: &str = "segments-5 english forms";

/// Returns the terms under which a segment may list a word with the stem `term`. Irregular forms are listed under their
/// usual form.
pub(crate) fn variants(term: &str) -> Vec<String> {
    let mut variants = vec![term.to_owned()];
    if let Some(language) = Language::of_word(term) {
        variants.extend(WordLists::of(language).usual_stems(language, term));
    }
    variants
}

/// The occurrences of a word in one document.
#[derive(Debug, Default)]
struct Occurrences {
    count: u32,
    positions: Vec<u32>,
}

/// Builds a segment. Documents must be added in the order of the log.
#[derive(Debug, Default)]
pub(crate) struct SegmentBuilder {
    records: Vec<Record>,
    words: HashMap<String, PostingList>,
    tools: BTreeMap<String, PostingList>,
    /// Documents by the length of their longest stretch without white space.
    unbroken: BTreeMap<u8, PostingList>,
    /// The runs of characters in the current group of documents.
    grams: Vec<Gram>,
    /// Pairs of a run of characters and a group that contains it.
    groups: Vec<(Gram, u32)>,
}

impl SegmentBuilder {
    /// Creates a builder without documents.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a message. Notes are ignored. `calls` contains the tool calls before the message.
    pub(crate) fn add_message(&mut self, entry: &LogEntry, calls: &CallNames) {
        if entry.kind == EntryKind::Note {
            return;
        }
        let place = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        for tool in calls.tools(entry).collect::<BTreeSet<_>>() {
            let places = self.tools.entry(tool.to_owned()).or_default();
            places.push_place(place);
        }
        let document = Document::without_echoes(entry, calls);
        let is_echo = document.is_none();
        let document = document.unwrap_or_else(|| Document {
            name: entry.message.name.as_deref(),
            role: Some(entry.role),
            created_at: entry.created_at,
            texts: Vec::new(),
        });
        let mut texts: Vec<Cow<'_, str>> = Vec::new();
        for part in entry.message.parts.iter().filter(|_| !is_echo) {
            if !calls.is_echo(entry, part) {
                part.visit_texts(&mut |text| texts.push(text));
            }
        }
        let record = Record::of(&document);
        self.add(&document, &texts, |length| Record {
            seq: entry.seq,
            length,
            is_echo,
            ..record
        });
    }

    /// Adds a summary.
    pub(crate) fn add_summary(&mut self, summary: &Summary) {
        let document = Document::of_summary(summary);
        let texts = document.texts.clone();
        let record = Record::of(&document);
        self.add(&document, &texts, |length| Record {
            seq: summary.range.last,
            length,
            summary: Some(SummaryRecord {
                id: summary.id.clone(),
                range: summary.range,
                times: (summary.earliest_at, summary.latest_at),
            }),
            ..record
        });
    }

    fn add(
        &mut self,
        document: &Document<'_>,
        texts: &[Cow<'_, str>],
        record: impl FnOnce(u32) -> Record,
    ) {
        let place = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        let mut found: HashMap<String, Occurrences> = HashMap::new();
        let (mut length, mut position) = (0, 0);
        for text in document.composed_texts() {
            Tokenizer::RANKING.visit_text(&text, &mut |range, term| {
                length += 1;
                let occurrences = found.entry(term).or_default();
                occurrences.count += 1;
                if !is_stop_word(text.get(range).unwrap_or_default()) {
                    occurrences.positions.push(position);
                    position += 1;
                }
            });
        }
        // Texts that are searched but not ranked: the raw text of arguments.
        for text in texts.iter().filter(|text| !document.texts.contains(text)) {
            Tokenizer::RANKING.visit_text(&composed(text), &mut |_, term| {
                found.entry(term).or_default();
            });
        }
        #[expect(
            clippy::iter_over_hash_type,
            reason = "each term has a list of its own"
        )]
        for (term, occurrences) in found {
            let list = self.words.entry(term).or_default();
            list.push_word(place, occurrences.count, &occurrences.positions);
        }
        let mut longest = None;
        for form in texts.iter().flat_map(|text| compared_forms(text)) {
            add_grams(&form, &mut self.grams);
            if self.grams.len() > 1 << 16 {
                self.grams.sort_unstable();
                self.grams.dedup();
            }
            longest = longest.max(Some(longest_unbroken(&form)));
        }
        if let Some(longest @ SHORTEST..) = longest {
            self.unbroken.entry(longest).or_default().push_place(place);
        }
        self.records.push(record(length));
        if self.records.len().is_multiple_of(GROUP as usize) {
            self.close_group();
        }
    }

    fn close_group(&mut self) {
        let group = self.records.len().saturating_sub(1) / GROUP as usize;
        let group = u32::try_from(group).unwrap_or(u32::MAX);
        self.grams.sort_unstable();
        self.grams.dedup();
        self.groups
            .extend(self.grams.drain(..).map(|gram| (gram, group)));
    }

    /// Returns the finished segment.
    pub(crate) fn finish(mut self) -> SegmentData {
        if !self.grams.is_empty() {
            self.close_group();
        }
        let mut writer = DictionaryWriter::default();
        // Sections are written in the order of their keys. Runs have the same order as their texts.
        self.groups.sort_unstable();
        let mut rest = self.groups.as_slice();
        while let Some((gram, _)) = rest.first() {
            let (same, others) = rest.split_at(rest.partition_point(|(other, _)| other == gram));
            let mut list = PostingList::default();
            same.iter().for_each(|(_, group)| list.push_place(*group));
            writer.push(&gram_key(&text_of(*gram)), &list);
            rest = others;
        }
        for (longest, list) in &self.unbroken {
            writer.push(&[UNBROKEN, *longest], list);
        }
        for (tool, list) in &self.tools {
            writer.push(&tool_key(tool), list);
        }
        let words: BTreeMap<String, PostingList> = self.words.into_iter().collect();
        for (term, list) in &words {
            writer.push(&word_key(term), list);
        }
        let mut chunks = write(&self.records);
        chunks.extend(writer.finish());
        SegmentData {
            documents: u32::try_from(self.records.len()).unwrap_or(u32::MAX),
            chunks,
        }
    }
}
