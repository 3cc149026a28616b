"""The newest message is a result of 2 MB: the budget is kept, and the request before it is still there."""
import json

from memory import Memory, STRATEGIES
from providers import anthropic
from transcripts import base64_text, chain, result, use

DATA = base64_text(1_000_000) + "NEEDLE-5150" + base64_text(1_000_000, seed=2)
LINES = chain([
    ("user", "Dump the certificate store; the customer is number 60119."),
    ("assistant", [use("toolu_01", command="dump")]),
    ("user", [result("toolu_01", DATA)]),
])

memory = Memory()
session = memory.add(LINES)
for strategy in STRATEGIES:
    memory.run("compact", session, "--strategy", strategy)
    for budget in (500, 2000, 8000):
        at = (strategy, budget)
        assert memory.context(session, budget, "--strategy", strategy)["tokens"] <= budget, at
        request = memory.request(session, "anthropic", budget, "--strategy", strategy)
        assert not anthropic(request), (at, anthropic(request))
        text = json.dumps(request)
        # A token of random base64 has never more than 8 characters.
        assert len(text) <= budget * 8, (at, len(text))
        assert "60119" in text, at
assert len(memory.hits(session, "NEEDLE-5150")) == 1
