"""Signed thinking under small budgets is sent exactly or left out, because an API refuses thinking that was changed."""
from memory import Memory, STRATEGIES
from providers import anthropic
from transcripts import base64_text, chain, result, thinking, use, words

THOUGHTS = {base64_text(160, step): f"step {step}: {words(600, step)}" for step in range(30)}
TURNS = [("user", "Fix the failing test.")]
for step, (signature, thought) in enumerate(THOUGHTS.items()):
    TURNS.append(("assistant", [thinking(thought, signature), use(f"toolu_{step}", command=f"cargo test case{step}")]))
    TURNS.append(("user", [result(f"toolu_{step}", f"error in line {step}\n" * 200)]))

memory = Memory()
session = memory.add(chain(TURNS))
sent = 0
for strategy in STRATEGIES:
    memory.run("compact", session, "--strategy", strategy)
    for budget in (1500, 3000, 6000, 12_000, 24_000, 60_000):
        request = memory.request(session, "anthropic", budget, "--strategy", strategy)
        assert not anthropic(request), (strategy, budget, anthropic(request))
        for message in request["messages"]:
            for block in message["content"]:
                if block["type"] == "thinking":
                    sent += 1
                    assert THOUGHTS[block["signature"]] == block["thinking"], (strategy, budget)
assert sent > 0
