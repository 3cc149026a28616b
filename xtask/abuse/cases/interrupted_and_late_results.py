"""Calls are interrupted, and results are late, doubled, without a call or missing: requests are valid, and no words are
lost."""
from memory import Memory, STRATEGIES
from transcripts import claude, result, text, use

LINES = [
    claude("user", "u1", None, "Run both."),
    claude("assistant", "a1", "u1", [use("toolu_01", command="one")], mid="m1"),
    claude("assistant", "a2", "a1", [use("toolu_02", command="two")], mid="m1"),
    claude("user", "r1", "a2", [result("toolu_01", "one done"), text("[Request interrupted by user for tool use]")]),
    claude("user", "u2", "r1", "Never mind, run three."),
    claude("assistant", "a3", "u2", [use("toolu_03", command="three")], mid="m2"),
    claude("user", "r2", "a3", [result("toolu_02", "two came late")]),
    claude("user", "r3", "r2", [result("toolu_03", "three done"), result("toolu_03", "three done again")]),
    claude("user", "r4", "r3", [result("toolu_99", "of no call")]),
    claude("assistant", "a4", "r4", [text("Finished.")]),
    claude("assistant", "a5", "a4", [use("toolu_04", command="four")], mid="m3"),
]

memory = Memory()
session = memory.add(LINES)
for strategy in STRATEGIES:
    memory.run("compact", session, "--strategy", strategy)
    for budget in (600, 1500, 32_000):
        memory.assert_valid(session, budget, "--strategy", strategy)
shown = memory.shown(session)
for words in ("one done", "two came late", "three done", "of no call", "interrupted"):
    assert words in shown, words
