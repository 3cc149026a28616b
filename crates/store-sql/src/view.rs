//! SQL statements for views, their spans and their publications, and functions that read their rows.

use memory_model::{
    Hash, Seq, SeqRange, SpanBody, SpanStart, SummaryId, Timestamp, TrimPolicyId, ViewName,
    ViewVersion,
};
use memory_store::implementors::publication_record_hash;
use sea_query::{
    DeleteStatement, Expr, ExprTrait as _, Func, InsertStatement, OnConflict, Order, Query,
    SelectStatement, SimpleExpr, UnionType,
};

use crate::convert::{to_count, to_hash, to_int, to_range, to_seq, to_u32};
use crate::error::{Result, corrupt};
use crate::family::Family;
use crate::insert::{insert, insert_row};
use crate::row::Columns;
use crate::tables::{Conversation as C, Publication as P, Span as S, SpanHistory as H, View as V};

/// Builds the SQL statement that selects the data of a snapshot of a view. The answer is one row: last position and
/// tokens of the log, version, saved tokens and number of spans of the view, and the conversation's number of erasures.
/// For a view that was never published, version and saved tokens are null, and the number of spans is 0.
pub fn snapshot(family: Family, no: u32, view: &ViewName) -> SelectStatement {
    let spans = Query::select()
        .expr(Func::count(Expr::col(S::First)))
        .from(S::Table)
        .and_where_option(family.rows((S::Table, S::Tree)))
        .and_where(Expr::col((S::Table, S::Conversation)).eq(i64::from(no)))
        .and_where(Expr::col((S::Table, S::View)).eq(view.as_str()))
        .take();
    Query::select()
        .column((C::Table, C::Head))
        .column((C::Table, C::Tokens))
        .column((V::Table, V::Version))
        .column((V::Table, V::Saved))
        .expr(Expr::from(spans))
        .column((C::Table, C::Erasures))
        .from(C::Table)
        .and_where_option(family.rows((C::Table, C::Tree)))
        .left_join(
            V::Table,
            family.and(
                Expr::col((V::Table, V::Conversation))
                    .equals((C::Table, C::No))
                    .and(Expr::col((V::Table, V::Name)).eq(view.as_str())),
                (V::Table, V::Tree),
            ),
        )
        .and_where(Expr::col((C::Table, C::No)).eq(i64::from(no)))
        .take()
}

/// Builds the SQL statement that selects a view's version, saved tokens and chain hash.
pub fn view(family: Family, no: u32, view: &ViewName) -> SelectStatement {
    Query::select()
        .columns([V::Version, V::Saved, V::Chain])
        .from(V::Table)
        .and_where_option(family.rows((V::Table, V::Tree)))
        .and_where(Expr::col(V::Conversation).eq(i64::from(no)))
        .and_where(Expr::col(V::Name).eq(view.as_str()))
        .take()
}

/// Builds the SQL statement that selects all views of a conversation, sorted by name. Each row has name, version, saved
/// tokens, chain hash and number of spans.
pub fn views(family: Family, no: u32) -> SelectStatement {
    let spans = Query::select()
        .expr(Func::count(Expr::col(S::First)))
        .from(S::Table)
        .and_where_option(family.rows((S::Table, S::Tree)))
        .and_where(Expr::col((S::Table, S::Conversation)).equals((V::Table, V::Conversation)))
        .and_where(Expr::col((S::Table, S::View)).equals((V::Table, V::Name)))
        .take();
    Query::select()
        .columns([V::Name, V::Version, V::Saved, V::Chain])
        .expr(Expr::from(spans))
        .from(V::Table)
        .and_where_option(family.rows((V::Table, V::Tree)))
        .and_where(Expr::col(V::Conversation).eq(i64::from(no)))
        .order_by(V::Name, Order::Asc)
        .take()
}

/// Builds the SQL statement that inserts or replaces a view's row.
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn put_view(
    family: Family,
    no: u32,
    view: &ViewName,
    version: ViewVersion,
    saved: i64,
    chain: Hash,
) -> Result<InsertStatement> {
    let row = [
        (V::Conversation, i64::from(no).into()),
        (V::Name, view.as_str().into()),
        (V::Version, to_int("version", version.0)?.into()),
        (V::Saved, saved.into()),
        (V::Chain, chain.0.to_vec().into()),
    ];
    let mut statement = insert_row(family.value(V::Tree), V::Table, row)?;
    statement.on_conflict(
        OnConflict::columns(family.key(V::Tree, [V::Conversation, V::Name]))
            .update_columns([V::Version, V::Saved, V::Chain])
            .to_owned(),
    );
    Ok(statement)
}

