"""One turn has 150 calls: it is compacted inside of the turn, and its request stays."""
import json

from memory import Memory, STRATEGIES
from providers import anthropic
from transcripts import chain, result, use

TURNS = [("user", "Make all tests green; the owner is Ines and nothing may be skipped.")]
for number in range(150):
    TURNS.append(("assistant", [use(f"toolu_{number}", command=f"cargo test t{number}")]))
    TURNS.append(("user", [result(f"toolu_{number}", f"test t{number} failed at line {3 * number}\n" * 60)]))

for strategy in STRATEGIES:
    memory = Memory()
    session = memory.add(chain(TURNS))
    report = memory.json("compact", session, "--strategy", strategy)
    assert report["after"]["tokens"] < report["before"]["tokens"] / 2, (strategy, report)
    # 2,000 tokens are less than the newest blocks.
    for budget in (8000,) if strategy == "blocks" else (2000, 8000):
        assert memory.context(session, budget, "--strategy", strategy)["tokens"] <= budget, (strategy, budget)
        request = memory.request(session, "anthropic", budget, "--strategy", strategy)
        assert not anthropic(request), (strategy, budget, anthropic(request))
        assert "Ines" in json.dumps(request), (strategy, budget)
