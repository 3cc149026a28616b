//! SQL statements for search index segments and their chunks, and functions that read their rows.

use memory_model::ConversationId;
use memory_store::{Chunk, IndexSegment, IndexedKind, NewIndexSegment};
use sea_query::{
    DeleteStatement, Expr, ExprTrait as _, Func, InsertStatement, Order, Query, SelectStatement,
};

use crate::convert::{to_int, to_u32};
use crate::error::Result;
use crate::family::Family;
use crate::insert::{insert, insert_row};
use crate::row::Columns;
use crate::tables::{
    Conversation as C, ErasedSummary as G, Erasure as E, SearchChunk as K, SearchSegment as S,
    Summary as M,
};

/// Builds the SQL statement that selects the index segments of these conversations, sorted by kind and position.
/// [`segment`] reads a row of the answer.
pub fn segments(family: Family, conversations: &[ConversationId]) -> SelectStatement {
    let conversations = conversations.iter().map(|one| i64::from(one.0));
    Query::select()
        .columns([S::Id, S::Kind, S::First, S::Last, S::Documents, S::Format])
        .column(S::Conversation)
        .from(S::Table)
        .and_where_option(family.rows((S::Table, S::Tree)))
        .and_where(Expr::col(S::Conversation).is_in(conversations))
        .order_by(S::Kind, Order::Asc)
        .order_by(S::First, Order::Asc)
        .take()
}

/// Reads a row of [`segments`]. Returns a conversation and one of its index segments. An invalid value is replaced, for
/// example a number out of range by 0. The segment's checksums then do not match, and the index is rebuilt.
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read.
pub fn segment(row: &impl Columns) -> Result<(ConversationId, IndexSegment)> {
    let kind = match row.text(1).as_deref() {
        Ok("summaries") => IndexedKind::Summaries,
        Ok("states") => IndexedKind::States,
        _ => IndexedKind::Messages,
    };
    let number = |at| row.int(at).map(|number| u32::try_from(number).unwrap_or(0));
    let conversation = ConversationId(to_u32("conversation", row.int(6)?)?);
    let segment = IndexSegment {
        id: u64::try_from(row.int(0)?).unwrap_or(0),
        kind,
        first: number(2)?,
        last: number(3)?,
        documents: number(4)?,
        // Bytes that are no text are damage as well.
        format: row.text(5).unwrap_or_default(),
    };
    Ok((conversation, segment))
}

/// Builds the SQL statement that counts the erasures in a conversation's own log, the conversation's own summaries
/// with erased words, and the erasures of entries that it sees. The answer is one row of three numbers.
pub fn erasures(family: Family, conversation: ConversationId) -> SelectStatement {
    let summaries = Query::select()
        .expr(Func::count(Expr::col((G::Table, G::Summary))))
        .from(G::Table)
        .and_where_option(family.rows((G::Table, G::Tree)))
        .inner_join(
            M::Table,
            family.and(
                Expr::col((M::Table, M::Id)).equals((G::Table, G::Summary)),
                (M::Table, M::Tree),
            ),
        )
        .and_where(Expr::col((M::Table, M::Conversation)).eq(i64::from(conversation.0)))
        .take();
    let seen = Query::select()
        .column(C::Erasures)
        .from(C::Table)
        .and_where_option(family.rows((C::Table, C::Tree)))
        .and_where(Expr::col(C::No).eq(i64::from(conversation.0)))
        .take();
    Query::select()
        .expr(Func::count(Expr::col(E::First)))
        .expr(Expr::from(summaries))
        .expr(Expr::from(seen))
        .from(E::Table)
        .and_where_option(family.rows((E::Table, E::Tree)))
        .and_where(Expr::col(E::Conversation).eq(i64::from(conversation.0)))
        .take()
}

/// Builds the SQL statement that selects the keys of an index segment's chunks, in rising order. The answer has one
/// column.
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn keys(family: Family, segment: u64) -> Result<SelectStatement> {
    Ok(Query::select()
        .column(K::Key)
        .from(K::Table)
        .and_where_option(family.rows((K::Table, K::Tree)))
        .and_where(Expr::col(K::Segment).eq(to_int("segment", segment)?))
        .order_by(K::Key, Order::Asc)
        .take())
}

