drop trigger message_update;

drop trigger facts_update;

drop trigger conversation_update;

alter table conversation add column erasures integer not null default 0;

-- Where a conversation comes from is fixed; its head only grows.
create trigger conversation_update before update on conversation
when new.head < old.head or new.fences < old.fences or new.erasures < old.erasures
  or new.no <> old.no or new.tree <> old.tree or new.key <> old.key or new.kind <> old.kind
  or new.parent is not old.parent or new.shared is not old.shared
  or new.spawned_at is not old.spawned_at or new.spawned_call is not old.spawned_call
begin
  select raise(abort, 'conversation: its head only grows, its key and origin are fixed');
end;

alter table facts add column revision integer not null default 0;

-- The one change allowed: an erasure takes out what only erased entries said.
create trigger facts_update before update on facts
when new.conversation <> old.conversation or new.revision <> old.revision + 1
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
    or (old.codec & 255) = 2 and old.body is not null and new.body is not null
    and new.payload is old.payload and new.name is old.name
    and exists (select 1 from erasure where conversation = old.conversation)
  )
)
begin
  select raise(abort, 'message: append-only, it can not be updated');
end;

-- Erasures whose words may still be in the files: they were cut short before the database was written anew. The
-- next writer does it.
create table wipe (
  no integer primary key,
  at integer not null -- microseconds: when the erasure was
) strict;

alter table publication add column record blob check ( length ( record ) = 32 );