/// Selection of a view's span rows, with their order. A row stores the position at which its span begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanRows {
    /// Rows of the spans that begin from the first to the second position, both inclusive, in rising order.
    Rising(Seq, Seq),
    /// Rows of the spans that begin at or before the position, in falling order.
    Falling(Seq),
}

const LIVE: [S; 6] = [
    S::First,
    S::Kind,
    S::Summary,
    S::Policy,
    S::Tokens,
    S::Depth,
];
const GONE: [H; 6] = [
    H::First,
    H::Kind,
    H::Summary,
    H::Policy,
    H::Tokens,
    H::Depth,
];

/// Builds the SQL statement that selects at most `limit` span rows of a version of a view. [`added_span`] reads a row
/// of the answer. One statement selects both current spans and spans of the history, so that all rows are from one
/// state of the database.
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn spans(
    family: Family,
    no: u32,
    view: &ViewName,
    version: ViewVersion,
    rows: SpanRows,
    limit: u64,
) -> Result<SelectStatement> {
    let version = to_int("version", version.0)?;
    let mut live = Query::select();
    // `+ 0` makes the planner use the primary key, which gives the order.
    live.columns(LIVE)
        .column(S::AddedIn)
        .from(S::Table)
        .and_where_option(family.rows((S::Table, S::Tree)))
        .and_where(Expr::col(S::Conversation).eq(i64::from(no)))
        .and_where(Expr::col(S::View).eq(view.as_str()))
        .and_where(Expr::col(S::AddedIn).add(0_i64).lte(version));
    let mut gone = Query::select();
    gone.columns(GONE)
        .column(H::AddedIn)
        .from(H::Table)
        .and_where_option(family.rows((H::Table, H::Tree)))
        .and_where(Expr::col(H::Conversation).eq(i64::from(no)))
        .and_where(Expr::col(H::View).eq(view.as_str()))
        .and_where(Expr::col(H::RemovedIn).gt(version))
        .and_where(Expr::col(H::AddedIn).add(0_i64).lte(version));
    let order = match rows {
        SpanRows::Rising(from, to) => {
            live.and_where(Expr::col(S::First).between(i64::from(from.0), i64::from(to.0)));
            gone.and_where(Expr::col(H::First).between(i64::from(from.0), i64::from(to.0)));
            Order::Asc
        }
        SpanRows::Falling(from) => {
            live.and_where(Expr::col(S::First).lte(i64::from(from.0)));
            gone.and_where(Expr::col(H::First).lte(i64::from(from.0)));
            Order::Desc
        }
    };
    live.union(UnionType::All, gone)
        .order_by(S::First, order)
        .limit(limit);
    Ok(live)
}

/// Reads the start, body and cost of a span from the columns of a row, from index `at` on.
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn start(row: &impl Columns, at: usize) -> Result<SpanStart> {
    let first = to_seq(row.int(at)?)?;
    let wrong = |problem: &str| corrupt(format!("span at {first}"), problem);
    let body = match row.text(at + 1)?.as_str() {
        "raw" => SpanBody::Raw,
        "summary" => SpanBody::Summary {
            id: SummaryId::new(row.opt_text(at + 2)?.ok_or_else(|| wrong("no summary"))?),
            depth: to_u32("depth", row.int(at + 5)?)?,
        },
        "trimmed" => SpanBody::Trimmed(TrimPolicyId::new(
            row.opt_text(at + 3)?.ok_or_else(|| wrong("no policy"))?,
        )),
        "omitted" => SpanBody::Omitted,
        _ => return Err(wrong("unknown kind")),
    };
    Ok(SpanStart {
        first,
        body,
        tokens: to_count("tokens of a span", row.int(at + 4)?)?,
    })
}

/// Returns the values of a span for the columns in [`LIVE`] or [`GONE`].
fn values(span: &SpanStart) -> Result<[SimpleExpr; 6]> {
    let (kind, summary, policy, depth) = match &span.body {
        SpanBody::Raw => ("raw", None, None, 0),
        SpanBody::Summary { id, depth } => ("summary", Some(id.as_str()), None, *depth),
        SpanBody::Trimmed(policy) => ("trimmed", None, Some(policy.as_str()), 0),
        SpanBody::Omitted => ("omitted", None, None, 0),
    };
    Ok([
        i64::from(span.first.0).into(),
        kind.into(),
        summary.map(str::to_owned).into(),
        policy.map(str::to_owned).into(),
        to_int("tokens of a span", span.tokens)?.into(),
        i64::from(depth).into(),
    ])
}

