"""docs/lint-precision.md: how many findings in code of others are right, from
tests/gallery/lint/precision.tsv.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

JUDGED = Path(__file__).parents[2] / "tests" / "gallery" / "lint" / "precision.tsv"
WORDS = ("right", "debatable", "wrong")


def rows(first: str) -> list[list[str]]:
    """Return the rows of one kind: `read` repositories or `found` faults."""
    lines = JUDGED.read_text(encoding="utf-8").splitlines()
    return [cells[1:] for line in lines if (cells := line.split("\t"))[0] == first]


def share(judged: Counter[str]) -> str:
    """Return the share of right ones among those that are right or wrong."""
    decided = judged["right"] + judged["wrong"]
    return f"{100 * judged['right'] / decided:.0f} %" if decided else "none"


def pages() -> list[tuple[str, str]]:
    read, found = rows("read"), rows("found")
    total = Counter(row[4] for row in found)
    by_rule: dict[str, Counter[str]] = {}
    for row in found:
        by_rule.setdefault(row[3], Counter())[row[4]] += 1
    lines = sum(int(row[2]) for row in read)
    told = ", ".join(f"{total[word]} {word}" for word in WORDS)
    text = [
        "# How right lint's findings are",
        "",
        (
            f"In {lines:,} lines of {len(read)} public repositories that had not been read before,"
            f" `trainprobe lint` had {len(found)} findings: {told}."
        ),
        f"Of those that are right or wrong, **{share(total)}** are right.",
        "",
        (
            "The repositories and commits were written down before lint ran. Each finding was judged by"
            " reading the code. Rules were mended after that; these figures are those from before."
        ),
        "They were judged by those who work on the rules, and by nobody else.",
        (
            "A rule below 70 % is a hint since (`--hints`), or what made it wrong is mended. Six of the wrong"
            " ones of `rank-conditional-collective` come from one pattern that was added just before:"
            " [lint](lint.md#how-good-it-is)."
        ),
        "",
        "| rule | right | debatable | wrong | right of decided |",
        "|---|---|---|---|---|",
    ]
    for rule, judged in sorted(by_rule.items(), key=lambda each: (-each[1].total(), each[0])):
        cells = " | ".join(str(judged[word]) for word in WORDS)
        text.append(f"| `{rule}` | {cells} | {share(judged)} |")
    text += ["", "## The findings", "", "| where | rule | judged | why |", "|---|---|---|---|"]
    text += [
        f"| {repository} {file}:{line} | `{rule}` | {word} | {why} |"
        for repository, file, line, rule, word, why in found
    ]
    text += ["", "## What was read", "", "| repository | commit | lines |", "|---|---|---|"]
    text += [f"| {name} | `{commit}` | {int(number):,} |" for name, commit, number in read]
    return [("lint-precision.md", "\n".join(text) + "\n")]
