"""The power fails during an erasure, and the disk has lost, reordered or torn the writes since the last sync: the
database is as before or as after, an acknowledged erasure stays, and a second erasure leaves none of the words."""
from disk import WAYS, put_disk_after, recorded
from erasure import ERASE, SECRETS, compacted_with_a_fork, remains
from memory import CHANCE, Memory, rounds
from transcripts import SESSION

DELETE = ("delete", SESSION, "--reason", "secrets")

base = compacted_with_a_fork()
memory = Memory()
before = base.text("export", SESSION)
RECORDED = {}
for command in (ERASE, DELETE):
    operations = recorded(memory, base, command)
    RECORDED[command] = (operations, memory.run("export", SESSION).stdout)
for _ in rounds():
    command = CHANCE.choice(list(RECORDED))
    operations, after = RECORDED[command]
    acknowledged = CHANCE.random() < 0.25
    count = len(operations) if acknowledged else CHANCE.randint(1, len(operations))
    way = CHANCE.choice(WAYS)
    at = f"{command[0]}, {count} of {len(operations)} operations, {way} of the unsynced writes"
    raw = put_disk_after(memory, base, operations[:count], way).lower()
    if acknowledged:
        # Before any command mends it.
        assert not [secret for secret in SECRETS if secret.lower().encode() in raw], at
    verified = memory.run("verify")
    assert verified.returncode == 0, (at, verified.stdout)
    left = memory.run("export", SESSION).stdout
    assert left in ((after,) if acknowledged else (before, after)), at
    if acknowledged:
        assert not remains(memory.store, SECRETS), (at, remains(memory.store, SECRETS))
    memory.text(*command)
    memory.assert_verified()
    assert not remains(memory.store, SECRETS), (at, remains(memory.store, SECRETS))
