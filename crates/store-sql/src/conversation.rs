//! SQL statements for conversations and families, and functions that read their rows.

use memory_model::{ConversationId, Hash, Seq, SessionKey, Timestamp};
use memory_store::implementors::conversation_hash;
use memory_store::{Conversation, ConversationFilter, ConversationPatch, ConversationRef, Origin};
use sea_query::{
    CaseStatement, CommonTableExpression, Expr, ExprTrait as _, Func, Iden, InsertStatement, Order,
    Query, SelectStatement, UnionType, UpdateStatement, WithClause, WithQuery,
};

use crate::convert::{to_count, to_hash, to_int, to_json, to_seq, to_u32};
use crate::error::{Result, corrupt};
use crate::family::Family;
use crate::insert::insert_row;
use crate::row::Columns;
use crate::tables::{Conversation as C, Family as F};

const READ: [C; 18] = [
    C::No,
    C::Tree,
    C::Key,
    C::Kind,
    C::Parent,
    C::Shared,
    C::SpawnedAt,
    C::SpawnedCall,
    C::Head,
    C::Tokens,
    C::Chain,
    C::Estimator,
    C::Archived,
    C::Title,
    C::CreatedAt,
    C::UpdatedAt,
    C::Meta,
    C::Erasures,
];

/// Builds the SQL statement that selects a conversation by number or key. The answer is one row, which [`conversation`]
/// reads.
pub fn find(family: Family, which: &ConversationRef) -> SelectStatement {
    let mut statement = Query::select();
    statement
        .columns(READ)
        .from(C::Table)
        .and_where_option(family.rows((C::Table, C::Tree)));
    match which {
        ConversationRef::Id(id) => statement.and_where(Expr::col(C::No).eq(i64::from(id.0))),
        ConversationRef::Key(key) => statement.and_where(Expr::col(C::Key).eq(key.as_str())),
    };
    statement
}

/// Builds the SQL statement that selects a conversation and, if it is a fork, its parent, the parent's parent and so
/// on. The conversation itself is the first row. [`ancestor`] reads a row of the answer.
pub fn lineage(family: Family, no: u32) -> WithQuery {
    let step = |statement: &mut SelectStatement| {
        let fork = Expr::col((C::Table, C::Shared)).is_not_null();
        statement
            .column((C::Table, C::No))
            .expr(Expr::case(fork, Expr::col((C::Table, C::Parent))))
            .column((C::Table, C::Shared));
    };
    let mut begin = Query::select();
    step(&mut begin);
    begin
        .from(C::Table)
        .and_where_option(family.rows((C::Table, C::Tree)))
        .and_where(Expr::col((C::Table, C::No)).eq(i64::from(no)));
    let mut up = Query::select();
    step(&mut up);
    up.from(Up::Table).inner_join(
        C::Table,
        family.and(
            Expr::col((C::Table, C::No)).equals((Up::Table, Up::Parent)),
            (C::Table, C::Tree),
        ),
    );
    let steps = CommonTableExpression::new()
        .table_name(Up::Table)
        .columns([Up::No, Up::Parent, Up::Shared])
        .query(begin.union(UnionType::Distinct, up).to_owned())
        .to_owned();
    Query::select()
        .columns([Up::No, Up::Parent, Up::Shared])
        .from(Up::Table)
        .order_by(Up::No, Order::Desc)
        .take()
        .with(recursive(steps))
}

/// Reads a row of [`lineage`]. Returns the number of a conversation and, for a fork, its parent with the last position
/// that the fork shares with the parent.
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn ancestor(row: &impl Columns) -> Result<(ConversationId, Option<(ConversationId, Seq)>)> {
    let no = ConversationId(to_u32("conversation", row.int(0)?)?);
    let fork = match (row.opt_int(1)?, row.opt_int(2)?) {
        (Some(parent), Some(at)) => Some((ConversationId(to_u32("parent", parent)?), to_seq(at)?)),
        _ => None,
    };
    Ok((no, fork))
}

/// Returns the clause `WITH RECURSIVE` for a common table expression.
pub(crate) fn recursive(steps: CommonTableExpression) -> WithClause {
    WithClause::new().recursive(true).cte(steps).to_owned()
}

