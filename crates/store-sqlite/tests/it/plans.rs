//! Tests that statements use the indices that were made for them.

use sea_query::SqliteQueryBuilder;
use sqlx::{AssertSqlSafe, Row as _};
use store_sql::{Family, hot_statements, inlined};

use crate::common::{leaf, store, stranger, texts};
use store_conformance::{Chat, range};

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
    let statements = hot_statements(Family::ANY, chat.id).unwrap();
    let mut plans = String::new();
    for analyzed in [false, true] {
        if analyzed {
            sqlx::raw_sql("analyze").execute(&mut db).await.unwrap();
        }
        for (what, statement) in &statements {
            let sql = inlined(statement, SqliteQueryBuilder);
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
