"""docs/lint-precision.md: how many findings in code of others are right, from
tests/gallery/lint/precision.tsv.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

JUDGED = Path(__file__).parents[2] / "tests" / "gallery" / "lint" / "precision.tsv"
WORDS = ("right", "debatable", "wrong")


class Round(NamedTuple):
    """Repositories read with the rules of one day, and each finding: repository, file, line, rule,
    judged, reason.
    """

    name: str
    note: str
    read: list[list[str]]
    found: list[list[str]]


def rounds() -> list[Round]:
    """Return the rounds, the first one first."""
    made: list[Round] = []
    for line in JUDGED.read_text(encoding="utf-8").splitlines():
        match line.split("\t"):
            case ["round", name, note]:
                made.append(Round(name, note, [], []))
            case ["read", *cells]:
                made[-1].read.append(cells)
            case ["found", *cells]:
                made[-1].found.append(cells)
    return made


def share(judged: Counter[str]) -> str:
    """Return the share of right ones among those that are right or wrong."""
    decided = judged["right"] + judged["wrong"]
    return f"{100 * judged['right'] / decided:.0f} %" if decided else "none"


def by_rule(found: list[list[str]]) -> dict[str, Counter[str]]:
    """Return how often each rule was right, the rule with most findings first."""
    made: dict[str, Counter[str]] = {}
    for row in found:
        made.setdefault(row[3], Counter())[row[4]] += 1
    return dict(sorted(made.items(), key=lambda each: (-each[1].total(), each[0])))


def pages() -> list[tuple[str, str]]:
    made = rounds()
    latest = made[-1]
    total = Counter(row[4] for row in latest.found)
    lines = sum(int(row[2]) for row in latest.read)
    told = ", ".join(f"{total[word]} {word}" for word in WORDS)
    text = [
        "# How right lint's findings are",
        "",
        (
            f"In {lines:,} lines of {len(latest.read)} public repositories that had not been read"
            f" before, `trainprobe lint` had {len(latest.found)} findings: {told}."
        ),
        f"Of those that are right or wrong, **{share(total)}** are right.",
        "",
        (
            "The repositories and commits were written down before lint ran. They were chosen by"
            " name: training code of many fields, without a look at what lint might find. Each"
            " finding was judged once by reading the code. Rules were mended only after a round, so"
            " its figures are those from before."
        ),
        (
            "They were judged by those who work on the rules, who saw the rule's claim, and by"
            " nobody else. Copies of one script in several repositories count each time."
        ),
        "",
        "| round | repositories | lines | findings | right | debatable | wrong | right of decided |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in made:
        judged = Counter(row[4] for row in each.found)
        cells = " | ".join(str(judged[word]) for word in WORDS)
        size = sum(int(row[2]) for row in each.read)
        text.append(
            f"| {each.name} | {len(each.read)} | {size:,} | {len(each.found)} | {cells}"
            f" | {share(judged)} |"
        )
    text += ["", *[f"- {each.name}: {each.note}" for each in made]]
    for each in reversed(made):
        text += ["", f"## Round {each.name}", ""]
        text += ["| rule | right | debatable | wrong | right of decided |", "|---|---|---|---|---|"]
        for rule, judged in by_rule(each.found).items():
            cells = " | ".join(str(judged[word]) for word in WORDS)
            text.append(f"| `{rule}` | {cells} | {share(judged)} |")
        text += ["", "| where | rule | judged | why |", "|---|---|---|---|"]
        text += [
            f"| {repository} {file}:{line} | `{rule}` | {word} | {why} |"
            for repository, file, line, rule, word, why in each.found
        ]
        text += ["", "| what was read | commit | lines |", "|---|---|---|"]
        text += [f"| {name} | `{commit}` | {int(number):,} |" for name, commit, number in each.read]
    return [("lint-precision.md", "\n".join(text) + "\n")]
