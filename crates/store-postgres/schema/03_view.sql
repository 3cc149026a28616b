create table view (
  {columns}
  primary key (tree, conversation, name),
  foreign key (tree, conversation) references conversation (tree, no)
) /* by tree */;

create trigger view_update before update on view
for each row when (new.version < old.version)
execute function refuse('view: its version only grows');

create table span (
  {columns}
  primary key (tree, conversation, view, first),
  foreign key (tree, conversation) references conversation (tree, no)
) /* by tree */;

alter table span alter column tree set (n_distinct = 100);

-- What a publish added and still lives.
create index span_added on span (tree, conversation, view, added_in);

create table span_history (
  {columns}
  primary key (tree, conversation, view, removed_in, first),
  foreign key (tree, conversation) references conversation (tree, no)
) /* by tree */;

alter table span_history alter column tree set (n_distinct = 100);

-- What a publish added and a later one replaced.
create index span_history_added on span_history (tree, conversation, view, added_in);

create trigger span_history_update before update on span_history
for each row execute function refuse('span_history: append-only, it can not be updated');

create trigger span_history_delete before delete on span_history
for each row execute function refuse('span_history: append-only, it can not be deleted');

create trigger span_history_truncate before truncate on span_history
for each statement execute function refuse('span_history: append-only, it can not be deleted');

create table publication (
  {columns}
  primary key (tree, conversation, view, version),
  foreign key (tree, conversation) references conversation (tree, no)
) /* by tree */;

alter table publication alter column tree set (n_distinct = 100);

create function publication_insert() returns trigger language plpgsql as $$
begin
  if new.version <> 1 + coalesce((select max(version) from publication
                                   where tree = new.tree and conversation = new.conversation and view = new.view), 0)
  then
    raise exception 'publication: version must be the last one + 1' using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end
$$;

create trigger publication_insert before insert on publication
for each row execute function publication_insert();

create trigger publication_update before update on publication
for each row execute function refuse('publication: append-only, it can not be updated');

create trigger publication_delete before delete on publication
for each row execute function refuse('publication: append-only, it can not be deleted');

create trigger publication_truncate before truncate on publication
for each statement execute function refuse('publication: append-only, it can not be deleted');
