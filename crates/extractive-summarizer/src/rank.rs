//! Ranks of lines. A context may show a summary in a shorter form, which consists of the lines with the highest ranks.

use std::cmp::Reverse;
use std::collections::VecDeque;

use memory_model::{RankedLine, SummaryBody};
use token_estimate::TokenEstimator;

use crate::news::News;

/// Maximum cost of a headline, in tokens. A headline is the shortest form of a summary.
pub const HEADLINE_TOKENS: u64 = 60;

/// Minimum difference in cost between a form of a summary (a selection of its lines with the highest ranks) and the
/// next shorter form, in tokens: a short line.
const LEAST_STEP: u64 = 12;
/// Maximum cost of a form of a summary (a selection of its lines with the highest ranks), in tokens, and its maximum
/// difference from the next shorter form, in thousandths of its cost. In a small context every line counts, so the
/// differences are smaller there.
const STEPS: [(u64, u64); 3] = [(3_000, 15), (12_000, 30), (u64::MAX, 80)];

/// Returns the rank of a line that first appears in a form of a summary that costs `tokens` tokens. Longer forms add
/// lines with lower ranks. The rank is 255 up to [`HEADLINE_TOKENS`]. From there it decreases by one for each 1.5 %
/// more tokens, but at least 12 tokens. From 3,000 tokens on it decreases by one for each 3 %, and from 12,000 on for
/// each 8 %.
///
/// A rank therefore shows the approximate cost of a shorter form: all lines of a summary with at least the rank
/// `rank_of(tokens)` together cost about `tokens`.
pub fn rank_of(tokens: u64) -> u8 {
    let (mut rank, mut reach) = (u8::MAX, HEADLINE_TOKENS);
    while rank > 0 && reach < tokens {
        let step = STEPS.iter().find(|(most, _)| reach < *most);
        let step = step.map_or(0, |(_, step)| reach.saturating_mul(*step) / 1_000);
        reach = reach.saturating_add(step.max(LEAST_STEP));
        rank -= 1;
    }
    rank
}

/// Returns the text with a rank for each line; earlier lines have higher ranks.
pub fn rank_lines(text: &str, estimator: &dyn TokenEstimator) -> SummaryBody {
    let mut cost = 0_u64;
    let lines = text.split('\n').map(|text| {
        cost = cost.saturating_add(estimator.text(text) + 1);
        let rank = rank_of(cost);
        RankedLine { text, rank }
    });
    SummaryBody::ranked(lines.collect::<Vec<_>>())
}

/// Topic of a line. A context may show a summary in a shorter form with some of its lines. Each form gives every topic
/// a share of its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    /// Users' rules.
    Rules,
    /// Users' words.
    Users,
    /// Documents, and texts of programs, in users' messages.
    Documents,
    /// Actions of tools.
    Acts,
    /// Errors.
    Errors,
    /// Words of the assistant, of a system message, or of a summary that is not an extract.
    Replies,
    /// A list of failures.
    Failures,
    /// A list of commands.
    Commands,
    Files,
    /// Arguments and output of tool calls, in full.
    Details,
    /// Header of the extract, and list of the subjects that it leaves out.
    Frame,
}

impl Topic {
    const ALL: [Self; 11] = [
        Self::Rules,
        Self::Users,
        Self::Documents,
        Self::Acts,
        Self::Errors,
        Self::Replies,
        Self::Failures,
        Self::Commands,
        Self::Files,
        Self::Details,
        Self::Frame,
    ];

    /// Returns the share of the topic in each form of a summary (a selection of its lines), relative to the shares of
    /// the other topics.
    const fn share(self, talk: bool) -> u64 {
        match self {
            // In a conversation without tool calls, words are the events.
            Self::Rules if talk => 4_000,
            Self::Users if talk => 500,

            Self::Rules => 500,
            Self::Users => 63,
            Self::Documents => 1,
            Self::Acts => 16,
            Self::Errors => 2,
            Self::Replies => 110,
            Self::Failures => 16,
            Self::Commands => 24,
            Self::Files => 48,
            Self::Details => 1,
            Self::Frame => 1,
        }
    }
}

/// Number of words that a name of letters and digits counts for, except in talk.
const NAME: u64 = 4;

/// A line that is not ranked yet.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// Cost of the line with its line feed, in tokens.
    pub(crate) cost: u64,
    pub(crate) topic: Topic,
    /// Value of the line, compared with lines of the same topic; 0 for a title of other lines.
    pub(crate) worth: u64,
    /// Index of the line that this line continues: the first line of its item, or a title.
    pub(crate) head: Option<usize>,
}

