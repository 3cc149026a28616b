create table summary (
  {columns}
  primary key (tree, id),
  unique (tree, conversation, public_id),
  foreign key (tree, conversation) references conversation (tree, no)
) /* by tree */;

alter table summary alter column tree set (n_distinct = 100);

-- The same source by the same recipe is never paid for twice.
create index summary_source on summary (tree, conversation, source_hash, recipe);

-- The one change allowed: a recorded erasure blanks the words. What it covers, what it cost and its hashes stay.
create function summary_update() returns trigger language plpgsql as $$
begin
  if not (
    new.text = '[erased]' and new.ranks is null and new.messages is null and new.meta is null
    and new.tree = old.tree and new.id = old.id
    and new.conversation = old.conversation and new.public_id = old.public_id
    and new.first = old.first and new.last = old.last and new.depth = old.depth and new.tokens = old.tokens
    and new.rendering = old.rendering and new.source_tokens = old.source_tokens and new.provisional = old.provisional
    and new.recipe = old.recipe and new.tier = old.tier and new.model is not distinct from old.model
    and new.created_at = old.created_at and new.earliest_at = old.earliest_at and new.latest_at = old.latest_at
    and new.source_hash = old.source_hash and new.hash = old.hash and new.record = old.record
    and exists (select 1 from erased_summary where tree = old.tree and summary = old.id)
  ) then
    raise exception 'summary: append-only, it can not be updated' using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end
$$;

create trigger summary_update before update on summary
for each row execute function summary_update();

create trigger summary_delete before delete on summary
for each row execute function refuse('summary: append-only, it can not be deleted');

create trigger summary_truncate before truncate on summary
for each statement execute function refuse('summary: append-only, it can not be deleted');

create table summary_link (
  {columns}
  primary key (tree, parent, role, ordinal),
  foreign key (tree, parent) references summary (tree, id),
  foreign key (tree, child) references summary (tree, id)
) /* by tree */;

alter table summary_link alter column tree set (n_distinct = 100);

-- Up the graph: which summaries contain this one or were made from it.
create index summary_link_child on summary_link (tree, child) where child is not null;

create trigger summary_link_update before update on summary_link
for each row execute function refuse('summary_link: append-only, it can not be updated');

create trigger summary_link_delete before delete on summary_link
for each row execute function refuse('summary_link: append-only, it can not be deleted');

create trigger summary_link_truncate before truncate on summary_link
for each statement execute function refuse('summary_link: append-only, it can not be deleted');

create table erased_summary (
  {columns}
  primary key (tree, summary),
  foreign key (tree, summary) references summary (tree, id)
) /* by tree */;

create trigger erased_summary_update before update on erased_summary
for each row execute function refuse('erased_summary: append-only, it can not be updated');

create trigger erased_summary_delete before delete on erased_summary
for each row execute function refuse('erased_summary: append-only, it can not be deleted');

create trigger erased_summary_truncate before truncate on erased_summary
for each statement execute function refuse('erased_summary: append-only, it can not be deleted');
