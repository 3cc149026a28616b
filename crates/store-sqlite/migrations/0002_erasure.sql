drop trigger summary_update;

drop trigger message_update;

drop trigger facts_update;

-- The one change allowed: an erasure takes out what only erased entries said.
create trigger facts_update before update on facts
when new.conversation <> old.conversation
  or not exists (select 1 from erasure where conversation = old.conversation)
begin
  select raise(abort, 'facts: append-only, they can not be updated');
end;

-- The changes allowed: a recorded erasure blanks what was said, and where it takes something out of the facts, what
-- was compressed against them is packed anew. Place, size and hash stay.
create trigger message_update before update on message
when not (
  new.id = old.id and new.conversation = old.conversation and new.seq = old.seq
  and new.kind = old.kind and new.role = old.role and new.external_id is old.external_id
  and new.response is old.response and new.turn is old.turn and new.loop is old.loop
  and new.at = old.at and new.clocked = old.clocked and new.tokens = old.tokens and new.running = old.running
  and new.hash = old.hash
  and (
    new.body is null and new.payload is null and new.codec = old.codec
    and (new.meta is null or new.meta is old.meta)
    and (new.name is null or new.name is old.name)
    and exists (select 1 from erasure where conversation = old.conversation and old.seq between first and last)
    or old.codec = 2 and old.body is not null and new.body is not null
    and new.payload is old.payload and new.name is old.name
    and exists (select 1 from erasure where conversation = old.conversation)
  )
)
begin
  select raise(abort, 'message: append-only, it can not be updated');
end;

-- The one change allowed: a recorded erasure blanks the words. What it covers, what it cost and its hashes stay.
create trigger summary_update before update on summary
when not (
  new.text = '[erased]' and new.ranks is null and new.messages is null and new.meta is null
  and new.id = old.id and new.conversation = old.conversation and new.public_id = old.public_id
  and new.first = old.first and new.last = old.last and new.depth = old.depth and new.tokens = old.tokens
  and new.rendering = old.rendering and new.source_tokens = old.source_tokens and new.provisional = old.provisional
  and new.recipe = old.recipe and new.tier = old.tier and new.model is old.model
  and new.created_at = old.created_at and new.earliest_at = old.earliest_at and new.latest_at = old.latest_at
  and new.source_hash = old.source_hash and new.hash = old.hash and new.record = old.record
  and exists (select 1 from erased_summary where summary = old.id)
)
begin
  select raise(abort, 'summary: append-only, it can not be updated');
end;

-- Summaries whose words were erased, because they were made from erased ones.
create table erased_summary (
  summary integer primary key references summary (id),
  at      integer not null -- microseconds
) strict;

create trigger erased_summary_update before update on erased_summary
begin
  select raise(abort, 'erased_summary: append-only, it can not be updated');
end;

create trigger erased_summary_delete before delete on erased_summary
begin
  select raise(abort, 'erased_summary: append-only, it can not be deleted');
end;
