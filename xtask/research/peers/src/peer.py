"""The workload on lossless-hermes-py: `peer.py MESSAGES DATABASE SUMMARY RARE COMMON`.

MESSAGES holds one JSON object a line: role, content. SUMMARY is what the stub summarizer always answers. Prints one JSON
object; times are seconds. The engine's settings are those of the other side where it has them: the newest 20 messages
and at most 16,384 tokens stay, chunks of 20,000 tokens, at least 10 messages a leaf and 2 summaries a condensed one.
"""

import json
import sys
import time
from types import SimpleNamespace

from lossless_hermes.assembler import AssemblyConfig, ContextAssembler
from lossless_hermes.compaction import CompactionConfig, CompactionEngine
from lossless_hermes.db.config import CacheAwareCompactionConfig
from lossless_hermes.db.connection import LcmDatabase
from lossless_hermes.db.migration import run_lcm_migrations
from lossless_hermes.store.conversation import ConversationStore, CreateMessageInput, MessageSearchInput
from lossless_hermes.store.summary import SummaryStore
from lossless_hermes.tokens import estimate_tokens

TAIL = {"fresh_tail_count": 20, "fresh_tail_max_tokens": 16384}


class Stub:
    def __init__(self, text):
        self.text = text

    def summarize(self, text, aggressive=False, options=None):
        return self.text


def timed(work):
    start = time.perf_counter()
    done = work()
    return time.perf_counter() - start, done


def median(work, times):
    all_of_them = [timed(work) for _ in range(times)]
    return sorted(took for took, _ in all_of_them)[times // 2], all_of_them[0][1]


def main():
    messages, path, summary, rare, common = sys.argv[1:]
    with open(messages, encoding="utf-8") as lines:
        messages = [json.loads(line) for line in lines]
    db = LcmDatabase(SimpleNamespace(database_path=path))
    run_lcm_migrations(db)
    store, summaries = ConversationStore(db), SummaryStore(db)
    conversation = store.create_conversation("bench").conversation_id

    def ingest():
        for seq, message in enumerate(messages, 1):
            content = message["content"]
            store.create_message(
                CreateMessageInput(conversation, seq, message["role"], content, estimate_tokens(content))
            )

    took, _ = timed(ingest)
    found = {"ingest": took / len(messages)}
    cache = CacheAwareCompactionConfig(False, 300, 2, 4.0, 0.2, 3)
    policy = CompactionConfig(20000, 2400, 2000, 10, 2, 2, 8, cache_aware_compaction=cache, **TAIL)
    engine = CompactionEngine(policy, Stub(summary), store, summaries)
    took, result = timed(lambda: engine.compact(conversation, 10**9))
    found["passes"] = result.summaries_created
    found["pass"] = took / max(1, result.summaries_created)
    assembler = ContextAssembler(store, summaries)
    budget = AssemblyConfig(max_tokens=32000, reserve_tokens=0, **TAIL)
    found["assemble"], _ = median(lambda: assembler.assemble_context(conversation, budget), 11)

    def search(word):
        asked = MessageSearchInput(conversation, word, "full_text", None, None, 20, "newest")
        return len(store.search_messages(asked))

    for name, word in (("rare", rare), ("common", common)):
        found[name], found[name + "_hits"] = median(lambda word=word: search(word), 11)
    print(json.dumps(found))


main()
