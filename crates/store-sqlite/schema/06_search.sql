-- A segment of the search index: a stretch of a conversation's own log, or of the summaries that it made; or the state of
-- the conversation after a stretch. It can be made again from them at any time.
create table search_segment (
  id           integer primary key, -- conversation << 32 | a number from conversation.fences; never given again
  conversation integer not null references conversation (no),
  kind         text    not null check (kind in ('messages', 'summaries', 'states')),
  first        integer not null check (first >= 1), -- first position; of summaries, the number of the first one, from 1
  last         integer not null, -- last position or number, inclusive
  documents    integer not null check (documents >= 0), -- messages, notes left out, or summaries; of a state, 0
  format       text    not null, -- how words are read, and the checksum of each chunk
  unique (conversation, kind, first),
  check (last >= first)
) strict;

-- A part of a segment.
create table search_chunk (
  segment integer not null references search_segment (id),
  key     blob    not null, -- the least key in it
  data    blob    not null,
  unique (segment, key)
) strict;
