"""Imports, compactions, rebuilds of the index and searches at once: each search finds what a scan of the lines finds."""
import threading

from mcp_client import Client
from memory import CHANCE, Memory, json_line, rounds
from transcripts import words

SPECIAL = ("straße", "Ελλάδα", "naïve", "日本語", "emoji🦀x", "under_score", "a.b/c", "100%")
TEXTS = [f"{words(10 + number % 30, number)} {SPECIAL[number % len(SPECIAL)]} unique{number}q" for number in range(6000)]

memory = Memory()
path = memory.write([])
wrong = []
written = 0
stop = threading.Event()


def append(count):
    global written
    with open(path, "ab") as file:
        for number in range(written, min(written + count, len(TEXTS))):
            role = "assistant" if number % 2 else "user"
            file.write(json_line({"role": role, "content": TEXTS[number]}))
    done = memory.run("import", "--session", "S", path)
    if done.returncode != 0:
        wrong.append(done.stderr[-300:])
    # Only now a search must find them.
    written = min(written + count, len(TEXTS))


def grow():
    while not stop.is_set():
        append(CHANCE.choice((1, 50, 300)))


def maintain():
    commands = [("compact", "S"), ("compact", "S", "--mode", "incremental"), ("index", "S"), ("index", "S", "--rebuild")]
    while not stop.is_set():
        done = memory.run(*CHANCE.choice(commands))
        # 10: another compaction or nothing to do.
        if done.returncode not in (0, 10):
            wrong.append(done.stderr[-300:])


append(200)
threads = [threading.Thread(target=grow), threading.Thread(target=maintain)]
for thread in threads:
    thread.start()
client = Client(memory, "--session", "S")
searches = 0
try:
    for searches in rounds():
        certain = written
        number = CHANCE.randrange(certain)
        word = CHANCE.choice((f"unique{number}q", f"unique{number}Q", CHANCE.choice(SPECIAL), TEXTS[number][:20].strip()))
        hits = memory.hits("S", word, "--mode", "literal", "--scope", "messages", "--limit", "100000")
        found = [hit["seq"] - 1 for hit in hits]
        possible = {number for number, text in enumerate(TEXTS) if word.lower() in text.lower()}
        assert len(found) == len(set(found)), (word, "a hit twice")
        assert set(found) <= possible, (word, set(found) - possible)
        assert {number for number in possible if number < certain} <= set(found), (word, "a message is missing")
        answer = client.read("memory_grep", pattern=f"unique{number}q", mode="literal")
        assert f"[{number + 1}]" in answer, answer
finally:
    stop.set()
    for thread in threads:
        thread.join()
client.close()
assert not wrong, wrong[:3]
memory.assert_verified()
assert [entry["parts"][0]["text"] for entry in memory.export("S")] == TEXTS[:written]
print(f"{searches} searches, {written} messages")
