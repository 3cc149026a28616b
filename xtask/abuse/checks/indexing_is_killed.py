"""A rebuild of the index is killed: `verify` holds, and searches answer as before."""
import json
import time

from memory import CHANCE, Memory, rounds
from transcripts import conversation

base, memory = Memory(), Memory()
SESSION = base.add(conversation(3000))
base.text("compact", SESSION)
WORDS = ("a", "the", "ab", "ing", "e")


def ask(each):
    return [sorted(json.dumps([hit.get("seq"), hit.get("summary_id")])
                   for hit in each.hits(SESSION, word, "--mode", "literal", "--limit", "100000")) for word in WORDS]


expected = ask(base)
memory.copy_of(base)
start = time.monotonic()
memory.text("index", SESSION, "--rebuild")
whole = time.monotonic() - start
for _ in rounds():
    memory.copy_of(base)
    for _ in range(CHANCE.choice((1, 1, 2))):
        rebuild = memory.start("index", SESSION, "--rebuild")
        time.sleep(CHANCE.uniform(0.01, whole))
        rebuild.kill()
        rebuild.communicate()
    memory.assert_verified()
    assert ask(memory) == expected
    memory.text("index", SESSION)
    memory.assert_verified()
    assert ask(memory) == expected
