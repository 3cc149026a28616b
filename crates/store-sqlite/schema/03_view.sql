-- A view of a conversation: a partition of its log into spans. No row means version 0, one raw span from 1.
create table view (
  conversation integer not null references conversation (no),
  name         text    not null,
  version      integer not null default 0, -- raised by each publish
  saved        integer not null default 0, -- tokens of covered messages less those of the spans: it costs conversation.tokens - saved
  chain        blob    not null default (zeroblob(32)) check (length(chain) = 32), -- hash of the last publication, zeros before the first
  primary key (conversation, name)
) strict, without rowid;

create trigger view_update before update on view
when new.version < old.version
begin
  select raise(abort, 'view: its version only grows');
end;

-- The live spans. Only the first seq is kept: a span ends where the next begins, and the last one is raw and open.
create table span (
  conversation integer not null references conversation (no),
  view         text    not null,
  first        integer not null check (first >= 1), -- first seq, inclusive
  added_in     integer not null, -- version that added it
  kind         text    not null check (kind in ('raw', 'summary', 'trimmed', 'omitted')),
  summary      text, -- public id, for a summary
  policy       text, -- name and version of the trim policy, for a trimmed span
  tokens       integer not null, -- what it costs when rendered; 0 for a raw span, whose cost the running sums give
  depth        integer not null default 0, -- of the summary
  primary key (conversation, view, first),
  check ((kind = 'summary') = (summary is not null)),
  check ((kind = 'trimmed') = (policy is not null))
) strict, without rowid;

-- What a publish added and still lives.
create index span_added on span (conversation, view, added_in);

-- Spans that a publish replaced. With the live ones they give every version of a view.
create table span_history (
  conversation integer not null references conversation (no),
  view         text    not null,
  removed_in   integer not null, -- version that replaced it; older versions still show it
  first        integer not null,
  added_in     integer not null,
  kind         text    not null,
  summary      text,
  policy       text,
  tokens       integer not null,
  depth        integer not null,
  primary key (conversation, view, removed_in, first),
  check (added_in < removed_in)
) strict, without rowid;

-- What a publish added and a later one replaced.
create index span_history_added on span_history (conversation, view, added_in);

create trigger span_history_insert before insert on span_history
when exists (select 1 from span_history where conversation = new.conversation and view = new.view
                and removed_in = new.removed_in and first = new.first)
begin
  select raise(abort, 'span_history: append-only, it can not be replaced');
end;

create trigger span_history_update before update on span_history
begin
  select raise(abort, 'span_history: append-only, it can not be updated');
end;

create trigger span_history_delete before delete on span_history
begin
  select raise(abort, 'span_history: append-only, it can not be deleted');
end;

-- One row per publish: which stretch changed, chained over the rows that went and came.
create table publication (
  conversation integer not null references conversation (no),
  view         text    not null,
  version      integer not null check (version >= 1), -- 1, 2, 3, … per view
  first        integer not null, -- inclusive
  last         integer not null, -- inclusive
  at           integer not null, -- microseconds
  hash         blob    not null check (length(hash) = 32), -- over the hash before it, the range, the removed and the added spans
  record       blob    not null check (length(record) = 32), -- hash over hash and at
  primary key (conversation, view, version)
) strict, without rowid;

create trigger publication_insert before insert on publication
begin
  select raise(abort, 'publication: version must be the last one + 1')
   where new.version <> 1 + coalesce((select max(version) from publication
                                       where conversation = new.conversation and view = new.view), 0);
end;

create trigger publication_update before update on publication
begin
  select raise(abort, 'publication: append-only, it can not be updated');
end;

create trigger publication_delete before delete on publication
begin
  select raise(abort, 'publication: append-only, it can not be deleted');
end;
