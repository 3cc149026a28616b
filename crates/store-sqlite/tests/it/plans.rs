//! Tests that statements use the indices that were made for them.

use memory_model::{ConversationId, Hash, Seq, SummaryId, ViewName, ViewVersion};
use memory_store::implementors::SummaryScope;
use memory_store::{ConversationFilter, ConversationRef};
use sea_query::{Order, QueryStatementWriter, SqliteQueryBuilder};
use sqlx::{AssertSqlSafe, Row as _};
use store_sql::summary::SummaryStart;
use store_sql::view::SpanRows;
use store_sql::{conversation, message, summary, view, work};

use crate::common::{leaf, store, stranger, texts};
use store_conformance::{Chat, range};

fn sql(statement: impl QueryStatementWriter) -> String {
    statement.to_string(SqliteQueryBuilder)
}

#[tokio::test]
async fn every_statement_searches_and_none_scans() {
    let (folder, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    for n in 0..100 {
        Chat::root(&store, &format!("other {n}")).await;
    }
    chat.append(texts(1, 2000)).await;
    for n in 0..50 {
        leaf(chat, range(n * 10 + 1, n * 10 + 10)).await;
    }
    let mut db = stranger(&folder).await;
    let (view, version) = (ViewName::new("dag"), ViewVersion(7));
    let sum = SummaryId::new("sum_0");
    let family = ConversationFilter::default();
    let id = chat.id;
    let own = SummaryScope::own(id);
    let scope = own.parent(ConversationId(2), Seq(99));
    let by_key = ConversationRef::Key("a".into());
    let behind = summary::log(own, &[], SummaryStart::Summary(&sum), 9);
    let statements = [
        ("conversation by key", sql(conversation::find(&by_key))),
        (
            "conversation by number",
            sql(conversation::find(&ConversationRef::Id(id))),
        ),
        ("list", sql(conversation::list(&family, Some(id), 10))),
        ("lineage", sql(conversation::lineage(1))),
        (
            "log",
            sql(message::range(1, range(5, 50), Order::Desc, 10, 99)),
        ),
        (
            "log at positions",
            sql(message::positions(
                1,
                &[Seq(5), Seq(70)],
                Order::Asc,
                10,
                99,
            )),
        ),
        ("external", sql(message::by_external(2))),
        (
            "external, as a fork sees it",
            sql(message::by_external_seen(2)),
        ),
        ("running", sql(message::running(&[7, 8]))),
        ("seq_at", sql(message::seq_at(1, range(1, 9), 4).unwrap())),
        ("snapshot", sql(view::snapshot(1, &view))),
        (
            "spans falling",
            sql(view::spans(1, &view, version, SpanRows::Falling(Seq(90)), 9).unwrap()),
        ),
        (
            "spans rising",
            sql(view::spans(1, &view, version, SpanRows::Rising(Seq(2), Seq(90)), 9).unwrap()),
        ),
        (
            "removed",
            sql(view::removed(1, &view, version, version).unwrap()),
        ),
        (
            "added",
            sql(view::added(1, &view, version, version).unwrap()),
        ),
        (
            "publications",
            sql(view::publications(1, &view, version, 9).unwrap()),
        ),
        ("delete spans", sql(view::delete_spans(1, &view, &[Seq(1)]))),
        ("summaries", sql(summary::by_ids(1, &["a"]))),
        (
            "summary log",
            sql(summary::log(own, &[], SummaryStart::Key(9), 9)),
        ),
        (
            "summary log behind a summary",
            sql(summary::log(own, &[], SummaryStart::Summary(&sum), 9)),
        ),
        (
            "links of a summary log",
            sql(summary::links_of_log(&behind)),
        ),
        (
            "summary log of an ancestor",
            sql(summary::log(scope, &[own], SummaryStart::Nothing, 9)),
        ),
        ("known summaries", sql(summary::known_by_ids(1, &["a"]))),
        (
            "parents of an ancestor",
            sql(summary::parents(own, 2, &sum)),
        ),
        (
            "by source",
            sql(summary::by_sources(1, &[Hash::ZERO], &["r"])),
        ),
        ("last key", sql(summary::last_key(1))),
        ("links", sql(summary::links(&[1]))),
        ("parents", sql(summary::parents(own, 1, &sum))),
        ("job", sql(work::find_jobs(id, &["k"]))),
        ("state", sql(work::find_state(id, "k"))),
    ];
    let mut plans = String::new();
    for analyzed in [false, true] {
        if analyzed {
            sqlx::raw_sql("analyze").execute(&mut db).await.unwrap();
        }
        for (what, sql) in &statements {
            let explain = AssertSqlSafe(format!("explain query plan {sql}"));
            let rows = sqlx::query(explain).fetch_all(&mut db).await.unwrap();
            let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
            for step in &plan {
                let fine = !step.starts_with("SCAN")
                    || step.contains("CONSTANT ROW")
                    || ["SCAN search", "SCAN seen", "SCAN up"].contains(&step.as_str());
                assert!(fine, "{what}: {plan:#?}");
                // A count may use any index over the view's rows.
                let counts = ["snapshot", "views"].contains(what);
                assert!(
                    counts || what.starts_with("added") || !step.contains("_added"),
                    "{what}: {plan:#?}"
                );
            }
            plans.push_str(&format!("{what}: {}\n", plan.join("; ")));
        }
    }
    for expected in [
        "log: SEARCH message USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
        "external: SEARCH message USING INDEX message_external (conversation=? AND external_id=?)",
        "SEARCH summary USING INDEX summary_source (conversation=? AND source_hash=? AND recipe=?)",
        "span USING PRIMARY KEY (conversation=? AND view=? AND first<?)",
        "span_history USING PRIMARY KEY (conversation=? AND view=? AND removed_in>?)",
        "span_added",
        "span_history_added",
        "summary_link_child",
    ] {
        assert!(plans.contains(expected), "{expected} is not in\n{plans}");
    }
}