/// Returns the recursive clause with which SQL statements begin that read a conversation together with the logs and
/// summaries that it inherits. Its rows are the conversation and its ancestors. Each row has the number of a
/// conversation, the last position of its log that belongs to the first conversation, and a level: 0 for the
/// conversation, 1 for its parent, and so on. The number `no` is the first value of a statement with this clause.
pub(crate) fn seen_from(family: Family, no: u32) -> WithClause {
    let mut begin = Query::select();
    begin
        .expr(Expr::val(i64::from(no)))
        .expr(Expr::val(i64::from(u32::MAX)))
        .expr(Expr::val(0_i64));
    let (seen, shared) = (
        || Expr::col((Seen::Table, Seen::Last)),
        || Expr::col((C::Table, C::Shared)),
    );
    // The lesser of the two positions. Databases have different functions for the minimum, so this is a CASE.
    let nearer = CaseStatement::new()
        .case(seen().lt(shared()), seen())
        .finally(shared());
    let up = Query::select()
        .column((C::Table, C::Parent))
        .expr(nearer)
        .expr(Expr::col((Seen::Table, Seen::Level)).add(1_i64))
        .from(Seen::Table)
        .inner_join(
            C::Table,
            family.and(
                Expr::col((C::Table, C::No)).equals((Seen::Table, Seen::No)),
                (C::Table, C::Tree),
            ),
        )
        .and_where(Expr::col((C::Table, C::Shared)).is_not_null())
        // A parent has a lower number than its forks, so the recursion ends even in a damaged table.
        .and_where(Expr::col((C::Table, C::Parent)).lt(Expr::col((C::Table, C::No))))
        .take();
    begin.union(UnionType::All, up);
    let seen = CommonTableExpression::new()
        .table_name(Seen::Table)
        .columns([Seen::No, Seen::Last, Seen::Level])
        .query(begin)
        .to_owned();
    recursive(seen)
}

/// Names of the table and columns of the recursive query in [`lineage`].
#[derive(Clone, Copy)]
enum Up {
    Table,
    No,
    Parent,
    Shared,
}

impl Iden for Up {
    fn unquoted(&self) -> &str {
        match self {
            Up::Table => "up",
            Up::No => "no",
            Up::Parent => "parent",
            Up::Shared => "shared",
        }
    }
}

/// Names of the table and columns of the recursive query in [`seen_from`].
#[derive(Clone, Copy)]
pub(crate) enum Seen {
    Table,
    No,
    Last,
    Level,
}

impl Iden for Seen {
    fn unquoted(&self) -> &str {
        match self {
            Seen::Table => "seen",
            Seen::No => "no",
            Seen::Last => "last",
            Seen::Level => "level",
        }
    }
}

/// Builds the SQL statement that selects at most `limit` conversations that match a filter and have numbers above
/// `after`, by rising number. [`conversation`] reads a row of the answer.
pub fn list(
    filter: &ConversationFilter,
    after: Option<ConversationId>,
    limit: u64,
) -> SelectStatement {
    let mut statement = Query::select();
    statement
        .columns(READ)
        .from(C::Table)
        .and_where(Expr::col(C::No).gt(after.map_or(0, |id| i64::from(id.0))))
        .order_by(C::No, Order::Asc)
        .limit(limit);
    if let Some(tree) = filter.family {
        statement.and_where(Expr::col(C::Tree).eq(i64::from(tree.0)));
    }
    if !filter.archived {
        statement.and_where(Expr::col(C::Archived).eq(0_i64));
    }
    statement
}

