-- A long string of messages' bodies, stored once per content. It goes when no message refers to it any more.
create table payload (
  id    integer primary key,
  hash  blob    not null unique check (length(hash) = 32), -- SHA-256 of the string, as it stands in the JSON text
  codec integer not null, -- how data is packed: 0 = as it is, 1 = compressed
  data  blob    not null
) strict;

create trigger payload_insert before insert on payload
when exists (select 1 from payload where id = new.id or hash = new.hash)
begin
  select raise(abort, 'payload: append-only, it can not be replaced');
end;

create trigger payload_update before update on payload
begin
  select raise(abort, 'payload: append-only, it can not be updated');
end;

create trigger payload_delete before delete on payload
when exists (select 1 from message where payload = old.id)
begin
  select raise(abort, 'payload: it can not be deleted while a message refers to it');
end;

-- What the meta of a conversation's entries have in common (folder, version, …): what codec 2 compresses against.
-- Nothing is in it that stood in one entry alone.
create table facts (
  conversation integer primary key references conversation (no),
  text         text    not null,
  revision     integer not null default 0 -- raised by each erasure that takes something out of the text
) strict;

create trigger facts_insert before insert on facts
when exists (select 1 from facts where conversation = new.conversation)
begin
  select raise(abort, 'facts: append-only, they can not be replaced');
end;

-- The one change allowed: an erasure takes out what only erased entries said.
create trigger facts_update before update on facts
when new.conversation <> old.conversation or new.revision <> old.revision + 1
  or not exists (select 1 from erasure where conversation = old.conversation)
begin
  select raise(abort, 'facts: append-only, they can not be updated');
end;

create trigger facts_delete before delete on facts
begin
  select raise(abort, 'facts: append-only, they can not be deleted');
end;

-- One entry of a log. Never updated, never deleted; see the triggers.
create table message (
  id           integer primary key, -- conversation << 32 | seq, so that a log is one stretch of the table
  conversation integer not null references conversation (no), -- whose own log it is in
  seq          integer not null, -- 1, 2, 3, … without a gap; a fork's own log begins after what it shares
  kind         text    not null check (kind in ('message', 'note')), -- notes are kept and never sent to a model
  role         text    not null check (role in ('system', 'user', 'assistant', 'tool')),
  external_id  any, -- the source's own id, unique in a conversation: a text, or the 16 bytes of a UUID that was written in lower case
  response     text, -- entries of one model response carry the same id
  name         text, -- participant
  loop         text, -- id of the agent loop, where the source has one
  turn         integer, -- index of the turn in its loop
  at           integer not null, -- microseconds since 1970 as the source says; not monotonic
  clocked      integer not null default 0 check (clocked in (0, 1)), -- the source gave no time: at is the clock's, and not compared with that of an entry told again
  tokens       integer not null check (tokens >= 0), -- by the conversation's estimator
  running      integer not null check (running >= tokens), -- sum of tokens over the visible log up to here
  hash         blob    not null check (length(hash) = 32), -- SHA-256 over body and the fields beside it
  codec        integer not null default 0, -- how body is packed: 0 = JSON text; 1 = compressed, with meta; 2 = compressed with the facts, with meta; 2 + 256 * N: with their revision N
  payload      integer references payload (id), -- the longest string of the body, where that is stored once
  meta         text, -- JSON as it came: model, usage, stop reason; null when it is packed with the body
  body         blob, -- the parts as a JSON list; null once erased
  check (id = ((conversation << 32) | seq)),
  check ((loop is null) = (turn is null))
) strict;

-- Importing twice inserts nothing: duplicates are found here.
create unique index message_external on message (conversation, external_id) where external_id is not null;

-- Who refers to a payload.
create index message_payload on message (payload) where payload is not null;

-- Dense and append-only. Asking for the next seq also stops INSERT OR REPLACE and UPSERT on the id; the second
-- condition stops them on the external id.
create trigger message_insert before insert on message
begin
  select case
           when new.seq is not c.head + 1 then raise(abort, 'message: seq must be head + 1')
           when new.running is not c.tokens + new.tokens then raise(abort, 'message: running must be the sum before + tokens')
           when new.external_id is not null
                and exists (select 1 from message where conversation = new.conversation and external_id = new.external_id)
             then raise(abort, 'message: external id exists already, it can not be replaced')
         end
    from (select 1) left join conversation c on c.no = new.conversation;
end;

-- After, not before: a row that ON CONFLICT drops must not move the head.
create trigger message_advance after insert on message
begin
  update conversation set head = new.seq, tokens = new.running where no = new.conversation;
end;

create trigger message_delete before delete on message
begin
  select raise(abort, 'message: append-only, it can not be deleted');
end;

-- The changes allowed: a recorded erasure blanks what was said, and where it takes something out of the facts, what was
-- compressed against them is packed anew. Place, size and hash stay.
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

-- Stretches of a log whose words were erased on purpose, and why.
create table erasure (
  conversation integer not null references conversation (no),
  first        integer not null, -- inclusive
  last         integer not null, -- inclusive
  at           integer not null, -- microseconds
  reason       text    not null,
  primary key (conversation, first, last, at),
  check (first >= 1 and last >= first)
) strict, without rowid;

create trigger erasure_update before update on erasure
begin
  select raise(abort, 'erasure: append-only, it can not be updated');
end;

create trigger erasure_delete before delete on erasure
begin
  select raise(abort, 'erasure: append-only, it can not be deleted');
end;

-- Erasures whose words may still be in the files: they were cut short before the database was written anew. The next
-- writer does it.
create table wipe (
  no integer primary key,
  at integer not null -- microseconds: when the erasure was
) strict;
