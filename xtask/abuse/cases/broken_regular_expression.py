"""A pattern is no regular expression: the text that the model reads says so."""
from mcp_client import Client
from memory import Memory
from transcripts import assistant, user

LINES = [
    user("The valve is at 3 bar (see note [7)."),
    assistant("Noted."),
]

memory = Memory()
client = Client(memory, "--session", memory.add(LINES))
answer = client.read("memory_grep", pattern="valve (is|was", mode="regex")
assert "no regular expression" in answer, answer
client.close()
