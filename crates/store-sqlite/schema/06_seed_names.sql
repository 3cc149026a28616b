-- Read-only views under the names that the older LCM engine documents, for queries written against it.

create view conversations as
select c.no as id, c.key as session_id, c.title,
       case when json_valid(c.meta) then c.meta ->> '$.channel' end as channel,
       c.archived, c.updated_at as last_active, c.created_at
  from conversation c;

-- Every log, one row per message; notes are left out. A fork's row shows its own log only: see segment. What is
-- stored compressed has the event_type packed and no content here: the library reads it.
create view messages as
select m.id, m.conversation as conversation_id, m.seq, m.role,
       case
         when m.codec <> 0 and m.body is not null then 'packed'
         when not json_valid(m.content) then null
         when exists (select 1 from json_each(m.content) p where p.value ->> '$.type' = 'tool_result') then 'tool_result'
         when exists (select 1 from json_each(m.content) p where p.value ->> '$.type' = 'tool_call') then 'tool_call'
         when exists (select 1 from json_each(m.content) p where p.value ->> '$.type' in ('image', 'file')) then 'multimodal'
         else 'text'
       end as event_type,
       m.content, m.tokens as token_count, m.at as created_at
  from (select *, case when codec = 0 then cast(body as text) end as content from message) m
 where m.kind = 'message';

-- The parts of messages. SQLite reads no JSON that is nested deeper than 1000: such a message has no rows here. What is
-- stored compressed has one row, of the part_type packed.
create view message_parts as
select m.id as message_id, p.key as ordinal,
       case p.value ->> '$.type' when 'tool_call' then 'tool' when 'tool_result' then 'tool' else p.value ->> '$.type' end as part_type,
       p.value ->> '$.text' as text_content,
       coalesce(p.value ->> '$.id', p.value ->> '$.call_id') as tool_call_id,
       p.value ->> '$.name' as tool_name,
       case p.value ->> '$.type' when 'tool_call' then p.value -> '$.arguments' end as tool_input,
       case p.value ->> '$.type' when 'tool_result' then p.value -> '$.content' end as tool_output,
       p.value as metadata
  from message m, json_each(case when m.codec = 0 and json_valid(cast(m.body as text)) then cast(m.body as text) end) p
 where m.kind = 'message'
union all
select m.id, 0, 'packed', null, null, null, null, null, null
  from message m
 where m.kind = 'message' and m.codec <> 0 and m.body is not null;

create view summaries as
select s.public_id as id, s.conversation as conversation_id,
       case s.depth when 0 then 'leaf' else 'condensed' end as kind,
       s.depth, s.text as content, s.tokens as token_count, s.earliest_at, s.latest_at,
       s.last - s.first + 1 as descendant_count,
       s.source_tokens as descendant_token_count,
       s.source_tokens as source_message_token_count,
       s.created_at
  from summary s;

-- What a view shows, one row per item in order: messages as they are, or a summary. view is null for a
-- conversation that was never compacted.
create view context_items as
with live as (
  select conversation, view, first, kind, summary,
         coalesce(lead(first) over (partition by conversation, view order by first) - 1, 4294967295) as last
    from span
  union all
  select c.no, null, 1, 'raw', null, 4294967295
    from conversation c
   where not exists (select 1 from view v where v.conversation = c.no)
)
select l.conversation as conversation_id, l.view, m.seq as ordinal, 'message' as item_type, m.id as message_id, null as summary_id
  from live l
  join segment g on g.conversation = l.conversation
  join message m on m.id between (g.source << 32) | max(l.first, g.first)
                         and (g.source << 32) | min(l.last, coalesce(g.last, 4294967295))
 where l.kind in ('raw', 'trimmed') and max(l.first, g.first) <= min(l.last, coalesce(g.last, 4294967295))
   and m.kind = 'message'
union all
select l.conversation, l.view, l.first, 'summary', null, l.summary
  from live l
 where l.kind = 'summary';

-- The messages that a summary was made of directly.
create view summary_messages as
select s.public_id as summary_id, m.id as message_id, m.seq as ordinal
  from summary_child k
  join summary s on s.id = k.container
  join segment g on g.conversation = s.conversation
  join message m on m.id between (g.source << 32) | max(k.first, g.first)
                         and (g.source << 32) | min(k.last, coalesce(g.last, 4294967295))
 where k.constituent is null and max(k.first, g.first) <= min(k.last, coalesce(g.last, 4294967295));

-- The older engine wrote the containing node as summary_id and what went into it as parent_summary_id, and read
-- it the other way round. container and constituent say which is which.
create view summary_parents as
select c.public_id as container, p.public_id as constituent,
       c.public_id as summary_id, p.public_id as parent_summary_id, k.ordinal
  from summary_child k
  join summary c on c.id = k.container
  join summary p on p.id = k.constituent;
