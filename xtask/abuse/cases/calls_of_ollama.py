"""Calls as Ollama writes them have no id, or an index in their function: they are calls."""
from memory import Memory
from providers import openai
from transcripts import answer, assistant, user

NO_ID = [
    user("Weather in Turku?"),
    assistant("", tool_calls=[{"function": {"name": "weather", "arguments": {"city": "Turku"}}}]),
    {"role": "tool", "tool_name": "weather", "content": "12 degrees"},
    assistant("12."),
]
INDEX = [
    user("Weather in Oulu?"),
    assistant(
        " ",
        tool_calls=[{"id": "call_p7", "function": {"index": 0, "name": "weather", "arguments": {"city": "Oulu"}}}],
    ),
    answer("call_p7", "7 degrees"),
]

for lines in (NO_ID, INDEX):
    memory = Memory()
    request = memory.request(memory.add(lines), "openai")
    assert not openai(request), openai(request)
    assert any(message.get("tool_calls") for message in request["messages"]), request
