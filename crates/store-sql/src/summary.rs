//! SQL statements for summaries with their children and sources, and functions that read their rows.

use memory_model::{
    Child, Hash, RawJson, Recipe, RenderingId, SeqRange, Summary, SummaryBody, SummaryId, Timestamp,
};
use memory_store::implementors::{SummaryScope, summary_record_hash};
use sea_query::{
    Alias, Expr, ExprTrait as _, Func, InsertStatement, JoinType, Order, Query, SelectStatement,
    WithQuery,
};

use crate::conversation::{Seen, seen_from};
use crate::convert::{packed, to_count, to_hash, to_int, to_json, to_range, to_u32};
use crate::error::{Result, corrupt};
use crate::family::Family;
use crate::insert::insert;
use crate::row::Columns;
use crate::tables::{Summary as S, SummaryLink as K};

const READ: [S; 22] = [
    S::Id,
    S::Conversation,
    S::PublicId,
    S::First,
    S::Last,
    S::Depth,
    S::Tokens,
    S::SourceTokens,
    S::Provisional,
    S::Recipe,
    S::Tier,
    S::Model,
    S::CreatedAt,
    S::EarliestAt,
    S::LatestAt,
    S::SourceHash,
    S::Hash,
    S::Text,
    S::Messages,
    S::Meta,
    S::Ranks,
    S::Rendering,
];

/// A stored summary, with the key of its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryRow {
    /// Key of the summary's row.
    pub id: i64,
    /// The summary. Its sources and children are left empty, because they are in a separate table: see [`links`].
    pub summary: Summary,
}

fn rows(family: Family) -> SelectStatement {
    Query::select()
        .columns(READ)
        .from(S::Table)
        .and_where_option(family.rows((S::Table, S::Tree)))
        .take()
}

fn of(conversation: u32) -> Expr {
    Expr::col((S::Table, S::Conversation)).eq(i64::from(conversation))
}

/// Returns the SQL condition for the summaries in a scope: the conversation `scope.conversation` made them, and they
/// cover no position after `scope.last`. For a fork, `scope.last` is the last position that it shares with this
/// conversation.
fn seen(scope: SummaryScope) -> Expr {
    let own = of(scope.conversation.0);
    match scope.last {
        None => own,
        Some(last) => own.and(Expr::col((S::Table, S::Last)).lte(i64::from(last.0))),
    }
}

/// Builds the SQL statement that selects the summaries with these public ids that a conversation made or inherits from
/// its ancestors. The conversation's own summaries come first, then its parent's, and so on. [`summary`] reads a row of
/// the answer.
pub fn by_ids(family: Family, conversation: u32, ids: &[&str]) -> WithQuery {
    let mut statement = Query::select();
    statement.columns(READ.map(|column| (S::Table, column)));
    visible(family, statement, conversation, ids)
}

/// Builds the SQL statement that selects the range, depth and cost of the summaries with these public ids that a
/// conversation made or inherits from its ancestors. The conversation's own summaries come first, then its parent's,
/// and so on. [`known`] reads a row of the answer.
pub fn known_by_ids(family: Family, conversation: u32, ids: &[&str]) -> WithQuery {
    let columns = [S::Id, S::PublicId, S::First, S::Last, S::Depth, S::Tokens];
    let mut statement = Query::select();
    statement
        .columns(columns.map(|column| (S::Table, column)))
        .column((Seen::Table, Seen::Level));
    visible(family, statement, conversation, ids)
}

fn visible(
    family: Family,
    mut statement: SelectStatement,
    conversation: u32,
    ids: &[&str],
) -> WithQuery {
    statement
        .from(Seen::Table)
        // CROSS JOIN fixes the order of the joins: SQLite then looks each id up in each log and does not read all
        // summaries.
        .cross_join(S::Table)
        .and_where_option(family.rows((S::Table, S::Tree)))
        .and_where(Expr::col((S::Table, S::Conversation)).equals((Seen::Table, Seen::No)))
        .and_where(Expr::col((S::Table, S::PublicId)).is_in(ids.iter().copied()))
        .and_where(Expr::col((S::Table, S::Last)).lte(Expr::col((Seen::Table, Seen::Last))))
        .order_by((Seen::Table, Seen::Level), Order::Asc);
    statement.with(seen_from(family, conversation))
}

