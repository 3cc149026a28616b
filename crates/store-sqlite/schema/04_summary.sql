-- A node of the summary graph: it stands for a contiguous range. Redoing one makes a new node.
create table summary (
  id            integer primary key, -- conversation << 32 | ordinal, so that the nodes of a conversation are one stretch
  conversation  integer not null references conversation (no),
  public_id     text    not null, -- sum_ and 16 hex digits of its hash
  first         integer not null, -- first seq covered, inclusive
  last          integer not null, -- last seq covered, inclusive
  depth         integer not null check (depth >= 0), -- 1 + deepest child, a leaf has 0
  tokens        integer not null, -- when rendered, by the conversation's estimator
  rendering     text    not null, -- name and version of the rendering that tokens was counted for
  source_tokens integer not null, -- of its sources
  provisional   integer not null default 0 check (provisional in (0, 1)), -- written without a model
  recipe        text    not null, -- what made it: strategy, prompt and model class; with source_hash the key that is paid once
  tier          text    not null, -- step of the ladder that gave the text
  model         text,
  created_at    integer not null, -- microseconds
  earliest_at   integer not null, -- smallest time of the sources' messages, microseconds
  latest_at     integer not null, -- greatest time of the sources' messages, microseconds
  source_hash   blob    not null check (length(source_hash) = 32), -- over the hashes of its sources
  hash          blob    not null check (length(hash) = 32), -- over source_hash, children, range, depth, recipe, text and ranks
  record        blob    not null default (zeroblob(32)) check (length(record) = 32), -- hash over hash, provisional, tier, model, tokens, rendering, times and meta
  meta          text, -- JSON as it came
  text          text    not null, -- the lines of the summary
  ranks         blob, -- a byte a line: how important it is among the lines; null when all are equal
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

create trigger summary_delete before delete on summary
begin
  select raise(abort, 'summary: append-only, it can not be deleted');
end;

-- What a summary unfolds to, and what it was made from where that differs: messages and summaries mixed.
create table summary_link (
  parent  integer not null references summary (id), -- the summary made
  role    integer not null check (role in (0, 1)), -- 0 = child: the children tile its range; 1 = source: what its writer saw, none when that is the children
  ordinal integer not null, -- 0, 1, 2, … in each role
  first   integer not null, -- inclusive
  last    integer not null, -- inclusive
  child   integer references summary (id), -- the child or source; null for a run of messages
  primary key (parent, role, ordinal),
  check (first >= 1 and last >= first),
  check (child is null or child <> parent)
) strict, without rowid;

-- Up the graph: which summaries contain this one or were made from it.
create index summary_link_child on summary_link (child) where child is not null;

create trigger summary_link_insert before insert on summary_link
when exists (select 1 from summary_link where parent = new.parent and role = new.role and ordinal = new.ordinal)
begin
  select raise(abort, 'summary_link: append-only, it can not be replaced');
end;

create trigger summary_link_update before update on summary_link
begin
  select raise(abort, 'summary_link: append-only, it can not be updated');
end;

create trigger summary_link_delete before delete on summary_link
begin
  select raise(abort, 'summary_link: append-only, it can not be deleted');
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
