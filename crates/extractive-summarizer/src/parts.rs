//! Lines of an extract before and after its items (lines about single messages): the header, and lists of files,
//! failures and commands.

use std::collections::{BTreeMap, BTreeSet};

use token_estimate::TokenEstimator;

use crate::folders;
use crate::frame;
use crate::item::{FileStat, Gathered, Item, Kind};
use crate::ledger::{self, Entry};
use crate::shell;
use crate::source::{Source, tokens};

/// Ratio between the length of the messages and the length of their extract. From this ratio on, the extract of
/// messages is as dense as an extract of summaries.
const MUCH_LONGER: u64 = 16;

/// Maximum weight of items (candidate lines) that are printed only after all heavier ones.
pub(crate) const LISTED: u32 = 3;

/// Minimum length of an extract of messages with lists, in tokens. Its shorter forms use the lists.
const DENSE: u64 = 2_500;
/// Minimum length of an extract of summaries with lists, in tokens.
const DENSE_CONDENSED: u64 = 500;

/// Maximum shares of the lists in a text, in per cent.
struct Shares {
    failed: u64,
    ran: u64,
    files: u64,
}

/// Shares of the lists in an extract of messages. The lists serve contexts that show a summary shortened, and these are
/// mostly summaries of summaries. The lists of an extract of messages are therefore small, so that more room is left
/// for its items, from which a summary of this extract takes names.
const SHARES: Shares = Shares {
    failed: 3,
    ran: 0,
    files: 2,
};
/// Shares of the lists in an extract of summaries.
const SHARES_CONDENSED: Shares = Shares {
    failed: 6,
    ran: 4,
    files: 10,
};
/// Maximum cost of a list, in tokens.
const LIST: u64 = 1_000;

/// Room for the lists of an extract.
struct Lists {
    target: u64,
    shares: Option<Shares>,
    dense: bool,
}

impl Lists {
    /// Decides the room for lists. A short extract has no lists.
    fn of(source: &[Source<'_>], target: u64) -> Self {
        let dense = is_dense(source, target);
        let shares = match dense {
            true => (target >= DENSE_CONDENSED).then_some(SHARES_CONDENSED),
            false => (target >= DENSE).then_some(SHARES),
        };
        Self {
            target,
            shares,
            dense,
        }
    }

    /// Returns the maximum cost of a list, in tokens. `list` selects the share of the list.
    fn room(&self, list: impl Fn(&Shares) -> u64) -> u64 {
        let percent = self.shares.as_ref().map_or(0, list);
        (self.target.saturating_mul(percent) / 100).min(LIST)
    }
}

/// Lines of an extract before and after its items (lines about single messages).
pub(crate) struct Parts {
    pub(crate) header: Option<String>,
    pub(crate) failed: Vec<Entry>,
    pub(crate) ran: Vec<Entry>,
    pub(crate) folded: Vec<String>,
    pub(crate) files: Option<String>,
    pub(crate) expand: Option<String>,
}

impl Parts {
    /// Creates the header and the lists. Shortens the names of files in the items if one of these lists names them in
    /// full.
    pub(crate) fn around(
        gathered: &mut Gathered,
        source: &[Source<'_>],
        target: u64,
        estimator: &dyn TokenEstimator,
    ) -> Self {
        let share = |percent: u64| target.saturating_mul(percent) / 100;
        let header = frame::header(gathered, source);
        let header = (estimator.text(&header) < share(20)).then_some(header);
        let lists = Lists::of(source, target);
        let files_room = lists.room(|shares| shares.files);
        let folded = folders::lines(&gathered.files, files_room, estimator);
        // Files that an extract of summaries lists by folder are not listed again.
        let others = match lists.dense {
            true => others(&gathered.files, &folded.listed),
            false => gathered.files.clone(),
        };
        let files = frame::files(&others, share(16), estimator);
        let (files, mut listed) =
            files.map_or_else(Default::default, |(line, named)| (Some(line), named));
        if lists.dense {
            listed.extend(&folded.listed);
        }
        short_names(&mut gathered.items, &gathered.files, &listed);
        let folded = folded.lines;
        let ran = lists.room(|shares| shares.ran);
        let ran = ledger::ran(&gathered.ran, ran, estimator);
        listed_commands(&mut gathered.items, &ran);
        let failed = lists.room(|shares| shares.failed);
        Self {
            header,
            failed: ledger::failed(&gathered.items, failed, estimator),
            ran,
            folded,
            files,
            expand: None,
        }
    }

    /// Returns the lines of the extract that come before its items: the header, if there is one.
    pub(crate) fn above(&self) -> impl Iterator<Item = &str> {
        self.header.as_deref().into_iter()
    }

    /// Returns the lines of the extract that follow its items, in order: failures, commands, whole paths of files,
    /// files by folder, and the list of subjects that were left out.
    pub(crate) fn below(&self) -> impl Iterator<Item = &str> {
        let entries = self.failed.iter().chain(&self.ran);
        let entries = entries.map(|entry| entry.text.as_str());
        let folded = self.folded.iter().map(String::as_str);
        // The paths after the line that names a folder are relative to this folder, so other files come before it.
        entries
            .chain(self.files.as_deref())
            .chain(folded)
            .chain(self.expand.as_deref())
    }

    /// Drops the least valuable line. Returns false if only the header and the list of whole paths remain.
    pub(crate) fn drop_one(&mut self) -> bool {
        self.expand.take().is_some()
            || self.folded.pop().is_some()
            || self.ran.pop().is_some()
            || self.failed.pop().is_some()
    }
}

/// Returns whether an extract has to be dense: it is of summaries, or it is very short compared with its messages.
pub(crate) fn is_dense(source: &[Source<'_>], target: u64) -> bool {
    let summary = |piece: &Source<'_>| matches!(piece, Source::Summary(_));
    source.iter().any(summary) || tokens(source) / MUCH_LONGER >= target
}

/// Returns the files that are not in `listed`.
fn others(
    files: &BTreeMap<String, FileStat>,
    listed: &BTreeSet<&str>,
) -> BTreeMap<String, FileStat> {
    let others = files
        .iter()
        .filter(|(path, _)| !listed.contains(path.as_str()));
    others.map(|(path, stat)| (path.clone(), *stat)).collect()
}

/// Lowers the weight of commands without an outcome if a ledger has every word of them.
fn listed_commands(items: &mut [Item], ran: &[Entry]) {
    let whole: BTreeSet<String> = ledger::whole_commands(ran).collect();
    for item in items {
        let silent = item.runs() && item.weight > LISTED && item.outcome.is_empty();
        let head = item.lines.first().map(|line| shell::without_filters(line));
        if silent && head.is_some_and(|head| whole.contains(head)) {
            item.weight = LISTED;
        }
    }
}

/// Shortens the names of files that a list names in full, and lowers the weight of items (candidate lines) that only
/// look at such a file.
fn short_names(items: &mut [Item], files: &BTreeMap<String, FileStat>, listed: &BTreeSet<&str>) {
    for item in items {
        let Some(path) = item.file.as_deref().filter(|path| listed.contains(path)) else {
            continue;
        };
        if item.kind == Kind::Act && item.weight > 0 && item.outcome.is_empty() {
            item.weight = LISTED;
            continue;
        }
        let short = frame::short_name(path, files);
        if let Some(line) = item.lines.first_mut() {
            *line = line.replacen(path, short, 1);
        }
        item.file = Some(short.to_owned());
    }
}
