"""The program's compaction on the sessions of compaction-conformance-kit, beside the newest characters; prints a table.

usage: drive.py PROGRAM
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from compaction_kit.benchmark import run_budget_benchmark
from compaction_kit.compacted import CompactedContext

PROGRAM = sys.argv[1]
PARTS = 5
MARK = "(later:"


def run(store, *arguments):
    """The program's answer; None where a budget is too small."""
    command = [PROGRAM, "--store", store, "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 6:
        return None
    if done.returncode:
        sys.exit(f"{command}: exit code {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def strings(value):
    """The texts of a part of a message."""
    if isinstance(value, dict):
        value = [value.get("text"), value.get("content")]
    if isinstance(value, list):
        return [text for one in value for text in strings(one)]
    return [value] if isinstance(value, str) else []


def context(store, session, limit):
    """The largest context whose text has at most this many characters; nothing is cut."""
    low, high, best = 1, limit, ""
    while low <= high:
        budget = (low + high) // 2
        answer = run(store, "context", session, "--budget", str(budget))
        messages = answer["messages"] if answer else []
        text = "\n".join(text for message in messages for text in strings(message["parts"]))
        if len(text) > limit:
            high = budget - 1
            continue
        low = budget + 1
        if len(text) >= len(best):
            best = text
    return best


class Base:
    """A compactor whose text fits after the first round, so that later rounds keep it."""

    def compact(self, turns, round_num=1, budget_chars=None):
        text = turns[0].text if round_num > 1 else self.text(turns, budget_chars)
        return CompactedContext(text=text, compactor_name=self.name, round_num=round_num)


class Ours(Base):
    name = "ours"
    known = {}

    def text(self, turns, limit):
        lines = [
            json.dumps({"role": turn.role, "content": turn.text, "session": "kit", "external_id": f"m{at}"})
            for at, turn in enumerate(turns)
        ]
        key = (limit, *lines)
        if key not in self.known:
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder, "kit.jsonl")
                store = str(pathlib.Path(folder, "memory.db"))
                for part in range(1, PARTS + 1):
                    file.write_text("\n".join(lines[: len(lines) * part // PARTS]) + "\n")
                    session = run(store, "compact", str(file), "--mode", "full")["session"]
                self.known[key] = context(store, session, limit)
        return self.known[key]


class Unmarked(Ours):
    name = "unmarked"

    def text(self, turns, limit):
        return "\n".join(line for line in super().text(turns, limit).split("\n") if MARK not in line)


class Tail(Base):
    name = "tail"

    def text(self, turns, limit):
        return "\n".join(f"[{turn.role}] {turn.text}" for turn in turns)[-limit:]


kinds = {kind.name: kind for kind in (Ours, Unmarked, Tail)}
entries = run_budget_benchmark(kinds)["entries"]
found = {(entry["budget_fraction"], entry["compactor"]): entry for entry in entries}
print("| size | text | survival | updates resolved | stale | stale, unmarked | distinct pairs | size used |")
print("|--:|---|--:|--:|--:|--:|--:|--:|")
for size in sorted({size for size, _ in found}):
    for name in ("ours", "tail"):
        entry = found[size, name]
        unmarked = found[size, "unmarked" if name == "ours" else name]["semantic"]["conflicts"]
        conflicts = entry["semantic"]["conflicts"]
        cells = [
            f"{size:.0%}",
            name,
            f"{entry['randomized']['overall_final_survival']:.1%}",
            f"{entry['semantic']['resolved_rate']:.1%}",
            f"{conflicts['stale']} of {conflicts['n']}",
            f"{unmarked['stale']} of {conflicts['n']}",
            f"{entry['semantic']['distinct_pair_rate']:.1%}",
            f"{entry['mean_final_output_ratio']:.1%}",
        ]
        print("| " + " | ".join(cells) + " |")
