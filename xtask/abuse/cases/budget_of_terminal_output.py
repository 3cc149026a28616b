"""Progress bars, tables, dumps and other output of terminals, counted by another library: a budget is kept."""
import random
import uuid

from memory import Memory
from tokens import of_request
from transcripts import answer, assistant, call, user

def bar(chance):
    full = chance.randint(5, 50)
    return "█" * full + "░" * (50 - full) + f" {2 * full}%\n"


def dump(chance):
    data = chance.randbytes(16)
    return f"{chance.randrange(1 << 16):08x}  {data.hex(' ')}  |{''.join(chance.choices('abcXYZ./', k=16))}|\n"


# One line or piece of each kind.
KINDS = {
    "ANSI colours": lambda chance: f"\x1b[3{chance.randrange(8)};1m{chance.choice(('PASS', 'FAIL', 'warn'))}\x1b[0m "
                                   f"src/{chance.choice('abcdef')}.ts ({chance.randrange(999)} ms)\n",
    "bars": bar,
    "comma-separated": lambda chance: ",".join(f"{chance.uniform(-1e5, 1e5):.6f}" for _ in range(8)) + "\n",
    "difference": lambda chance: chance.choice("+- ") + "    " * chance.randrange(5)
                                 + chance.choice(("return x", "}", "if (a && b) {", "let y = f(x)?;")) + "\n",
    "dump": dump,
    "icons": lambda chance: chance.choice(("\ue0b0 main ", "\uf115 src ", "\ue0a0 ", "✔ ")),
    "spinner": lambda chance: chance.choice("⠋⠙⠹⠸⠼⠴⠦⠧") + f" building {chance.randrange(100)}%\r",
    "table": lambda chance: f"│ {chance.choice(('ok', 'bad'))} │ {chance.random()} │\n├{'─' * 30}┤\n",
    "escapes": lambda chance: f"\\u{chance.randint(0x4E00, 0x9FFF):04x}",
    "identifiers": lambda chance: str(uuid.UUID(bytes=chance.randbytes(16))) + "\n",
    "XML": lambda chance: f'<w:r w:rsidR="00{chance.randrange(1 << 24):06X}"><w:t xml:space="preserve">of </w:t></w:r>',
}

for kind, piece in KINDS.items():
    chance = random.Random(kind)
    lines = []
    for number in range(25):
        id, output = f"c{number}", "".join(piece(chance) for _ in range(40))
        lines += [user(f"run {number}"), assistant(None, tool_calls=[call(id, "bash", "{}")]), answer(id, output)]
    memory = Memory()
    session = memory.add(lines)
    for budget in (3000, 9000):
        tokens = of_request(memory.request(session, "openai", budget))
        assert tokens <= 1.01 * budget, f"{kind}: {tokens} tokens in a budget of {budget}"