/// Reads a conversation from a row of [`find`] or [`list`]. Its list of log segments is left empty.
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn conversation(row: &impl Columns) -> Result<Conversation> {
    let id = ConversationId(to_u32("conversation", row.int(0)?)?);
    let wrong = |problem: &str| corrupt(format!("conversation {id}"), problem);
    let parent = || -> Result<ConversationId> {
        let parent = row.opt_int(4)?.ok_or_else(|| wrong("it has no parent"))?;
        Ok(ConversationId(to_u32("parent", parent)?))
    };
    let origin = match row.text(3)?.as_str() {
        "root" => Origin::Root,
        "fork" => Origin::Fork {
            parent: parent()?,
            at: to_seq(row.int(5)?)?,
        },
        "spawn" => Origin::Spawn {
            parent: parent()?,
            at: to_seq(row.int(6)?)?,
            call: row.opt_text(7)?,
        },
        _ => return Err(wrong("unknown kind")),
    };
    let meta = to_json(format_args!("meta of conversation {id}"), row.opt_text(16)?)?;
    Ok(Conversation {
        id,
        family: ConversationId(to_u32("tree", row.int(1)?)?),
        key: SessionKey::new(row.text(2)?),
        origin,
        segments: Vec::new(),
        head: to_seq(row.int(8)?)?,
        tokens: to_count("tokens of a conversation", row.int(9)?)?,
        chain: to_hash("chain of a conversation", &row.bytes(10)?)?,
        estimator: row
            .text(11)?
            .parse()
            .map_err(|e: token_estimate::Error| wrong("unreadable estimator").with_source(e))?,
        archived: row.int(12)? != 0,
        title: row.opt_text(13)?,
        created_at: Timestamp(row.int(14)?),
        updated_at: Timestamp(row.int(15)?),
        meta,
        erasures: to_count("erasures", row.int(17)?)?,
    })
}

/// Builds the SQL statement that selects the largest number of a conversation. The answer is one row with one number,
/// or null if there is no conversation.
pub fn last_number() -> SelectStatement {
    Query::select()
        .expr(Func::max(Expr::col(C::No)))
        .from(C::Table)
        .take()
}

/// Builds the SQL statement that inserts the row of a new conversation.
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn insert(new: &Conversation) -> Result<InsertStatement> {
    let (kind, shared, spawned_at, call) = match &new.origin {
        Origin::Root => ("root", None, None, None),
        Origin::Fork { at, .. } => ("fork", Some(i64::from(at.0)), None, None),
        Origin::Spawn { at, call, .. } => ("spawn", None, Some(i64::from(at.0)), call.clone()),
    };
    let meta = new.meta.as_ref();
    let row = [
        (C::No, i64::from(new.id.0).into()),
        (C::Tree, i64::from(new.family.0).into()),
        (C::Key, new.key.as_str().into()),
        (C::Kind, kind.into()),
        (
            C::Parent,
            new.origin.parent().map(|id| i64::from(id.0)).into(),
        ),
        (C::Shared, shared.into()),
        (C::SpawnedAt, spawned_at.into()),
        (C::SpawnedCall, call.into()),
        (C::Head, i64::from(new.head.0).into()),
        (
            C::Tokens,
            to_int("tokens of a conversation", new.tokens)?.into(),
        ),
        (C::Estimator, new.estimator.as_str().to_owned().into()),
        (C::Title, new.title.clone().into()),
        (C::CreatedAt, new.created_at.0.into()),
        (C::UpdatedAt, new.updated_at.0.into()),
        (C::Meta, meta.map(|meta| meta.as_str().to_owned()).into()),
        (C::Record, conversation_hash(new).0.to_vec().into()),
    ];
    insert_row(None, C::Table, row)
}

/// Builds the SQL statement that changes the title, archive flag and metadata of a conversation, and sets the time of
/// its last change to `now`. A field that is `None` in the patch does not change.
pub fn patch(
    family: Family,
    no: u32,
    patch: &ConversationPatch,
    now: Timestamp,
) -> UpdateStatement {
    let mut statement = Query::update();
    statement
        .table(C::Table)
        .and_where_option(family.rows(C::Tree))
        .value(C::UpdatedAt, now.0)
        .and_where(Expr::col(C::No).eq(i64::from(no)));
    if let Some(title) = &patch.title {
        statement.value(C::Title, title.as_str());
    }
    if let Some(archived) = patch.archived {
        statement.value(C::Archived, i64::from(archived));
    }
    if let Some(meta) = &patch.meta {
        statement.value(C::Meta, meta.as_str());
    }
    statement
}

/// Builds the SQL statement that sets a conversation's chain hash and the time of its last change, after an append.
/// `record` is the hash over the conversation's row after this change.
pub fn set_chain(
    family: Family,
    no: u32,
    chain: Hash,
    now: Timestamp,
    record: Hash,
) -> UpdateStatement {
    let mut statement = touch(family, no, now, record);
    statement.value(C::Chain, chain.0.to_vec());
    statement
}

