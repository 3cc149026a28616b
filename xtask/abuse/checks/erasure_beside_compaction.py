"""Words are erased while a model writes summaries of them, or after that is killed: none is sent or stored then."""
import time

from erasure import remains
from memory import CHANCE, Memory, rounds
from model_server import ModelServer
from transcripts import assistant, user, words

LINES = []
for number in range(1, 241):
    said = f"step {number} of the work {words(80, number)} SECRETWORD{number}zz"
    LINES.append(user(said) if number % 2 else assistant(said))

model = ModelServer(lambda: CHANCE.uniform(0.1, 0.5))
for round in rounds():
    memory = Memory()
    session = memory.add(LINES)
    command = ("compact", session, "--leaf-tokens", "2000", *model.options)
    if round % 3 == 2:
        memory.text("compact", session)
        memory.text("fork", session, "--at", "200", "--name", "fork")
        command = ("redo", session, *model.options)
    first = CHANCE.randint(1, 180)
    last = first + CHANCE.randint(0, 20)
    secrets = [f"SECRETWORD{number}zz" for number in range(first, last + 1)]
    model.calls.clear()
    compaction = memory.start(*command)
    time.sleep(CHANCE.uniform(0.1, 1.5))
    if round % 3 == 1:
        compaction.kill()
        compaction.wait()
    memory.text("erase", session, "--from", str(first), "--to", str(last), "--reason", "secrets")
    erased = time.monotonic()
    compaction.communicate()
    at = f"{' '.join(command[:1])}, messages {first} to {last}"
    sent = [words for asked, words in model.calls if asked > erased and set(words) & set(secrets)]
    assert not sent, f"{at}: {sent} were sent to the model after the erasure"
    assert not remains(memory.store, secrets), (at, remains(memory.store, secrets))
    memory.assert_verified()
    memory.text("compact", session, *model.options)
    assert not remains(memory.store, secrets), (at, "after a compaction", remains(memory.store, secrets))
