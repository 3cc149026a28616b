//! Tests that statements use the indices that were made for them, and name the family.

use memory_model::ConversationId;
use sea_query::PostgresQueryBuilder;
use sqlx::{AssertSqlSafe, Row as _};
use store_sql::{Family, hot_statements, inlined};

use crate::common::{Schemas, run, schemas, server, stranger};

/// Variable with the number of sessions in the tables; each has a hundred messages.
const SESSIONS: &str = "AGENT_MEMORY_PLANS_SESSIONS";

/// Fills the tables, without the triggers, which are not needed for plans.
const FILL: &str = "
set session_replication_role = replica;
insert into conversation (no, tree, key, kind, head, tokens, estimator, created_at, updated_at)
  select no, no, 'session ' || no, 'root', 100, 10000, 'it', 1, no from generate_series(1, SESSIONS) no;
insert into directory (no, tree, key) select no, tree, key from conversation;
insert into family (tree, members, hash) select no, 1, sha256(no::text::bytea) from conversation;
insert into payload (tree, hash, codec, data)
  select no, sha256(no::text::bytea), 0, repeat('x', 300)::bytea from conversation;
insert into message (tree, id, conversation, seq, kind, role, external_id, at, tokens, running, hash, payload, body)
  select no, no::bigint << 32 | seq, no, seq, 'message', 'user', ('e' || seq)::bytea, 1, 100, seq * 100,
         sha256((no || ' ' || seq)::bytea), null, repeat('word ', 20)::bytea
    from conversation, generate_series(1, 100) seq;
insert into facts (tree, conversation, text) select no, no, '{}' from conversation;
insert into view (tree, conversation, name, version) select no, no, 'dag', 9 from conversation;
insert into span (tree, conversation, view, first, added_in, kind, tokens)
  select no, no, 'dag', first, 1, 'omitted', 1 from conversation, generate_series(1, 10) first
  union all select 77, 77, 'dag', first, 1, 'omitted', 1 from generate_series(11, 3000) first;
insert into span_history (tree, conversation, view, removed_in, first, added_in, kind, tokens, depth)
  select no, no, 'dag', version, version, version - 1, 'omitted', 1, 0 from conversation, generate_series(1, 9) version;
insert into publication (tree, conversation, view, version, first, last, at, hash, record)
  select no, no, 'dag', version, 1, 2, 1, sha256('x'), sha256('x') from conversation, generate_series(1, 9) version;
insert into summary (tree, id, conversation, public_id, first, last, depth, tokens, rendering, source_tokens, recipe,
                     tier, created_at, earliest_at, latest_at, source_hash, hash, text)
  select no, no::bigint << 32 | n, no, 'sum_' || n, n, n + 9, 0, 9, 'r', 90, 'r', 't', 1, 1, 1,
         sha256((no || ' ' || n)::bytea), sha256('x'), repeat('word ', 30) from conversation, generate_series(1, 10) n;
insert into summary_link (tree, parent, role, ordinal, first, last, child)
  select tree, id, 0, 0, first, last, case when id & 1 = 0 then id - 1 end from summary;
insert into erasure (tree, conversation, first, last, at, reason)
  select no, no, seq, seq, 1, 'r' from conversation, generate_series(1, 3) seq;
insert into erased_summary (tree, summary, at) select tree, id, 1 from summary where id & 7 = 0;
insert into job (tree, conversation, key, state, owner, fence, expires)
  select no, no, 'k', 'held', 'o', 1, 1 from conversation;
insert into state (tree, conversation, key, value, revision) select no, no, 'k', '1', 1 from conversation;
insert into search_segment (tree, id, conversation, kind, first, last, documents, format)
  select no, no::bigint << 32 | 1, no, 'messages', 1, 100, 100, 'f' from conversation;
insert into search_chunk (tree, segment, key, data) select tree, id, '\\x01', '\\x02' from search_segment;
insert into message_vector (tree, conversation, embedder, seq, vector)
  select no, no, 'e', seq, '\\x01' from conversation, generate_series(1, 10) seq;
set session_replication_role = origin;
analyze;
";

/// Returns the steps of a plan as text, with the node types, indices and conditions.
fn steps(plan: &str) -> Vec<String> {
    let mut steps = Vec::new();
    for line in plan.lines() {
        let step = line.trim().trim_start_matches("->").trim();
        let is_condition = step.contains(": ");
        match steps.last_mut() {
            Some(last) if is_condition => *last = format!("{last}; {step}"),
            _ => steps.push(step.to_owned()),
        }
    }
    steps
}

#[tokio::test]
async fn every_hot_statement_searches_one_family() {
    let Some(url) = server() else { return };
    let schemas = Schemas::new(&url);
    let (url, _store) = schemas.store().await;
    let mut db = stranger(&url).await;
    let sessions = std::env::var(SESSIONS).unwrap_or_else(|_| "1000".to_owned());
    sessions.parse::<u32>().unwrap();
    run(&mut db, &FILL.replace("SESSIONS", &sessions))
        .await
        .unwrap();
    let id = ConversationId(77);
    let mut all = String::new();
    for (what, statement) in hot_statements(Family::of(id), id).unwrap() {
        let sql = inlined(&statement, PostgresQueryBuilder);
        let explain = AssertSqlSafe(format!("explain (costs off) {sql}"));
        let rows = sqlx::query(explain).fetch_all(&mut db).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        for step in steps(&plan) {
            assert!(!step.starts_with("Seq Scan"), "{what}:\n{plan}\n{sql}");
            let searches = step.contains("Index Scan") || step.contains("Index Only Scan");
            if searches || step.starts_with("Bitmap Index Scan") {
                assert!(step.contains("Index Cond: "), "{what}:\n{plan}\n{sql}");
                let condition = step.split("Index Cond: ").nth(1).unwrap();
                assert!(
                    condition.contains("(tree = 77)") || condition.contains(".tree = "),
                    "{what}: {condition}\n{plan}\n{sql}"
                );
            }
        }
        all.push_str(&format!("{what}:\n{plan}\n"));
    }
    for index in [
        "message_pkey",
        "message_external",
        "summary_source",
        "span_pkey",
        "span_history_added",
        "summary_link_child",
        "search_chunk_pkey",
    ] {
        assert!(all.contains(index), "{index} is not in\n{all}");
    }
}

/// A statement that is planned once for all families must not take each for a small one.
#[tokio::test]
async fn a_large_family_among_small_ones_is_searched_by_the_whole_key() {
    let schemas = schemas!();
    let (url, _store) = schemas.store().await;
    let mut db = stranger(&url).await;
    let fill = "
        set session_replication_role = replica;
        insert into message (tree, id, conversation, seq, kind, role, at, tokens, running, hash, body)
          select no, no::bigint << 32 | seq, no, seq, 'message', 'user', 1, 1, seq, sha256('x'), repeat('word ', 20)::bytea
            from generate_series(1, 5000) no, generate_series(1, case no when 1 then 5000 else 4 end) seq;
        analyze;
        set plan_cache_mode = force_generic_plan;
        prepare look_up (bigint, bigint, bigint) as
          select running from message where tree = $1 and id in ($2, $3);";
    run(&mut db, fill).await.unwrap();
    let explain = "explain (costs off) execute look_up (1, 4294967303, 4294967400)";
    let rows = sqlx::query(explain)
        .persistent(false)
        .fetch_all(&mut db)
        .await
        .unwrap();
    let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let plan = plan.join("\n");
    assert!(
        plan.contains("Index Cond: ((tree = $1) AND (id = ANY"),
        "{plan}"
    );
}
