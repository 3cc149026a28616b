-- Work on a conversation that must not be done twice: an advisory lease, and what was prepared under it. The row
-- goes when the work is done.
create table job (
  conversation integer not null references conversation (no),
  key          text    not null, -- what the work is about
  state        text    not null check (state in ('held', 'ready', 'free')), -- free: it failed and may be tried again
  owner        text    not null, -- who holds it
  fence        integer not null, -- from conversation.fences; a holder with an older one has lost it
  expires      integer not null, -- microseconds since 1970, by the store's clock
  tries        integer not null default 0, -- how often it failed
  draft        text, -- JSON: the prepared work, kept until it is published
  primary key (conversation, key)
) strict;

-- Small values that belong to a conversation: pins, notes, settings.
create table state (
  conversation integer not null references conversation (no),
  key          text    not null,
  value        text    not null,
  revision     integer not null, -- raised by each write, compared before it
  primary key (conversation, key)
) strict;

-- Which migrations made this database.
create table schema_migrations (
  version  integer primary key,
  name     text not null,
  checksum text not null -- SHA-256 of the file, 64 hex digits
) strict;