/// A span's row, with the version of the view that added the span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedSpan {
    /// First position of the span, its body and its cost.
    pub start: SpanStart,
    /// Version of the view that added the span.
    pub added_in: ViewVersion,
}

/// Reads a span and the version that added the span from a row of [`spans`].
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn added_span(row: &impl Columns) -> Result<AddedSpan> {
    Ok(AddedSpan {
        start: start(row, 0)?,
        added_in: ViewVersion(to_count("version", row.int(LIVE.len())?)?),
    })
}

/// Builds the SQL statement that inserts spans into the current version of a view.
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn insert_spans(
    family: Family,
    no: u32,
    view: &ViewName,
    spans: &[AddedSpan],
) -> Result<InsertStatement> {
    let row = |span: &AddedSpan| {
        let of_view = [
            (S::Conversation, i64::from(no).into()),
            (S::View, view.as_str().into()),
            (S::AddedIn, to_int("version", span.added_in.0)?.into()),
        ];
        let start = LIVE.into_iter().zip(values(&span.start)?);
        Ok(of_view.into_iter().chain(start))
    };
    insert(family.value(S::Tree), S::Table, spans.iter().map(row))
}

/// Builds the SQL statement that inserts removed spans into the history of a view, each with the version that removed
/// the span.
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn insert_history(
    family: Family,
    no: u32,
    view: &ViewName,
    spans: &[(ViewVersion, AddedSpan)],
) -> Result<InsertStatement> {
    let row = |(removed_in, span): &(ViewVersion, AddedSpan)| {
        let of_view = [
            (H::Conversation, i64::from(no).into()),
            (H::View, view.as_str().into()),
            (H::RemovedIn, to_int("version", removed_in.0)?.into()),
            (H::AddedIn, to_int("version", span.added_in.0)?.into()),
        ];
        let start = GONE.into_iter().zip(values(&span.start)?);
        Ok(of_view.into_iter().chain(start))
    };
    insert(family.value(H::Tree), H::Table, spans.iter().map(row))
}

/// Builds the SQL statement that deletes the spans that begin at these positions from the current version of a view.
/// Insert them into the history first.
pub fn delete_spans(family: Family, no: u32, view: &ViewName, firsts: &[Seq]) -> DeleteStatement {
    Query::delete()
        .from_table(S::Table)
        .and_where_option(family.rows(S::Tree))
        .and_where(Expr::col(S::Conversation).eq(i64::from(no)))
        .and_where(Expr::col(S::View).eq(view.as_str()))
        .and_where(Expr::col(S::First).is_in(firsts.iter().map(|seq| i64::from(seq.0))))
        .take()
}

/// Builds the SQL statement that inserts the rows of publications, in the order of their versions.
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn insert_publications(
    family: Family,
    no: u32,
    view: &ViewName,
    publications: &[PublicationRow],
) -> Result<InsertStatement> {
    let row = |publication: &PublicationRow| {
        let record = publication_record_hash(publication.hash, publication.created_at);
        Ok([
            (P::Conversation, i64::from(no).into()),
            (P::View, view.as_str().into()),
            (P::Version, to_int("version", publication.version.0)?.into()),
            (P::First, i64::from(publication.at.first.0).into()),
            (P::Last, i64::from(publication.at.last.0).into()),
            (P::At, publication.created_at.0.into()),
            (P::Hash, publication.hash.0.to_vec().into()),
            (P::Record, record.0.to_vec().into()),
        ])
    };
    insert(
        family.value(P::Tree),
        P::Table,
        publications.iter().map(row),
    )
}

/// Row of a publication, without the spans that the publication removed and added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicationRow {
    /// Version of the view that the publication created.
    pub version: ViewVersion,
    /// Range of positions that the publication replaced.
    pub at: SeqRange,
    /// Time of the publish.
    pub created_at: Timestamp,
    /// Chain hash over this publication and all earlier publications of the view.
    pub hash: Hash,
}

