//! SQL statements over the running sums of tokens: the sum of an entry, and the entry with a sum.

use memory_model::SeqRange;
use sea_query::{
    CaseStatement, CommonTableExpression, Expr, ExprTrait as _, Iden, Query, SelectStatement,
    UnionType, WithQuery,
};

use crate::conversation::recursive;
use crate::convert::{packed, to_int};
use crate::error::Result;
use crate::family::Family;
use crate::tables::Message as M;

/// Builds the SQL statement that selects running sums of the entries with these row keys (see [`packed`]). The answer
/// has rows of (key, running sum in tokens).
pub fn running(family: Family, keys: &[i64]) -> SelectStatement {
    Query::select()
        .columns([M::Id, M::Running])
        .from(M::Table)
        .and_where_option(family.rows((M::Table, M::Tree)))
        .and_where(Expr::col(M::Id).is_in(keys.iter().copied()))
        .take()
}

/// Builds the SQL statement that selects the first position of `range`, in the own log of `source`, with a running sum
/// of at least `running` tokens. The answer is one number. The last position of `range` must have a large enough sum.
/// The statement makes a binary search, so that the table needs no index over the sums.
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn seq_at(family: Family, source: u32, range: SeqRange, running: u64) -> Result<WithQuery> {
    let running = to_int("running tokens", running)?;
    let middle = || {
        Expr::col(Search::Low)
            .add(Expr::col(Search::High))
            .div(2_i64)
    };
    let sum = Query::select()
        .column((M::Table, M::Running))
        .from(M::Table)
        .and_where_option(family.rows((M::Table, M::Tree)))
        .and_where(Expr::col((M::Table, M::Id)).eq(Expr::val(packed(source, 0)).bit_or(middle())))
        .take();
    let below = || Expr::from(sum.clone()).lt(running);
    let step = Query::select()
        .expr(
            CaseStatement::new()
                .case(below(), middle().add(1_i64))
                .finally(Expr::col(Search::Low)),
        )
        .expr(
            CaseStatement::new()
                .case(below(), Expr::col(Search::High))
                .finally(middle()),
        )
        .from(Search::Table)
        .and_where(Expr::col(Search::Low).lt(Expr::col(Search::High)))
        .take();
    let begin = Query::select()
        .expr(Expr::val(i64::from(range.first.0)))
        .expr(Expr::val(i64::from(range.last.0)))
        .union(UnionType::All, step)
        .take();
    let search = CommonTableExpression::new()
        .table_name(Search::Table)
        .columns([Search::Low, Search::High])
        .query(begin)
        .to_owned();
    let found = Query::select()
        .column(Search::Low)
        .from(Search::Table)
        .and_where(Expr::col(Search::Low).eq(Expr::col(Search::High)))
        .take();
    Ok(found.with(recursive(search)))
}

/// Names of the table and columns of the recursive query in [`seq_at`].
#[derive(Clone, Copy)]
enum Search {
    Table,
    Low,
    High,
}

impl Iden for Search {
    fn unquoted(&self) -> &str {
        match self {
            Search::Table => "search",
            Search::Low => "low",
            Search::High => "high",
        }
    }
}
