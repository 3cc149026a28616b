"""A query has composed letters and the text decomposed ones, as macOS writes names of files, or the other way around:
it is found."""
from memory import Memory
from transcripts import assistant, user

LINES = [
    user("The plan is in résumé-Zoë.pdf at the café."),
    assistant("Gelesen: Übersicht.pdf"),
    user("コード ＡＢＣ１２３ と ガ と ガ"),
]

memory = Memory()
session = memory.add(LINES)
for words in ("caf\u00e9", "r\u00e9sum\u00e9-Zo\u00eb.pdf", "U\u0308bersicht.pdf", "\u30ac"):
    assert memory.hits(session, words), words
    assert memory.hits(session, words, "--mode", "words"), words
assert memory.json("recall", session, "caf\u00e9")["passages"]