/// Builds the SQL statement that selects the chunks of an index segment with these keys, by rising key. Selects all
/// chunks if `keys` is `None`. [`chunk`] reads a row of the answer.
///
/// # Errors
/// The errors of [`keys`].
pub fn chunks(family: Family, segment: u64, keys: Option<&[Vec<u8>]>) -> Result<SelectStatement> {
    let with = keys.map(|keys| Expr::col(K::Key).is_in(keys.iter().map(Vec::as_slice)));
    Ok(Query::select()
        .columns([K::Key, K::Data])
        .from(K::Table)
        .and_where_option(family.rows((K::Table, K::Tree)))
        .and_where(Expr::col(K::Segment).eq(to_int("segment", segment)?))
        .and_where_option(with)
        .order_by(K::Key, Order::Asc)
        .take())
}

/// Reads a chunk from a row of [`chunks`].
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn chunk(row: &impl Columns) -> Result<Chunk> {
    Ok(Chunk {
        key: row.bytes(0)?,
        data: row.bytes(1)?,
    })
}

/// Builds the SQL statement that inserts the row of an index segment, without its chunks.
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn put(
    family: Family,
    conversation: ConversationId,
    id: u64,
    new: &NewIndexSegment<'_>,
) -> Result<InsertStatement> {
    let row = [
        (S::Id, to_int("segment", id)?.into()),
        (S::Conversation, i64::from(conversation.0).into()),
        (S::Kind, new.kind.as_str().into()),
        (S::First, i64::from(new.first).into()),
        (S::Last, i64::from(new.last).into()),
        (S::Documents, i64::from(new.documents).into()),
        (S::Format, new.format.into()),
    ];
    insert_row(family.value(S::Tree), S::Table, row)
}

/// Builds the SQL statement that inserts chunks of an index segment.
///
/// # Errors
/// The errors of [`put`].
pub fn put_chunks(family: Family, segment: u64, chunks: &[Chunk]) -> Result<InsertStatement> {
    let id = to_int("segment", segment)?;
    let row = |chunk: &Chunk| {
        Ok([
            (K::Segment, id.into()),
            (K::Key, chunk.key.as_slice().into()),
            (K::Data, chunk.data.as_slice().into()),
        ])
    };
    insert(family.value(K::Tree), K::Table, chunks.iter().map(row))
}

/// Selection of index segments to delete.
#[derive(Debug, Clone, Copy)]
pub enum SegmentSelection<'a> {
    /// The segments with these ids.
    Ids(&'a [u64]),
    /// The segments of one kind of a conversation that end at or after this number: a position for messages and states, the
    /// number of a summary for summaries.
    From(ConversationId, IndexedKind, u32),
    /// All segments of the conversation.
    All(ConversationId),
}

impl SegmentSelection<'_> {
    fn condition(self) -> Result<Expr> {
        let of =
            |conversation: ConversationId| Expr::col(S::Conversation).eq(i64::from(conversation.0));
        Ok(match self {
            SegmentSelection::Ids(ids) => {
                let ids = ids.iter().map(|id| to_int("segment", *id));
                Expr::col(S::Id).is_in(ids.collect::<Result<Vec<i64>>>()?)
            }
            SegmentSelection::From(conversation, kind, first) => of(conversation)
                .and(Expr::col(S::Kind).eq(kind.as_str()))
                .and(Expr::col(S::Last).gte(i64::from(first))),
            SegmentSelection::All(conversation) => of(conversation),
        })
    }
}

/// Builds two SQL statements, to be run in this order: the first deletes the chunks of the selected index segments, and
/// the second deletes the segments.
///
/// # Errors
/// The errors of [`keys`].
pub fn delete(family: Family, which: SegmentSelection<'_>) -> Result<[DeleteStatement; 2]> {
    let segments = Query::select()
        .column(S::Id)
        .from(S::Table)
        .and_where_option(family.rows((S::Table, S::Tree)))
        .and_where(which.condition()?)
        .take();
    let chunks = Query::delete()
        .from_table(K::Table)
        .and_where_option(family.rows(K::Tree))
        .and_where(Expr::col(K::Segment).in_subquery(segments))
        .take();
    let segments = Query::delete()
        .from_table(S::Table)
        .and_where_option(family.rows(S::Tree))
        .and_where(which.condition()?)
        .take();
    Ok([chunks, segments])
}
