"""A second file begins with the same line as the first: it is another session, and equal words said again are kept."""
from memory import Memory
from transcripts import assistant, user

LINES = [
    user("yes"),
    assistant("Next?"),
    user("yes"),
    assistant("Next?"),
    user("yes"),
]
TWIN = [
    user("yes"),
    assistant("Other chat."),
]

memory = Memory()
memory.add(LINES)
memory.add(TWIN, "twin.jsonl")
assert sorted(session["messages"] for session in memory.sessions()) == [2, 5]
