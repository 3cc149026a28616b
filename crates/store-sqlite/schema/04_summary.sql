-- A node of the summary graph: it stands for a contiguous range. Redoing one makes a new node.
create table summary (
  id            integer primary key, -- conversation << 32 | ordinal, so that the nodes of a conversation are one stretch
  conversation  integer not null references conversation (no),
  public_id     text    not null, -- sum_ and 16 hex digits of its hash
  first         integer not null, -- first seq covered, inclusive
  last          integer not null, -- last seq covered, inclusive
  depth         integer not null check (depth >= 0), -- 1 + deepest child, a leaf has 0
  tokens        integer not null, -- of its text, by the conversation's estimator
  source_tokens integer not null, -- of its children
  provisional   integer not null default 0 check (provisional in (0, 1)), -- written without a model
  recipe        text    not null, -- what made it: strategy, prompt and model class; with source_hash the key that is paid once
  tier          text    not null, -- step of the ladder that gave the text
  model         text,
  created_at    integer not null, -- microseconds
  earliest_at   integer not null, -- smallest time of the covered messages, microseconds
  latest_at     integer not null, -- greatest time of the covered messages, microseconds
  source_hash   blob    not null check (length(source_hash) = 32), -- over the children's hashes
  hash          blob    not null check (length(hash) = 32), -- over source_hash, range, depth, recipe and text
  record        blob    not null default (zeroblob(32)) check (length(record) = 32), -- hash over hash, provisional, tier, model, tokens, times and meta
  meta          text, -- JSON as it came
  text          text    not null,
  messages      text, -- JSON: rendered messages, where a strategy keeps those instead of text
  unique (conversation, public_id),
  check ((id >> 32) = conversation),
  check (first >= 1 and last >= first)
) strict;

-- The same source by the same recipe is never paid for twice.
create index summary_source on summary (conversation, source_hash, recipe);

create trigger summary_insert before insert on summary
when exists (select 1 from summary where id = new.id or (conversation = new.conversation and public_id = new.public_id))
begin
  select raise(abort, 'summary: append-only, it can not be replaced');
end;

create trigger summary_update before update on summary
begin
  select raise(abort, 'summary: append-only, it can not be updated');
end;

create trigger summary_delete before delete on summary
begin
  select raise(abort, 'summary: append-only, it can not be deleted');
end;

-- What a summary was made of: runs that tile its range, messages and summaries mixed.
create table summary_child (
  parent   integer not null references summary (id), -- the summary made
  ordinal     integer not null, -- 0, 1, 2, …
  first       integer not null, -- inclusive
  last        integer not null, -- inclusive
  child integer references summary (id), -- the summary that went in; null for a run of messages
  primary key (parent, ordinal),
  check (first >= 1 and last >= first),
  check (child is null or child <> parent)
) strict, without rowid;

-- Up the graph: which summaries contain this one.
create index summary_child_child on summary_child (child) where child is not null;

create trigger summary_child_insert before insert on summary_child
when exists (select 1 from summary_child where parent = new.parent and ordinal = new.ordinal)
begin
  select raise(abort, 'summary_child: append-only, it can not be replaced');
end;

create trigger summary_child_update before update on summary_child
begin
  select raise(abort, 'summary_child: append-only, it can not be updated');
end;

create trigger summary_child_delete before delete on summary_child
begin
  select raise(abort, 'summary_child: append-only, it can not be deleted');
end;
