create table message_vector (
  {columns}
  primary key (tree, conversation, embedder, seq),
  foreign key (tree, conversation) references conversation (tree, no)
) /* by tree */;