/// Facts about a stored summary to which a publish refers, by its spans or by its own summaries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSummary {
    /// Key of the summary's row.
    pub id: i64,
    /// Public id of the summary.
    pub public_id: SummaryId,
    /// Range of messages that the summary covers.
    pub range: SeqRange,
    /// Number of levels of summaries below the summary: 0 for a leaf, which summarizes messages.
    pub depth: u32,
    /// Cost of the summary, in tokens.
    pub tokens: u64,
    /// Number of forks between the conversation and the conversation that made the summary. 0 if the conversation
    /// itself made it.
    pub level: usize,
}

/// Reads the range, depth and cost of a summary from a row of [`known_by_ids`].
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn known(row: &impl Columns) -> Result<StoredSummary> {
    let public_id = SummaryId::new(row.text(1)?);
    Ok(StoredSummary {
        id: row.int(0)?,
        range: to_range(public_id.as_str(), row.int(2)?, row.int(3)?)?,
        depth: to_u32("depth", row.int(4)?)?,
        tokens: to_count("tokens of a summary", row.int(5)?)?,
        level: usize::try_from(row.int(6)?).unwrap_or(usize::MAX),
        public_id,
    })
}

/// Builds the SQL statement that selects the row key of a conversation's own summary with this public id. The answer is
/// one number.
pub fn key(family: Family, conversation: u32, id: &SummaryId) -> SelectStatement {
    Query::select()
        .column((S::Table, S::Id))
        .from(S::Table)
        .and_where_option(family.rows((S::Table, S::Tree)))
        .and_where(of(conversation))
        .and_where(Expr::col((S::Table, S::PublicId)).eq(id.as_str()))
        .take()
}

/// Builds the SQL statement that selects the public id of the latest summary that a conversation made. The answer has
/// one column.
pub fn last_id(family: Family, conversation: u32) -> SelectStatement {
    let (first, last) = (packed(conversation, 0), packed(conversation, u32::MAX));
    Query::select()
        .column(S::PublicId)
        .from(S::Table)
        .and_where_option(family.rows((S::Table, S::Tree)))
        .and_where(Expr::col(S::Id).between(first, last))
        .order_by(S::Id, Order::Desc)
        .limit(1)
        .take()
}

/// Place in a list of summaries after which a page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryStart<'a> {
    /// The page begins with the first summary.
    Nothing,
    /// The page begins after the summary with this row key.
    Key(i64),
    /// The page begins after the conversation's own summary with this public id. The page is empty if that summary does
    /// not exist.
    Summary(&'a SummaryId),
}

/// Builds the SQL statement that selects at most `limit` summaries of the scope (the summaries of one conversation that
/// it or a fork can use), in the order of creation, after a given place. Summaries that one of the `nearer`
/// conversations also made are left out. [`summary`] reads a row of the answer.
pub fn log(
    family: Family,
    scope: SummaryScope,
    nearer: &[SummaryScope],
    after: SummaryStart<'_>,
    limit: u64,
) -> SelectStatement {
    let conversation = scope.conversation.0;
    let before: Expr = match after {
        SummaryStart::Nothing => packed(conversation, 0).into(),
        SummaryStart::Key(key) => key.into(),
        SummaryStart::Summary(id) => Expr::from(key(family, conversation, id)),
    };
    let id = || Expr::col((S::Table, S::Id));
    let mut statement = rows(family);
    statement
        .and_where(id().gt(before))
        .and_where(id().lte(packed(conversation, u32::MAX)))
        .order_by(S::Id, Order::Asc)
        .limit(limit);
    if scope.last.is_some() {
        statement.and_where(seen(scope));
    }
    if !nearer.is_empty() {
        let near = Alias::new("near");
        let same = Query::select()
            .expr(Expr::val(1_i64))
            .from_as(S::Table, near.clone())
            .and_where_option(family.rows((near.clone(), S::Tree)))
            .and_where(
                Expr::col((near.clone(), S::Conversation))
                    .is_in(nearer.iter().map(|scope| i64::from(scope.conversation.0))),
            )
            .and_where(Expr::col((near, S::PublicId)).equals((S::Table, S::PublicId)))
            .take();
        statement.and_where(Expr::exists(same).not());
    }
    statement
}

