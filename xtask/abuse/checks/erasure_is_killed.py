"""An erasure is killed at a system call: `verify` holds, other words are as before, and a second erasure leaves none."""
import re
import shutil
import subprocess

from erasure import ERASE, SECRETS, compacted_with_a_fork, remains
from memory import CHANCE, Memory, leave_out, rounds
from transcripts import SESSION

CALLS = ("pwrite64", "fdatasync", "fsync", "ftruncate", "unlink")

if not shutil.which("strace"):
    leave_out("it needs strace")
base = compacted_with_a_fork()
memory = Memory()


def traced(*options):
    memory.copy_of(base)
    subprocess.run(["strace", "-f", *options, *memory.command(*ERASE)], capture_output=True, check=False)


trace = memory.folder + "/trace"
traced("-o", trace, "-e", "trace=" + ",".join(CALLS))
before, after = base.text("export", SESSION), memory.text("export", SESSION)
called = re.findall(r"^\d+ +(\w+)\(", open(trace).read(), re.MULTILINE)
kills = [(call, number) for call in CALLS for number in range(1, called.count(call) + 1)]
assert len(kills) > 10, called
CHANCE.shuffle(kills)
for _, (call, number) in zip(rounds(), kills):
    at = f"killed at {call} {number}"
    traced("-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}")
    verified = memory.run("verify")
    assert verified.returncode == 0, (at, verified.stdout)
    left = memory.text("export", SESSION)
    assert left in (before, after), at
    if left == after and remains(memory.store, SECRETS):
        # The words are out of the log; `verify` says that their bytes are still in the file.
        assert "wipe" in verified.stdout + verified.stderr, (at, remains(memory.store, SECRETS))
    memory.text(*ERASE)
    assert memory.text("export", SESSION) == after, at
    assert not remains(memory.store, SECRETS), (at, remains(memory.store, SECRETS))
    memory.assert_verified()
