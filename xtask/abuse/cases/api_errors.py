"""A client writes errors of the API as the assistant's messages: they are kept, and not shown as its words."""
from memory import Memory
from transcripts import claude, text

LINES = [
    claude("user", "u1", None, "Rename the module."),
    claude(
        "assistant", "e0", "u1", [text("API Error: 529 overloaded_error. Try again later.")], mid="syn0",
        isApiErrorMessage=True, error="server_error",
    ),
    claude(
        "assistant", "e1", "e0", [text("API Error: 529 overloaded_error. Try again later.")], mid="syn1",
        isApiErrorMessage=True, error="server_error",
    ),
    claude(
        "assistant", "e2", "e1", [text("API Error: 529 overloaded_error. Try again later.")], mid="syn2",
        isApiErrorMessage=True, error="server_error",
    ),
    claude(
        "assistant", "e3", "e2", [text("API Error: 529 overloaded_error. Try again later.")], mid="syn3",
        isApiErrorMessage=True, error="server_error",
    ),
    claude("user", "u2", "e3", "Please go on."),
    claude("assistant", "a1", "u2", [text("Renamed.")]),
]

memory = Memory()
session = memory.add(LINES)
assert "529 overloaded_error" not in memory.shown(session)
assert memory.text("export", session).count("529 overloaded_error") >= 4
