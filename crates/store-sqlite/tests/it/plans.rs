//! The statements use the indices that they were made for.

use memory_model::{ConversationId, Hash, Seq, SummaryId, ViewVersion};
use memory_store::implementors::SummaryScope;
use memory_store::{ConversationFilter, ConversationRef};
use sea_query::{Order, SqliteQueryBuilder};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _};
use store_sql::summary::After;
use store_sql::view::Where;

use crate::common::{append, dag, leaf, range, root, store, texts};

#[tokio::test]
async fn every_statement_searches_and_none_scans() {
    let (folder, store) = store().await;
    let id = root(&store, "a").await;
    for n in 0..100 {
        root(&store, &format!("other {n}")).await;
    }
    append(&store, id, texts(1, 2000)).await;
    for n in 0..50 {
        leaf(&store, id, range(n * 10 + 1, n * 10 + 10)).await;
    }
    let options = SqliteConnectOptions::new().filename(folder.path().join("memory.db"));
    let mut db = options.connect().await.unwrap();
    let (view, version) = (dag(), ViewVersion(7));
    let sum = SummaryId::new("sum_0");
    let family = ConversationFilter::default();
    let own = SummaryScope::own(id);
    let scope = own.parent(ConversationId(2), Seq(99));
    let statements = [
        (
            "conversation by key",
            store_sql::conversation::find(&ConversationRef::Key("a".into()))
                .to_string(SqliteQueryBuilder),
        ),
        (
            "conversation by number",
            store_sql::conversation::find(&ConversationRef::Id(id)).to_string(SqliteQueryBuilder),
        ),
        (
            "list",
            store_sql::conversation::list(&family, Some(id), 10).to_string(SqliteQueryBuilder),
        ),
        (
            "lineage",
            store_sql::conversation::lineage(1).to_string(SqliteQueryBuilder),
        ),
        (
            "log",
            store_sql::message::range(1, range(5, 50), Order::Desc, 10, 99)
                .to_string(SqliteQueryBuilder),
        ),
        (
            "log at positions",
            store_sql::message::positions(1, &[Seq(5), Seq(70)], Order::Asc, 10, 99)
                .to_string(SqliteQueryBuilder),
        ),
        (
            "external",
            store_sql::message::by_external(2).to_string(SqliteQueryBuilder),
        ),
        (
            "external, as a fork sees it",
            store_sql::message::by_external_seen(2).to_string(SqliteQueryBuilder),
        ),
        (
            "running",
            store_sql::message::running(&[7, 8]).to_string(SqliteQueryBuilder),
        ),
        (
            "seq_at",
            store_sql::message::seq_at(1, range(1, 9), 4)
                .unwrap()
                .to_string(SqliteQueryBuilder),
        ),
        (
            "snapshot",
            store_sql::view::snapshot(1, &view).to_string(SqliteQueryBuilder),
        ),
        (
            "spans falling",
            store_sql::view::spans(1, &view, version, Where::Falling(Seq(90)), 9)
                .unwrap()
                .to_string(SqliteQueryBuilder),
        ),
        (
            "spans rising",
            store_sql::view::spans(1, &view, version, Where::Rising(Seq(2), Seq(90)), 9)
                .unwrap()
                .to_string(SqliteQueryBuilder),
        ),
        (
            "removed",
            store_sql::view::removed(1, &view, version, version)
                .unwrap()
                .to_string(SqliteQueryBuilder),
        ),
        (
            "added",
            store_sql::view::added(1, &view, version, version)
                .unwrap()
                .to_string(SqliteQueryBuilder),
        ),
        (
            "publications",
            store_sql::view::publications(1, &view, version, 9)
                .unwrap()
                .to_string(SqliteQueryBuilder),
        ),
        (
            "delete spans",
            store_sql::view::delete_spans(1, &view, &[Seq(1)]).to_string(SqliteQueryBuilder),
        ),
        (
            "summaries",
            store_sql::summary::by_ids(1, &["a"]).to_string(SqliteQueryBuilder),
        ),
        (
            "summary log",
            store_sql::summary::log(own, &[], After::Key(9), 9).to_string(SqliteQueryBuilder),
        ),
        (
            "summary log behind a summary",
            store_sql::summary::log(own, &[], After::Summary(&sum), 9)
                .to_string(SqliteQueryBuilder),
        ),
        (
            "links of a summary log",
            store_sql::summary::links_of_log(&store_sql::summary::log(
                own,
                &[],
                After::Summary(&sum),
                9,
            ))
            .to_string(SqliteQueryBuilder),
        ),
        (
            "summary log of an ancestor",
            store_sql::summary::log(scope, &[own], After::Nothing, 9).to_string(SqliteQueryBuilder),
        ),
        (
            "known summaries",
            store_sql::summary::known_by_ids(1, &["a"]).to_string(SqliteQueryBuilder),
        ),
        (
            "parents of an ancestor",
            store_sql::summary::parents(own, 2, &sum).to_string(SqliteQueryBuilder),
        ),
        (
            "by source",
            store_sql::summary::by_sources(1, &[Hash::ZERO], &["r"]).to_string(SqliteQueryBuilder),
        ),
        (
            "last key",
            store_sql::summary::last_key(1).to_string(SqliteQueryBuilder),
        ),
        (
            "links",
            store_sql::summary::links(&[1]).to_string(SqliteQueryBuilder),
        ),
        (
            "parents",
            store_sql::summary::parents(own, 1, &sum).to_string(SqliteQueryBuilder),
        ),
        (
            "job",
            store_sql::work::find_jobs(id, &["k"]).to_string(SqliteQueryBuilder),
        ),
        (
            "state",
            store_sql::work::find_state(id, "k").to_string(SqliteQueryBuilder),
        ),
    ];
    let mut plans = String::new();
    for analyzed in [false, true] {
        if analyzed {
            sqlx::raw_sql("analyze").execute(&mut db).await.unwrap();
        }
        for (what, sql) in &statements {
            let rows = sqlx::query(AssertSqlSafe(format!("explain query plan {sql}")))
                .fetch_all(&mut db)
                .await
                .unwrap();
            let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
            for step in &plan {
                let fine = !step.starts_with("SCAN")
                    || step.contains("CONSTANT ROW")
                    || ["SCAN search", "SCAN seen", "SCAN up"].contains(&step.as_str());
                assert!(fine, "{what}: {plan:#?}");
                // For a count, any index over the view's rows will do.
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
