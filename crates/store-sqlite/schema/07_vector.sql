-- The vector that an embedder made of a message of a conversation's own log. It can be made again from the message at any
-- time.
create table message_vector (
  conversation integer not null references conversation (no),
  embedder     text    not null, -- id of the embedder: its model and version
  seq          integer not null check (seq >= 1), -- position of the message
  vector       blob    not null, -- a scale as 32-bit float, little-endian, and a signed byte for each component; empty for none
  primary key (conversation, embedder, seq)
) strict, without rowid;
