//! Conversations and what they read.

use memory_model::{ConversationId, RawJson, Seq, SessionKey, Timestamp};
use memory_store::{
    Conversation, ConversationFilter, ConversationPatch, ConversationRef, NewConversation, Origin,
    Segment,
};
use sea_query::{
    Expr, ExprTrait as _, Func, InsertStatement, Order, Query, SelectStatement, SimpleExpr,
    UpdateStatement,
};

use crate::convert::{to_count, to_hash, to_int, to_seq, to_u32};
use crate::error::{Result, add_row, corrupt};
use crate::sql::Columns;
use crate::tables::{Conversation as C, Segment as S};

const READ: [C; 17] = [
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
];

/// Looks a conversation up by number or key: one row for [`conversation`].
pub fn find(which: &ConversationRef) -> SelectStatement {
    let mut statement = Query::select();
    statement.columns(READ).from(C::Table);
    match which {
        ConversationRef::Id(id) => statement.and_where(Expr::col(C::No).eq(i64::from(id.0))),
        ConversationRef::Key(key) => statement.and_where(Expr::col(C::Key).eq(key.as_str())),
    };
    statement
}

/// The parent and the last shared position of a conversation, both null unless it is a fork: a row for [`fork`].
pub fn fork_point(no: u32) -> SelectStatement {
    let shared = Expr::col(C::Shared).is_not_null();
    Query::select()
        .expr(Expr::case(shared, Expr::col(C::Parent)))
        .column(C::Shared)
        .from(C::Table)
        .and_where(Expr::col(C::No).eq(i64::from(no)))
        .take()
}

/// A row of [`fork_point`].
///
/// # Errors
/// When the row does not mean a conversation.
pub fn fork(row: &impl Columns) -> Result<Option<(ConversationId, Seq)>> {
    match (row.opt_int(0)?, row.opt_int(1)?) {
        (Some(parent), Some(at)) => Ok(Some((
            ConversationId(to_u32("parent", parent)?),
            to_seq(at)?,
        ))),
        _ => Ok(None),
    }
}

/// Conversations by rising number, after `after`: rows for [`conversation`].
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
    if let Some(tree) = filter.tree {
        statement.and_where(Expr::col(C::Tree).eq(i64::from(tree.0)));
    }
    if !filter.archived {
        statement.and_where(Expr::col(C::Archived).eq(0_i64));
    }
    statement
}

/// A row of [`find`] or [`list`]; its segments are still empty.
///
/// # Errors
/// When the row does not mean a conversation.
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
    let meta = row
        .opt_text(16)?
        .map(RawJson::parse)
        .transpose()
        .map_err(|e| wrong("meta is not JSON").with_source(e))?;
    Ok(Conversation {
        id,
        tree: ConversationId(to_u32("tree", row.int(1)?)?),
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
    })
}

/// The greatest number so far, null when there is none.
pub fn last_number() -> SelectStatement {
    Query::select()
        .expr(Func::max(Expr::col(C::No)))
        .from(C::Table)
        .take()
}

/// Inserts a conversation under the number `no`; `head` and `tokens` are those of what it shares.
///
/// # Errors
/// When a number does not fit its column.
pub fn insert(
    no: u32,
    tree: u32,
    new: &NewConversation,
    head: Seq,
    tokens: u64,
) -> Result<InsertStatement> {
    let (kind, shared, spawned_at, call) = match &new.origin {
        Origin::Root => ("root", None, None, None),
        Origin::Fork { at, .. } => ("fork", Some(i64::from(at.0)), None, None),
        Origin::Spawn { at, call, .. } => ("spawn", None, Some(i64::from(at.0)), call.clone()),
    };
    let values: [SimpleExpr; 15] = [
        i64::from(no).into(),
        i64::from(tree).into(),
        new.key.as_str().into(),
        kind.into(),
        new.origin.parent().map(|id| i64::from(id.0)).into(),
        shared.into(),
        spawned_at.into(),
        call.into(),
        i64::from(head.0).into(),
        to_int("tokens of a conversation", tokens)?.into(),
        new.estimator.as_str().to_owned().into(),
        new.title.clone().into(),
        new.now.0.into(),
        new.now.0.into(),
        new.meta
            .as_ref()
            .map(|meta| meta.as_str().to_owned())
            .into(),
    ];
    let mut statement = Query::insert();
    statement.into_table(C::Table).columns([
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
        C::Estimator,
        C::Title,
        C::CreatedAt,
        C::UpdatedAt,
        C::Meta,
    ]);
    add_row(&mut statement, values)?;
    Ok(statement)
}

/// Sets what may change beside the log.
pub fn patch(no: u32, patch: &ConversationPatch, now: Timestamp) -> UpdateStatement {
    let mut statement = Query::update();
    statement
        .table(C::Table)
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

/// Sets the chain after an append.
pub fn set_chain(no: u32, chain: memory_model::Hash, now: Timestamp) -> UpdateStatement {
    Query::update()
        .table(C::Table)
        .value(C::Chain, chain.0.to_vec())
        .value(C::UpdatedAt, now.0)
        .and_where(Expr::col(C::No).eq(i64::from(no)))
        .take()
}

/// Sets the time of the last change.
pub fn touch(no: u32, now: Timestamp) -> UpdateStatement {
    Query::update()
        .table(C::Table)
        .value(C::UpdatedAt, now.0)
        .and_where(Expr::col(C::No).eq(i64::from(no)))
        .take()
}

/// The segments of conversations, in order: rows for [`segment`].
pub fn segments(conversations: &[u32]) -> SelectStatement {
    Query::select()
        .columns([S::Conversation, S::First, S::Last, S::Source])
        .from(S::Table)
        .and_where(Expr::col(S::Conversation).is_in(conversations.iter().map(|no| i64::from(*no))))
        .order_by(S::Conversation, Order::Asc)
        .order_by(S::First, Order::Asc)
        .take()
}

/// A row of [`segments`], with the conversation that it belongs to.
///
/// # Errors
/// When the row does not mean a segment.
pub fn segment(row: &impl Columns) -> Result<(ConversationId, Segment)> {
    let segment = Segment {
        first: to_seq(row.int(1)?)?,
        last: row.opt_int(2)?.map(to_seq).transpose()?,
        source: ConversationId(to_u32("source of a segment", row.int(3)?)?),
    };
    Ok((
        ConversationId(to_u32("conversation", row.int(0)?)?),
        segment,
    ))
}

/// Inserts the segments of a new conversation.
///
/// # Errors
/// When the statement can not be built.
pub fn insert_segments(no: u32, segments: &[Segment]) -> Result<InsertStatement> {
    let mut statement = Query::insert();
    statement
        .into_table(S::Table)
        .columns([S::Conversation, S::First, S::Last, S::Source]);
    for segment in segments {
        let values: [SimpleExpr; 4] = [
            i64::from(no).into(),
            i64::from(segment.first.0).into(),
            segment.last.map(|seq| i64::from(seq.0)).into(),
            i64::from(segment.source.0).into(),
        ];
        add_row(&mut statement, values)?;
    }
    Ok(statement)
}
