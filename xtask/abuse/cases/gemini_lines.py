"""Lines are contents as Gemini's API writes them: the words of both sides are shown as they are."""
from memory import Memory

LINES = [
    {"role": "user", "parts": [{"text": "Which tram goes to the port?"}]},
    {"role": "model", "parts": [{"text": "Line 4 goes to the port."}]},
    {"role": "user", "parts": [{"text": "And at night?"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "night", "args": {"line": 4}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "night", "response": {"output": "N4 until 02:30"}}}]},
]

memory = Memory()
contents = memory.request(memory.add(LINES), "gemini")["contents"]
parts = [part.get("text") for content in contents for part in content["parts"]]
assert "Which tram goes to the port?" in parts, parts
assert "Line 4 goes to the port." in parts, parts
