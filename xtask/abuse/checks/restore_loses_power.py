"""The power fails during a restore, and the disk has lost, reordered or torn the writes since the last sync: the database
is the old or the restored one, an acknowledged restore stays, and a second one leaves no word that was erased since."""
from disk import WAYS, put_disk_after, recorded
from erasure import ERASE, LINES, SECRETS, compacted_with_a_fork, remains
from memory import CHANCE, Memory, rounds
from transcripts import SESSION, claude

memory = Memory()
backup = memory.folder + "/backup"
RESTORE = ("restore", backup, "--replace")

base = compacted_with_a_fork()
base.text("backup", backup)
base.add([*LINES, claude("user", "later", f"u{len(LINES)}", "And later?")])
base.text(*ERASE)
before = base.text("export", SESSION)
operations = recorded(memory, base, RESTORE)
after = memory.text("export", SESSION)
assert "And later?" in before and "And later?" not in after
assert not remains(memory.store, SECRETS), remains(memory.store, SECRETS)
for _ in rounds():
    acknowledged = CHANCE.random() < 0.25
    count = len(operations) if acknowledged else CHANCE.randint(1, len(operations))
    way = CHANCE.choice(WAYS)
    at = f"{count} of {len(operations)} operations, {way} of the unsynced writes"
    put_disk_after(memory, base, operations[:count], way)
    verified = memory.run("verify")
    assert verified.returncode == 0, (at, verified.stdout)
    left = memory.run("export", SESSION).stdout
    assert left in ((after,) if acknowledged else (before, after)), at
    memory.text(*RESTORE)
    assert memory.text("export", SESSION) == after, at
    memory.assert_verified()
    assert not remains(memory.store, SECRETS), (at, remains(memory.store, SECRETS))
