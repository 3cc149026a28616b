create table job (
  {columns}
  primary key (tree, conversation, key),
  foreign key (tree, conversation) references conversation (tree, no)
) /* by tree */;

create table state (
  {columns}
  primary key (tree, conversation, key),
  foreign key (tree, conversation) references conversation (tree, no)
) /* by tree */;

-- Conversations that changed, for background workers. It is not keyed by family, so that a worker finds the oldest
-- change of all families. Its rows can be made again from the conversations at any time.
create table work (
  no         integer primary key, -- the conversation
  tree       integer not null, -- root of its family
  changed_at bigint  not null, -- microseconds: the last change that was seen
  done_at    bigint  not null default 0, -- the change that was last worked on
  owner      text collate "C", -- the worker that looks at it
  expires    bigint  not null default 0 -- microseconds since 1970, by the store's clock: until then it is the owner's
);

-- What waits for a worker, the oldest change first.
create index work_due on work (changed_at) where changed_at > done_at;

create table schema_migrations (
  {columns}
  primary key (version)
);
