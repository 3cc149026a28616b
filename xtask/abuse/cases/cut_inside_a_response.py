"""The lines of one response have results between them, and a compaction may end at each: no call loses its result."""
from memory import Memory, STRATEGIES
from transcripts import base64_text, claude, result, thinking, use

LINES, last = [], None
for round in range(12):
    response = {"mid": f"m{round}"}
    LINES += [
        claude("user", f"u{round}", last, f"Round {round}: do both, " + "x y z " * 40),
        claude("assistant", f"a{round}", f"u{round}", [thinking("plan " * 50, base64_text(136, round))], **response),
        claude("assistant", f"b{round}", f"a{round}", [use(f"toolu_{round}a", command=f"cat {round}")], **response),
        claude("user", f"r{round}a", f"b{round}", [result(f"toolu_{round}a", "contents " * 120)]),
        claude("assistant", f"c{round}", f"b{round}", [use(f"toolu_{round}b", command=f"make {round}")], **response),
        claude("user", f"r{round}b", f"c{round}", [result(f"toolu_{round}b", "made " * 150)]),
    ]
    last = f"r{round}b"

imported, memory = Memory(), Memory()
session = imported.add(LINES)
for strategy in STRATEGIES:
    # A round has six lines.
    for tail in range(1, 7):
        memory.copy_of(imported)
        memory.run("compact", session, "--strategy", strategy, "--fresh-tail", str(tail))
        memory.assert_valid(session, 1500, "--strategy", strategy)
