-- A conversation: one append-only log with everything that hangs on it. Numbers go up from 1 and are never reused.
create table conversation (
  no           integer primary key,
  tree         integer not null references conversation (no) deferrable initially deferred, -- root of its family; a root names itself
  key          text    not null unique, -- the session key that callers use
  kind         text    not null check (kind in ('root', 'fork', 'spawn')),
  parent       integer references conversation (no), -- null for a root
  shared       integer, -- fork: last seq that is read from the parent
  spawned_at   integer, -- spawn: seq of the call in the parent's log, 0 when it is not known
  spawned_call text, -- spawn: id of that call
  head         integer not null default 0, -- last visible seq, 0 when the log is empty; raised by message_advance
  tokens       integer not null default 0, -- running total of the visible log at head
  chain        blob    not null default (zeroblob(32)) check (length(chain) = 32), -- hash chain of its own log, zeros when empty
  estimator    text    not null, -- id and version of what counted the tokens; one per conversation
  indexed_to   integer not null default 0, -- the search index holds its own log up to here
  fences       integer not null default 0, -- the last fence given to a job; never given again
  archived     integer not null default 0 check (archived in (0, 1)),
  title        text,
  created_at   integer not null, -- microseconds since 1970, UTC
  updated_at   integer not null, -- microseconds; kept by the store
  meta         text, -- JSON as it came
  check ((kind = 'root') = (parent is null)),
  check ((kind = 'fork') = (shared is not null)),
  check ((kind = 'spawn') = (spawned_at is not null)),
  check (kind = 'spawn' or spawned_call is null)
) strict;

-- A family: a conversation with its forks and what was spawned from it.
create index conversation_tree on conversation (tree);

-- Stops INSERT OR REPLACE, which would drop a row without asking the delete trigger.
create trigger conversation_insert before insert on conversation
when exists (select 1 from conversation where no = new.no or key = new.key)
begin
  select raise(abort, 'conversation: exists already, it can not be replaced');
end;

create trigger conversation_delete before delete on conversation
begin
  select raise(abort, 'conversation: can not be deleted');
end;

-- Where a conversation comes from is fixed; its head only grows.
create trigger conversation_update before update on conversation
when new.head < old.head or new.fences < old.fences
  or new.no <> old.no or new.tree <> old.tree or new.key <> old.key or new.kind <> old.kind
  or new.parent is not old.parent or new.shared is not old.shared
  or new.spawned_at is not old.spawned_at or new.spawned_call is not old.spawned_call
begin
  select raise(abort, 'conversation: its head only grows, its key and origin are fixed');
end;

-- The stretches of logs that a conversation reads, in order and without a gap. Set when it is opened.
create table segment (
  conversation integer not null references conversation (no),
  first        integer not null, -- first seq, inclusive
  last         integer, -- last seq, inclusive; null while open: the conversation's own log
  source       integer not null references conversation (no), -- whose log is read
  primary key (conversation, first),
  check (first >= 1 and (last is null or last >= first)),
  check ((last is null) = (source = conversation))
) strict, without rowid;

create trigger segment_insert before insert on segment
when exists (select 1 from segment where conversation = new.conversation and first = new.first)
begin
  select raise(abort, 'segment: append-only, it can not be replaced');
end;

create trigger segment_update before update on segment
begin
  select raise(abort, 'segment: append-only, it can not be updated');
end;

create trigger segment_delete before delete on segment
begin
  select raise(abort, 'segment: append-only, it can not be deleted');
end;