/// Builds the SQL statement that selects at most `limit` summaries of all conversations, with row keys above `after`,
/// by rising key. [`summary`] and [`recorded`] read a row of the answer.
pub fn records(family: Family, after: i64, limit: u64) -> SelectStatement {
    rows(family)
        .column(S::Record)
        .and_where(Expr::col((S::Table, S::Id)).gt(after))
        .order_by(S::Id, Order::Asc)
        .limit(limit)
        .take()
}

/// Reads from a row of [`records`] the stored hash over the summary's row.
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn recorded(row: &impl Columns) -> Result<Hash> {
    to_hash("record of a summary", &row.bytes(READ.len())?)
}

/// Builds the SQL statement that selects the summaries with any of these source hashes and any of these recipes that a
/// conversation made or inherits from its ancestors. A recipe is the id of the prompts, policy and model that made a
/// summary. The conversation's own summaries come first, then its parent's, and so on. The summaries of each
/// conversation are sorted from latest to earliest. [`summary`] reads a row of the answer.
pub fn by_sources(
    family: Family,
    conversation: u32,
    sources: &[Hash],
    recipes: &[&str],
) -> WithQuery {
    let mut statement = Query::select();
    statement
        .columns(READ.map(|column| (S::Table, column)))
        .from(Seen::Table)
        // CROSS JOIN fixes the order of the joins: SQLite then looks each source up in each log and does not read all
        // summaries.
        .cross_join(S::Table)
        .and_where_option(family.rows((S::Table, S::Tree)))
        .and_where(Expr::col((S::Table, S::Conversation)).equals((Seen::Table, Seen::No)))
        .and_where(Expr::col((S::Table, S::SourceHash)).is_in(sources.iter().map(|s| s.0.to_vec())))
        .and_where(Expr::col((S::Table, S::Recipe)).is_in(recipes.iter().copied()))
        .and_where(Expr::col((S::Table, S::Last)).lte(Expr::col((Seen::Table, Seen::Last))))
        .order_by((Seen::Table, Seen::Level), Order::Asc)
        .order_by((S::Table, S::Id), Order::Desc);
    statement.with(seen_from(family, conversation))
}

/// Builds the SQL statement that selects the row key of the latest summary that a conversation made. The answer is one
/// number, or null if there is no summary.
pub fn last_key(family: Family, conversation: u32) -> SelectStatement {
    Query::select()
        .expr(Func::max(Expr::col(S::Id)))
        .from(S::Table)
        .and_where_option(family.rows((S::Table, S::Tree)))
        .and_where(
            Expr::col(S::Id).between(packed(conversation, 0), packed(conversation, u32::MAX)),
        )
        .take()
}

/// Reads a summary from a row of [`by_ids`], [`log`] or [`by_sources`]. Its children and sources are left empty: see
/// [`links`].
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn summary(row: &impl Columns) -> Result<SummaryRow> {
    let public_id = SummaryId::new(row.text(2)?);
    let messages = to_json(format_args!("messages of {public_id}"), row.opt_text(18)?)?;
    let meta = to_json(format_args!("meta of {public_id}"), row.opt_text(19)?)?;
    let body = SummaryBody::from_parts(row.text(17)?, row.opt_bytes(20)?)
        .map_err(|e| corrupt(public_id.as_str(), "its ranks are wrong").with_source(e))?;
    Ok(SummaryRow {
        id: row.int(0)?,
        summary: Summary {
            range: to_range(public_id.as_str(), row.int(3)?, row.int(4)?)?,
            depth: to_u32("depth", row.int(5)?)?,
            sources: Vec::new(),
            children: Vec::new(),
            body,
            messages,
            meta,
            tokens: to_count("tokens of a summary", row.int(6)?)?,
            rendering: RenderingId::new(row.text(21)?),
            source_tokens: to_count("source tokens of a summary", row.int(7)?)?,
            provisional: row.int(8)? != 0,
            recipe: Recipe::new(row.text(9)?),
            tier: row.text(10)?,
            model: row.opt_text(11)?,
            created_at: Timestamp(row.int(12)?),
            earliest_at: Timestamp(row.int(13)?),
            latest_at: Timestamp(row.int(14)?),
            source_hash: to_hash(public_id.as_str(), &row.bytes(15)?)?,
            hash: to_hash(public_id.as_str(), &row.bytes(16)?)?,
            id: public_id,
        },
    })
}

