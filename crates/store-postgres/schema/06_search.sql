create table search_segment (
  {columns}
  primary key (tree, id),
  unique (tree, conversation, kind, first),
  foreign key (tree, conversation) references conversation (tree, no)
) /* by tree */;

create table search_chunk (
  {columns}
  primary key (tree, segment, key),
  foreign key (tree, segment) references search_segment (tree, id)
) /* by tree */;

alter table search_chunk alter column tree set (n_distinct = 100);

-- Its bytes are packed already.
alter table search_chunk alter column data set storage external;
