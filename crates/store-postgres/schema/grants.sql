-- The least that the program's own role needs, where another role owns the tables. Run it as the owner, once after the
-- migrations, in the schema of the tables:
--
--   create role agent_memory_app login;
--   set search_path = agent_memory;
--   grant usage on schema agent_memory to agent_memory_app;
--
-- Migrations stay with the owner: the program's role reads which ones ran, and can not change a table. The triggers keep
-- to what is append-only for the owner too. Of a partitioned table the role gets no right on the partitions: it reaches
-- them through the table, and so through its triggers.

grant select on schema_migrations to agent_memory_app;

grant select, insert on
  conversation, directory, family, payload, facts, message, erasure, wipe,
  view, span, span_history, publication,
  summary, summary_link, erased_summary,
  job, state, work,
  search_segment, search_chunk, message_vector
to agent_memory_app;

-- What changes of a conversation: its head and its sums, its title and whether it is archived. Its key and its origin
-- are fixed.
grant update (
  head, tokens, chain, fences, archived, title, updated_at, meta, views, record, erasures
) on conversation to agent_memory_app;
grant update (members, hash) on family to agent_memory_app;
grant update (version, saved, chain) on view to agent_memory_app;

-- What a recorded erasure blanks, and what it packs anew.
grant update (name, codec, payload, meta, body) on message to agent_memory_app;
grant update (text, revision) on facts to agent_memory_app;
grant update (meta, text, ranks, messages) on summary to agent_memory_app;

-- Leases, small values and the queue of the background workers.
grant update (state, owner, fence, expires, tries, draft) on job to agent_memory_app;
grant update (value, revision) on state to agent_memory_app;
grant update (changed_at, done_at, owner, expires) on work to agent_memory_app;

-- What goes: spans that a publish replaced, work that is done, what can be made again, and what no message refers to.
grant delete on
  span, job, state, search_segment, search_chunk, message_vector, payload, wipe
to agent_memory_app;