/// Builds the SQL statement that inserts summaries of a conversation, each with its row key. [`insert_links`] inserts
/// their children and sources.
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn insert_all(
    family: Family,
    conversation: u32,
    summaries: &[(i64, &Summary)],
) -> Result<InsertStatement> {
    let text = |json: Option<&RawJson>| json.map(|json| json.as_str().to_owned());
    let row = |(id, summary): &(i64, &Summary)| {
        Ok([
            (S::Id, (*id).into()),
            (S::Conversation, i64::from(conversation).into()),
            (S::PublicId, summary.id.as_str().into()),
            (S::First, i64::from(summary.range.first.0).into()),
            (S::Last, i64::from(summary.range.last.0).into()),
            (S::Depth, i64::from(summary.depth).into()),
            (
                S::Tokens,
                to_int("tokens of a summary", summary.tokens)?.into(),
            ),
            (
                S::SourceTokens,
                to_int("source tokens of a summary", summary.source_tokens)?.into(),
            ),
            (S::Provisional, i64::from(summary.provisional).into()),
            (S::Recipe, summary.recipe.as_str().into()),
            (S::Tier, summary.tier.as_str().into()),
            (S::Model, summary.model.clone().into()),
            (S::CreatedAt, summary.created_at.0.into()),
            (S::EarliestAt, summary.earliest_at.0.into()),
            (S::LatestAt, summary.latest_at.0.into()),
            (S::SourceHash, summary.source_hash.0.to_vec().into()),
            (S::Hash, summary.hash.0.to_vec().into()),
            (S::Text, summary.text().into()),
            (S::Messages, text(summary.messages.as_ref()).into()),
            (S::Meta, text(summary.meta.as_ref()).into()),
            (S::Ranks, summary.body.ranks().map(<[u8]>::to_vec).into()),
            (S::Rendering, summary.rendering.as_str().into()),
            (S::Record, summary_record_hash(summary).0.to_vec().into()),
        ])
    };
    insert(family.value(S::Tree), S::Table, summaries.iter().map(row))
}

/// Role of a child or source of a summary, as in the column `role`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkRole {
    /// A child: the summary unfolds to its children.
    Child,
    /// A source: the summary was written from its sources.
    Source,
}

impl LinkRole {
    fn code(self) -> i64 {
        match self {
            Self::Child => 0,
            Self::Source => 1,
        }
    }
}

/// A link from a summary to one of its children or sources, as inserted by [`insert_links`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkRow {
    /// Row key of the summary that has the child or source.
    pub parent: i64,
    /// Whether the link is to a child or to a source.
    pub role: LinkRole,
    /// Index of the child among the summary's children, or of the source among its sources, from 0.
    pub ordinal: u32,
    /// Positions of the messages that the child or source covers.
    pub range: SeqRange,
    /// Row key of the child or source if it is a summary. `None` if it is a range of messages.
    pub child: Option<i64>,
}

/// Builds the SQL statement that inserts links from summaries to their children and sources.
///
/// # Errors
/// `Invalid` if a row has more values than columns, which would be a defect of this crate.
pub fn insert_links(family: Family, links: &[LinkRow]) -> Result<InsertStatement> {
    let row = |link: &LinkRow| {
        Ok([
            (K::Parent, link.parent.into()),
            (K::Role, link.role.code().into()),
            (K::Ordinal, i64::from(link.ordinal).into()),
            (K::First, i64::from(link.range.first.0).into()),
            (K::Last, i64::from(link.range.last.0).into()),
            (K::Child, link.child.into()),
        ])
    };
    insert(family.value(K::Tree), K::Table, links.iter().map(row))
}

/// Builds the SQL statement that selects the children and sources of the summaries with these row keys, each in order.
/// [`link`] reads a row of the answer.
pub fn links(family: Family, parents: &[i64]) -> SelectStatement {
    links_of(family, |parent| parent.is_in(parents.iter().copied()))
}

/// Builds the SQL statement that selects the children and sources of all summaries that a [`log`] statement selects.
/// [`link`] reads a row of the answer.
pub fn links_of_log(family: Family, log: &SelectStatement) -> SelectStatement {
    let keys = log.clone().clear_selects().column((S::Table, S::Id)).take();
    links_of(family, |parent| parent.in_subquery(keys))
}

