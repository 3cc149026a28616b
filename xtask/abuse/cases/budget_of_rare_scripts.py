"""Texts that tokenizers compress badly, counted by another library: a budget is kept, within a fifth for random letters
of rare scripts."""
import random

from memory import Memory
from tokens import of_request
from transcripts import assistant, base64_text, user

def letters(first, last):
    """Random characters of a range."""
    return lambda chance: "".join(chr(chance.randint(first, last)) for _ in range(400))


def any_of(*pieces, count=150):
    return lambda chance: "".join(chance.choices(pieces, k=count))


def stacked(chance):
    """Letters under piles of accents."""
    pile = lambda: "".join(chr(chance.randint(0x300, 0x36F)) for _ in range(6))
    return "".join(chance.choice("abcdefgh") + pile() for _ in range(60))


# Kinds of text and the share of the budget that they may take.
KINDS = {
    "base64": (1.02, lambda chance: base64_text(1200, chance.random())),
    "hexadecimal": (1.02, lambda chance: chance.randbytes(600).hex()),
    "digits": (1.02, lambda chance: ",".join(str(chance.randrange(10**18)) for _ in range(60))),
    "emoji": (1.02, any_of("🏳️‍🌈", "🫠", "🇨🇱", "🧑🏿‍🚒", "👩‍💻")),
    "minified": (1.02, any_of("return!t&&e||n(r)[0]", "(function(t,e){", "},", ";var a=b?c:d;", "!0===x.y", count=60)),
    "white space": (1.02, any_of(" ", "  ", "                ", "\t", "\t\t\t", "\n", "\n\n\nx", count=300)),
    "hieroglyphs": (1.2, letters(0x13000, 0x1342E)),
    "ideographs": (1.2, letters(0x4E00, 0x9FFF)),
    "private use": (1.2, letters(0xE000, 0xF8FF)),
    "Thai": (1.2, letters(0xE01, 0xE2E)),
    "stacked accents": (1.2, stacked),
    "zero width": (1.2, any_of("a\u200b\u200c\u200d\ufeff", "b\u200b\u200c\u200d\ufeff", "c\u200d\u200b", count=100)),
}

for kind, (share, fill) in KINDS.items():
    chance = random.Random(kind)
    memory = Memory()
    session = memory.add([each(fill(chance)) for each in (user, assistant) * 15])
    for compacted in (False, True):
        if compacted:
            memory.text("compact", session)
        for budget in (1500, 6000):
            tokens = of_request(memory.request(session, "openai", budget))
            assert tokens <= share * budget, f"{kind}: {tokens} tokens in a budget of {budget}"
