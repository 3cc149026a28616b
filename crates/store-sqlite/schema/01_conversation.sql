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
  fences       integer not null default 0, -- the last fence given to a job; never given again
  archived     integer not null default 0 check (archived in (0, 1)),
  title        text,
  created_at   integer not null, -- microseconds since 1970, UTC
  updated_at   integer not null, -- microseconds; kept by the store
  meta         text, -- JSON as it came
  views        blob    not null default (zeroblob(32)) check (length(views) = 32), -- hash over the names of its views, zeros when there are none
  record       blob    not null default (zeroblob(32)) check (length(record) = 32), -- hash over this row, without fences, views and erasures
  erasures     integer not null default 0, -- how many erasures took words out of what it sees
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
when new.head < old.head or new.fences < old.fences or new.erasures < old.erasures
  or new.no <> old.no or new.tree <> old.tree or new.key <> old.key or new.kind <> old.kind
  or new.parent is not old.parent or new.shared is not old.shared
  or new.spawned_at is not old.spawned_at or new.spawned_call is not old.spawned_call
begin
  select raise(abort, 'conversation: its head only grows, its key and origin are fixed');
end;

-- A family's session keys: one row for each root, with a hash over the numbers and keys of all that was opened in it. It
-- refers to no conversation, so that it stays when one is removed behind the store's back.
create table family (
  tree    integer primary key, -- number of the root
  members integer not null check (members >= 1), -- how many conversations were opened in it
  hash    blob    not null check (length(hash) = 32) -- chained over numbers and keys in the order of the numbers
) strict;

create trigger family_insert before insert on family
when exists (select 1 from family where tree = new.tree)
begin
  select raise(abort, 'family: exists already, it can not be replaced');
end;

create trigger family_update before update on family
when new.tree <> old.tree or new.members <= old.members
begin
  select raise(abort, 'family: it only grows');
end;

create trigger family_delete before delete on family
begin
  select raise(abort, 'family: can not be deleted');
end;