fn links_of(family: Family, is_wanted: impl FnOnce(Expr) -> Expr) -> SelectStatement {
    Query::select()
        .column((K::Table, K::Parent))
        .column((K::Table, K::Role))
        .column((K::Table, K::First))
        .column((K::Table, K::Last))
        .column((K::Table, K::Child))
        .column((S::Table, S::PublicId))
        .from(K::Table)
        .and_where_option(family.rows((K::Table, K::Tree)))
        .left_join(
            S::Table,
            family.and(
                Expr::col((S::Table, S::Id)).equals((K::Table, K::Child)),
                (S::Table, S::Tree),
            ),
        )
        .and_where(is_wanted(Expr::col((K::Table, K::Parent))))
        .order_by((K::Table, K::Parent), Order::Asc)
        .order_by((K::Table, K::Role), Order::Asc)
        .order_by((K::Table, K::Ordinal), Order::Asc)
        .take()
}

/// Reads a row of [`links`]. Returns the row key of the summary, the role, and one of its children or sources.
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn link(row: &impl Columns) -> Result<(i64, LinkRole, Child)> {
    let parent = row.int(0)?;
    let wrong = |problem: String| corrupt(format!("a link of summary {parent}"), problem);
    let role = match row.int(1)? {
        0 => LinkRole::Child,
        1 => LinkRole::Source,
        other => return Err(wrong(format!("{other} is not a role"))),
    };
    let range = to_range(
        format_args!("a link of summary {parent}"),
        row.int(2)?,
        row.int(3)?,
    )?;
    let child = match (row.opt_int(4)?, row.opt_text(5)?) {
        (None, _) => Child::Messages { range },
        (Some(_), Some(id)) => Child::Summary {
            range,
            id: SummaryId::new(id),
        },
        (Some(key), None) => return Err(wrong(format!("the summary {key} is missing"))),
    };
    Ok((parent, role, child))
}

/// Builds the SQL statement that selects the summaries of the scope (the summaries of one conversation that it or a
/// fork can use) that have a given summary as a source or a child. The given summary has the public id `id` and belongs
/// to the conversation `child`. The answer has their public ids, in the order of creation.
pub fn parents(family: Family, scope: SummaryScope, child: u32, id: &SummaryId) -> SelectStatement {
    let keys = Query::select()
        .column((K::Table, K::Parent))
        .from(K::Table)
        .and_where_option(family.rows((K::Table, K::Tree)))
        .and_where(Expr::col((K::Table, K::Child)).eq(Expr::from(key(family, child, id))))
        .take();
    Query::select()
        .column((S::Table, S::PublicId))
        .from(S::Table)
        .and_where_option(family.rows((S::Table, S::Tree)))
        .and_where(Expr::col((S::Table, S::Id)).in_subquery(keys))
        .and_where(seen(scope))
        .order_by((S::Table, S::Id), Order::Asc)
        .take()
}

/// Builds the SQL statement that selects the summaries that were made from a summary of another conversation. Each row
/// has the public id and the conversation of the made summary, and the conversation and last position of the summary
/// that it was made from.
pub fn foreign_links(family: Family) -> SelectStatement {
    let (made, other) = (Alias::new("made"), Alias::new("other"));
    Query::select()
        .column((made.clone(), S::PublicId))
        .column((made.clone(), S::Conversation))
        .column((other.clone(), S::Conversation))
        .column((other.clone(), S::Last))
        .from(K::Table)
        .and_where_option(family.rows((K::Table, K::Tree)))
        .join_as(
            JoinType::InnerJoin,
            S::Table,
            made.clone(),
            family.and(
                Expr::col((made.clone(), S::Id)).equals((K::Table, K::Parent)),
                (made.clone(), S::Tree),
            ),
        )
        .join_as(
            JoinType::InnerJoin,
            S::Table,
            other.clone(),
            family.and(
                Expr::col((other.clone(), S::Id)).equals((K::Table, K::Child)),
                (other.clone(), S::Tree),
            ),
        )
        .and_where(Expr::col((other, S::Conversation)).ne(Expr::col((made, S::Conversation))))
        .take()
}
