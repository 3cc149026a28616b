-- Ends a statement that the rules of a table forbid. Its argument is the text of the error.
create function refuse() returns trigger language plpgsql as $$
begin
  raise exception '%', tg_argv[0] using errcode = 'integrity_constraint_violation';
end
$$;

create table conversation (
  {columns}
  primary key (tree, no),
  foreign key (tree, parent) references conversation (tree, no),
  check ((kind = 'root') = (tree = no))
) /* by tree */;

-- A conversation by its number alone.
create index conversation_no on conversation (no);

-- What changed last.
create index conversation_updated on conversation (updated_at);

create trigger conversation_delete before delete on conversation
for each row execute function refuse('conversation: can not be deleted');

create trigger conversation_truncate before truncate on conversation
for each statement execute function refuse('conversation: can not be deleted');

-- Where a conversation comes from is fixed; its head only grows.
create trigger conversation_update before update on conversation
for each row when (
  new.head < old.head or new.fences < old.fences or new.erasures < old.erasures
  or new.no <> old.no or new.tree <> old.tree or new.key <> old.key or new.kind <> old.kind
  or new.parent is distinct from old.parent or new.shared is distinct from old.shared
  or new.spawned_at is distinct from old.spawned_at or new.spawned_call is distinct from old.spawned_call
)
execute function refuse('conversation: its head only grows, its key and origin are fixed');

-- Which conversation a session key opens, and the family of each conversation. It is not keyed by family, so that keys
-- and numbers are unique over all families.
create table directory (
  key  text collate "C" primary key, -- the session key that callers use
  no   integer not null unique, -- the conversation that it opens
  tree integer not null -- root of its family
);

create trigger directory_update before update on directory
for each row execute function refuse('directory: append-only, it can not be updated');

create trigger directory_delete before delete on directory
for each row execute function refuse('directory: append-only, it can not be deleted');

create trigger directory_truncate before truncate on directory
for each statement execute function refuse('directory: append-only, it can not be deleted');

create table family (
  {columns}
  primary key (tree)
) /* by tree */;

create trigger family_update before update on family
for each row when (new.tree <> old.tree or new.members <= old.members)
execute function refuse('family: it only grows');

create trigger family_delete before delete on family
for each row execute function refuse('family: can not be deleted');

create trigger family_truncate before truncate on family
for each statement execute function refuse('family: can not be deleted');