/// Builds the SQL statement that sets the time of a conversation's last change. `record` is the hash over the
/// conversation's row after this change.
pub fn touch(family: Family, no: u32, now: Timestamp, record: Hash) -> UpdateStatement {
    let mut statement = set_record(family, no, record);
    statement.value(C::UpdatedAt, now.0);
    statement
}

/// Builds the SQL statement that sets the hash over a conversation's row.
pub fn set_record(family: Family, no: u32, record: Hash) -> UpdateStatement {
    Query::update()
        .table(C::Table)
        .and_where_option(family.rows(C::Tree))
        .value(C::Record, record.0.to_vec())
        .and_where(Expr::col(C::No).eq(i64::from(no)))
        .take()
}

/// Builds the SQL statement that sets the hash over the names of a conversation's views.
pub fn set_views(family: Family, no: u32, views: Hash) -> UpdateStatement {
    Query::update()
        .table(C::Table)
        .and_where_option(family.rows(C::Tree))
        .value(C::Views, views.0.to_vec())
        .and_where(Expr::col(C::No).eq(i64::from(no)))
        .take()
}

/// Builds the SQL statement that selects at most `limit` conversations with numbers above `after`, by rising number,
/// together with their hashes. [`conversation`] and [`recorded`] read a row of the answer.
pub fn records(family: Family, after: i64, limit: u64) -> SelectStatement {
    Query::select()
        .columns(READ)
        .columns([C::Record, C::Views])
        .from(C::Table)
        .and_where_option(family.rows((C::Table, C::Tree)))
        .and_where(Expr::col(C::No).gt(after))
        .order_by(C::No, Order::Asc)
        .limit(limit)
        .take()
}

/// Reads two hashes from a row of [`records`]: the hash over the conversation's row, and the hash over the names of its
/// views.
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn recorded(row: &impl Columns) -> Result<(Hash, Hash)> {
    Ok((
        to_hash("record of a conversation", &row.bytes(READ.len())?)?,
        to_hash("views of a conversation", &row.bytes(READ.len() + 1)?)?,
    ))
}

/// Builds the SQL statement that selects one family: its number of members, and the hash over their session keys.
/// `tree` is the number of the family's root conversation.
pub fn family(tree: u32) -> SelectStatement {
    Query::select()
        .columns([F::Members, F::Hash])
        .from(F::Table)
        .and_where(Expr::col(F::Tree).eq(i64::from(tree)))
        .take()
}

/// Builds the SQL statement that selects all families. Each row has the number of the root conversation, the number of
/// members, and the hash over their session keys.
pub fn families() -> SelectStatement {
    Query::select()
        .columns([F::Tree, F::Members, F::Hash])
        .from(F::Table)
        .take()
}

/// Reads the root conversation of a family from a row of [`families`].
///
/// # Errors
/// `Corrupt` if the column cannot be read or holds an invalid value.
pub fn root(row: &impl Columns) -> Result<ConversationId> {
    Ok(ConversationId(to_u32("tree", row.int(0)?)?))
}

/// Builds the SQL statement that inserts a family with its root conversation `tree` as the only member. `hash` is the
/// hash over the root's session key.
///
/// # Errors
/// `Invalid` if a row has more values than columns, which would be a defect of this crate.
pub fn insert_family(tree: u32, hash: Hash) -> Result<InsertStatement> {
    let row = [
        (F::Tree, i64::from(tree).into()),
        (F::Members, 1_i64.into()),
        (F::Hash, hash.0.to_vec().into()),
    ];
    insert_row(None, F::Table, row)
}

/// Builds the SQL statement that adds one member to the family of the root conversation `tree`. `hash` is the hash over
/// the members' session keys, including the new member's.
pub fn extend_family(tree: u32, hash: Hash) -> UpdateStatement {
    Query::update()
        .table(F::Table)
        .value(F::Members, Expr::col(F::Members).add(1_i64))
        .value(F::Hash, hash.0.to_vec())
        .and_where(Expr::col(F::Tree).eq(i64::from(tree)))
        .take()
}
