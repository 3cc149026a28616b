"""A prohibition in the first of 441 messages is still in contexts of some thousand tokens. A context of blocks shows
the newest alone, by design."""
from memory import Memory
from transcripts import assistant, user, words

LINES = [user("Before we begin: do NOT push to main, ever; open a pull request. Also never run the script purge_all.sh.")]
for step in range(220):
    LINES.append(assistant(f"Step {step}: {words(60, step)}"))
    LINES.append(user(f"Continue with part {step + 1}, {words(14, 1000 + step)}"))

memory = Memory()
session = memory.add(LINES)
for strategy in ("dag", "handoff"):
    memory.run("compact", session, "--strategy", strategy)
    for budget in (3000, 6000):
        shown = memory.shown(session, "anthropic", budget, "--strategy", strategy).lower()
        assert "not push to main" in shown, (strategy, budget)
        assert "purge_all.sh" in shown, (strategy, budget)
