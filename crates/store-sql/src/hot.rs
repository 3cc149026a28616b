//! SQL statements that run often, for tests of query plans.

use memory_model::{
    ConversationId, Hash, Seq, SeqRange, SummaryId, Timestamp, ViewName, ViewVersion,
};
use memory_store::implementors::SummaryScope;
use memory_store::{ConversationFilter, ConversationRef, JobKey, Owner};
use sea_query::Order;

use crate::batch::Statement;
use crate::convert::packed;
use crate::error::Result;
use crate::family::Family;
use crate::summary::SummaryStart;
use crate::view::SpanRows;
use crate::work::Job;
use crate::{conversation, erasure, message, search, summary, vector, view, work};

/// A statement, with its name.
type Named = (&'static str, Statement);

/// Returns the SQL statements that run often, each with a name. They are about the conversation `id`, the view `dag`
/// and small numbers.
///
/// # Errors
/// `Invalid` if a statement cannot be built, which would be a defect of this crate.
pub fn hot_statements(
    family: Family,
    id: ConversationId,
) -> Result<Vec<(&'static str, Statement)>> {
    let mut all = of_logs(family, id.0)?;
    all.extend(of_views(family, id.0)?);
    all.extend(of_summaries(family, id));
    all.extend(of_jobs(family, id)?);
    all.extend(of_indexes(family, id)?);
    let chain = conversation::set_chain(family, id.0, Hash::ZERO, Timestamp(1), Hash::ZERO);
    all.push(("set chain", chain.into()));
    // Databases with a column for the family have a directory of keys.
    match family.root() {
        None => {
            let key = ConversationRef::Key("a".into());
            let list = ConversationFilter::default();
            all.push((
                "conversation by key",
                conversation::find(family, &key).into(),
            ));
            all.push(("list", conversation::list(&list, Some(id), 10).into()));
        }
        Some(root) => {
            let mut list = ConversationFilter::default();
            list.family = Some(root);
            all.push((
                "list of a family",
                conversation::list(&list, Some(id), 10).into(),
            ));
        }
    }
    Ok(all)
}

/// Some positions of a log.
fn range() -> SeqRange {
    SeqRange::new(Seq(5), Seq(50)).unwrap_or(SeqRange::single(Seq(5)))
}

/// Keys of two rows of a conversation.
fn keys(no: u32) -> [i64; 2] {
    [packed(no, 7), packed(no, 8)]
}

fn of_logs(family: Family, no: u32) -> Result<Vec<Named>> {
    let ids = ConversationRef::Id(ConversationId(no));
    let (range, keys) = (range(), keys(no));
    Ok(vec![
        ("conversation", conversation::find(family, &ids).into()),
        ("lineage", conversation::lineage(family, no).into()),
        (
            "log",
            message::range(family, no, range, Order::Desc, 10, 99).into(),
        ),
        (
            "log at positions",
            message::positions(family, no, &[Seq(5), Seq(70)], Order::Asc, 10, 99).into(),
        ),
        ("external", message::by_external(family, 2).into()),
        (
            "external, as a fork sees it",
            message::by_external_seen(family, 2).into(),
        ),
        ("payloads", message::payloads(family, &[Hash::ZERO]).into()),
        ("facts", message::facts(family, no).into()),
        ("running", message::running(family, &keys).into()),
        ("seq_at", message::seq_at(family, no, range, 4)?.into()),
    ])
}

fn of_views(family: Family, no: u32) -> Result<Vec<Named>> {
    let (dag, version) = (ViewName::new("dag"), ViewVersion(7));
    let spans = |rows| view::spans(family, no, &dag, version, rows, 9);
    Ok(vec![
        ("snapshot", view::snapshot(family, no, &dag).into()),
        ("view", view::view(family, no, &dag).into()),
        ("views", view::views(family, no).into()),
        ("spans falling", spans(SpanRows::Falling(Seq(90)))?.into()),
        (
            "spans rising",
            spans(SpanRows::Rising(Seq(2), Seq(90)))?.into(),
        ),
        (
            "removed",
            view::removed(family, no, &dag, version, version)?.into(),
        ),
        (
            "added",
            view::added(family, no, &dag, version, version)?.into(),
        ),
        (
            "publications",
            view::publications(family, no, &dag, version, 9)?.into(),
        ),
        (
            "delete spans",
            view::delete_spans(family, no, &dag, &[Seq(1)]).into(),
        ),
    ])
}

fn of_summaries(family: Family, id: ConversationId) -> Vec<Named> {
    let (no, keys) = (id.0, keys(id.0));
    let (sum, own) = (SummaryId::new("sum_0"), SummaryScope::own(id));
    let scope = own.parent(ConversationId(no + 1), Seq(99));
    let behind = summary::log(family, own, &[], SummaryStart::Summary(&sum), 9);
    vec![
        ("summaries", summary::by_ids(family, no, &["a"]).into()),
        (
            "summary log",
            summary::log(family, own, &[], SummaryStart::Key(9), 9).into(),
        ),
        ("summary log behind a summary", behind.clone().into()),
        (
            "links of a summary log",
            summary::links_of_log(family, &behind).into(),
        ),
        (
            "summary log of an ancestor",
            summary::log(family, scope, &[own], SummaryStart::Nothing, 9).into(),
        ),
        (
            "known summaries",
            summary::known_by_ids(family, no, &["a"]).into(),
        ),
        (
            "parents of an ancestor",
            summary::parents(family, own, no + 1, &sum).into(),
        ),
        (
            "by source",
            summary::by_sources(family, no, &[Hash::ZERO], &["r"]).into(),
        ),
        ("last key", summary::last_key(family, no).into()),
        ("last summary", summary::last_id(family, no).into()),
        ("links", summary::links(family, &keys).into()),
        ("parents", summary::parents(family, own, no, &sum).into()),
    ]
}

/// The statements about jobs and small values.
fn of_jobs(family: Family, id: ConversationId) -> Result<Vec<Named>> {
    let granted = Job::granted(None, &Owner("it".into()), 1, Timestamp(1));
    Ok(vec![
        ("jobs", work::find_jobs(family, id, &["k"]).into()),
        (
            "granted jobs",
            work::granted_jobs(family, id, &["k"]).into(),
        ),
        (
            "put jobs",
            work::put_jobs(family, id, &[(&JobKey("k".into()), granted)])?.into(),
        ),
        ("delete jobs", work::delete_jobs(family, id, &["k"]).into()),
        ("next fences", work::next_fences(family, id, 1)?.into()),
        ("state", work::find_state(family, id, "k").into()),
    ])
}

/// The statements about erasures and about the indexes of words and of vectors.
fn of_indexes(family: Family, id: ConversationId) -> Result<Vec<Named>> {
    let range = range();
    Ok(vec![
        ("erasures", erasure::seen_by(family, id).into()),
        (
            "erased summaries",
            erasure::summaries_seen_by(family, id).into(),
        ),
        ("segments", search::segments(family, &[id]).into()),
        ("erasures of an index", search::erasures(family, id).into()),
        ("chunk keys", search::keys(family, 7)?.into()),
        (
            "chunks",
            search::chunks(family, 7, Some(&[vec![1]]))?.into(),
        ),
        ("vectors", vector::vectors(family, id, "e", range).into()),
        ("vector state", vector::state(family, id, "e").into()),
    ])
}