/// Ranks the lines of a summary. Each shorter form (a selection of the lines with the highest ranks) then has all
/// topics in their shares, with the most valuable lines of each topic. A line that continues another line never ranks
/// above it.
pub(crate) fn ranked(lines: &[Line], talk: bool) -> SummaryBody {
    let mut queues: Vec<(u64, u64, VecDeque<usize>)> = Vec::new();
    for topic in Topic::ALL {
        let mut queue: Vec<usize> = (0..lines.len())
            .filter(|at| lines.get(*at).is_some_and(|line| line.topic == topic))
            .collect();
        queue.sort_by_key(|at| (Reverse(lines.get(*at).map_or(0, |l| l.worth)), *at));
        if topic == Topic::Users {
            queue = by_news(lines, &queue, if talk { 1 } else { NAME });
        }
        queues.push((0, topic.share(talk), queue.into()));
    }
    let mut ranks: Vec<Option<u8>> = vec![None; lines.len()];
    let mut cost = 0_u64;
    while let Some((spent, _, queue)) = queues
        .iter_mut()
        .filter(|(_, _, queue)| !queue.is_empty())
        .min_by_key(|(spent, share, queue)| {
            let next = queue.front().and_then(|at| lines.get(*at));
            (*spent + next.map_or(0, |line| line.cost)) * 10_000 / *share
        })
    {
        let Some(at) = queue.pop_front() else { break };
        let head = lines.get(at).and_then(|line| line.head);
        let mut title = None;
        for at in head.into_iter().chain([at]) {
            let (Some(line), Some(rank)) = (lines.get(at), ranks.get_mut(at)) else {
                continue;
            };
            if rank.is_none() {
                cost = cost.saturating_add(line.cost);
                *spent = spent.saturating_add(line.cost);
                *rank = Some(rank_of(cost));
                if line.worth == 0 {
                    title = Some(at);
                }
            }
        }
        // A title is useless without a line below it.
        if let Some(rank) = title.and_then(|title| ranks.get_mut(title)) {
            *rank = Some(rank_of(cost));
        }
    }
    let all = lines.iter().zip(&ranks).map(|(line, rank)| RankedLine {
        text: line.text.as_str(),
        rank: rank.unwrap_or(0),
    });
    SummaryBody::ranked(all)
}

/// Orders the lines of `queue` so that each line adds most to the lines before it. A name counts for `name` words.
fn by_news(lines: &[Line], queue: &[usize], name: u64) -> Vec<usize> {
    let line = |n: usize| lines.get(*queue.get(n)?);
    let worth = |n: usize| line(n).map_or(0, |line| line.worth);
    let texts = (0..queue.len()).map(|n| line(n).map_or("", |line| line.text.as_str()));
    let mut news = News::of(texts, name, &worth);
    let mut order = Vec::with_capacity(queue.len());
    while let Some(n) = news.next(&worth) {
        news.tell(n);
        order.extend(queue.get(n));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_fall_by_one_for_each_few_per_cent() {
        assert_eq!((rank_of(0), rank_of(60), rank_of(61)), (255, 255, 254));
        assert_eq!((rank_of(72), rank_of(73)), (254, 253));
        assert_eq!(rank_of(5_000), rank_of(5_030));
        assert!(rank_of(5_200) < rank_of(5_000));
        assert!(rank_of(100_000) > 0 && rank_of(u64::MAX) == 0);
    }

    #[test]
    fn topics_take_turns_and_a_line_comes_after_the_one_that_it_continues() {
        let line = |text: &str, topic, worth, head| Line {
            text: text.to_owned(),
            cost: 50,
            topic,
            worth,
            head,
        };
        let lines = [
            line("user", Topic::Users, 5, None),
            line("  more", Topic::Users, 9, Some(0)),
            line("other", Topic::Users, 7, None),
            line("command", Topic::Commands, 1, None),
        ];
        let body = ranked(&lines, false);
        let ranks = body.ranks().unwrap();
        assert!(ranks[0] > ranks[1], "the head first");
        assert!(ranks[3] > ranks[2], "commands have their turn: {ranks:?}");
    }

    #[test]
    fn a_correction_with_a_name_comes_before_a_longer_question() {
        let line = |text: &str| Line {
            text: text.to_owned(),
            cost: 50,
            topic: Topic::Users,
            worth: 5,
            head: None,
        };
        let lines = [
            line(
                "Links should have the same colour as the accent of headings, and bullets that of code.",
            ),
            line("9fb0a1 is what links have, 8abe17 what bullets have."),
            line("Wait, do links really have only a single colour here, or several others?"),
        ];
        let ranks = |talk| ranked(&lines, talk).ranks().unwrap().to_vec();
        let of_work = ranks(false);
        assert!(of_work[1] > of_work[2], "{of_work:?}");
        let of_talk = ranks(true);
        assert!(of_talk[1] < of_talk[2], "{of_talk:?}");
    }

    #[test]
    fn a_title_comes_with_the_first_line_below_it() {
        let line = |worth, head| Line {
            text: "text".to_owned(),
            cost: 40,
            topic: Topic::Files,
            worth,
            head,
        };
        let body = ranked(&[line(0, None), line(7, Some(0)), line(9, Some(0))], false);
        let ranks = body.ranks().unwrap();
        assert_eq!(ranks[0], ranks[2]);
        assert!(ranks[1] < ranks[2]);
    }
}
