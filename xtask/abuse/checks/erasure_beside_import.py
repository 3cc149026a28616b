"""An erasure while another process imports: the import's messages are all there, and can be read."""
import time

from erasure import ERASE, LINES, line
from memory import CHANCE, Memory, rounds
from transcripts import SESSION

LONG = [line(number) for number in range(1, 6061)]

for _ in rounds():
    memory = Memory()
    memory.add(LINES)
    growing = memory.start("import", memory.write(LONG, "long.jsonl"))
    time.sleep(CHANCE.uniform(0.02, 0.6))
    memory.text(*ERASE)
    _, errors = growing.communicate()
    assert growing.returncode == 0, errors
    memory.assert_verified()
    assert len(memory.export(SESSION)) == len(LONG)