/// Builds the SQL statement that selects all publications of all views, in the order of their versions. Each row has
/// conversation, view, version, time, chain hash, and the hash over the row.
pub fn publication_records(family: Family) -> SelectStatement {
    Query::select()
        .columns([
            P::Conversation,
            P::View,
            P::Version,
            P::At,
            P::Hash,
            P::Record,
        ])
        .from(P::Table)
        .and_where_option(family.rows((P::Table, P::Tree)))
        .order_by(P::Conversation, Order::Asc)
        .order_by(P::View, Order::Asc)
        .order_by(P::Version, Order::Asc)
        .take()
}

/// Builds the SQL statement that selects at most `limit` publications of a view with versions above `after`, oldest
/// first. [`publication`] reads a row of the answer.
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn publications(
    family: Family,
    no: u32,
    view: &ViewName,
    after: ViewVersion,
    limit: u64,
) -> Result<SelectStatement> {
    Ok(Query::select()
        .columns([P::Version, P::First, P::Last, P::At, P::Hash])
        .from(P::Table)
        .and_where_option(family.rows((P::Table, P::Tree)))
        .and_where(Expr::col(P::Conversation).eq(i64::from(no)))
        .and_where(Expr::col(P::View).eq(view.as_str()))
        .and_where(Expr::col(P::Version).gt(to_int("version", after.0)?))
        .order_by(P::Version, Order::Asc)
        .limit(limit)
        .take())
}

/// Reads a publication from a row of [`publications`].
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn publication(row: &impl Columns) -> Result<PublicationRow> {
    Ok(PublicationRow {
        version: ViewVersion(to_count("version", row.int(0)?)?),
        at: to_range("publication", row.int(1)?, row.int(2)?)?,
        created_at: Timestamp(row.int(3)?),
        hash: to_hash("publication", &row.bytes(4)?)?,
    })
}

/// Builds the SQL statement that selects the spans that the versions from `from` to `to` (both inclusive) of a view
/// removed, sorted by version and position. Each row has the version, and then the columns that [`start`] reads.
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn removed(
    family: Family,
    no: u32,
    view: &ViewName,
    from: ViewVersion,
    to: ViewVersion,
) -> Result<SelectStatement> {
    Ok(Query::select()
        .column(H::RemovedIn)
        .columns(GONE)
        .from(H::Table)
        .and_where_option(family.rows((H::Table, H::Tree)))
        .and_where(Expr::col(H::Conversation).eq(i64::from(no)))
        .and_where(Expr::col(H::View).eq(view.as_str()))
        .and_where(
            Expr::col(H::RemovedIn).between(to_int("version", from.0)?, to_int("version", to.0)?),
        )
        .order_by(H::RemovedIn, Order::Asc)
        .order_by(H::First, Order::Asc)
        .take())
}

/// Builds the SQL statement that selects the spans that the versions from `from` to `to` (both inclusive) of a view
/// added. The columns and the order are those of [`removed`].
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn added(
    family: Family,
    no: u32,
    view: &ViewName,
    from: ViewVersion,
    to: ViewVersion,
) -> Result<SelectStatement> {
    let (from, to) = (to_int("version", from.0)?, to_int("version", to.0)?);
    let gone = Query::select()
        .column(H::AddedIn)
        .columns(GONE)
        .from(H::Table)
        .and_where_option(family.rows((H::Table, H::Tree)))
        .and_where(Expr::col(H::Conversation).eq(i64::from(no)))
        .and_where(Expr::col(H::View).eq(view.as_str()))
        .and_where(Expr::col(H::AddedIn).between(from, to))
        .take();
    Ok(Query::select()
        .column(S::AddedIn)
        .columns(LIVE)
        .from(S::Table)
        .and_where_option(family.rows((S::Table, S::Tree)))
        .and_where(Expr::col(S::Conversation).eq(i64::from(no)))
        .and_where(Expr::col(S::View).eq(view.as_str()))
        .and_where(Expr::col(S::AddedIn).between(from, to))
        .union(UnionType::All, gone)
        .order_by(S::AddedIn, Order::Asc)
        .order_by(S::First, Order::Asc)
        .take())
}

/// Builds the SQL statement that selects the names of all views of all conversations, sorted. The answer has rows of
/// (conversation, name).
pub fn names(family: Family) -> SelectStatement {
    Query::select()
        .columns([V::Conversation, V::Name])
        .from(V::Table)
        .and_where_option(family.rows((V::Table, V::Tree)))
        .order_by(V::Conversation, Order::Asc)
        .order_by(V::Name, Order::Asc)
        .take()
}
