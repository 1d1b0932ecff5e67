"""docs/lint-precision.md: how many findings in code of others are right, and how many faults of
public histories are found, from tests/gallery/lint/precision.tsv and history.tsv.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.gallery.lint.history import faults
from trainprobe.lint.engine import all_rules
from trainprobe.lint.model import SHOWN_FROM

JUDGED = Path(__file__).parents[2] / "tests" / "gallery" / "lint" / "precision.tsv"
WORDS = ("right", "debatable", "wrong")
LAST = 3
"""The rounds that decide what is shown by default."""


class Round(NamedTuple):
    """Repositories read with the rules of one day, and each finding: repository, file, line, rule,
    judged, reason.
    """

    name: str
    note: str
    read: list[list[str]]
    found: list[list[str]]
    gone: list[list[str]]
    """Of those, repository, file, line and rule of what is no finding by default any more."""

    @property
    def left(self) -> list[list[str]]:
        """What is found with the rules of now, too."""
        return [row for row in self.found if row[:4] not in self.gone]


def rounds() -> list[Round]:
    """Return the rounds, the first one first."""
    made: list[Round] = []
    for line in JUDGED.read_text(encoding="utf-8").splitlines():
        match line.split("\t"):
            case ["round", name, note]:
                made.append(Round(name, note, [], [], []))
            case ["read", *cells]:
                made[-1].read.append(cells)
            case ["found", *cells]:
                made[-1].found.append(cells)
            case ["gone", *cells]:
                made[-1].gone.append(cells)
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


def by_default(made: list[Round]) -> list[str]:
    """Return the lines about the rules that are on by default, and why."""
    found = by_rule([row for each in made[-LAST:] for row in each.left])
    shown = [rule.id for rule in all_rules() if rule.confidence >= SHOWN_FROM]
    hints = [rule.id for rule in all_rules() if rule.confidence < SHOWN_FROM]
    total = Counter(row[4] for row in made[-1].left)
    told = ", ".join(f"{total[word]} {word}" for word in WORDS)
    span = f"{made[-LAST].name} to {made[-1].name}"
    text = [
        "## What is on by default",
        "",
        (
            f"With the rules of now, round {made[-1].name} would have {total.total()} findings:"
            f" {told}; {share(total)} of the decided ones are right. They were changed after it was"
            " judged, so this is no measure of code that they have not seen."
        ),
        "",
        (
            "A rule is on by default if at least 75 % of its decided findings of the last two"
            " rounds are right, or of the last three where these are fewer than five. What its"
            " mends have made no finding does not count. A rule that found nothing in code of"
            " others in these rounds is judged by the programs with planted faults alone, but for"
            " `threads-per-rank`, whose only finding before them was wrong: it is a hint."
        ),
        (
            "`rank-conditional-collective` is split: a condition on the rank around the call is"
            " shown, ranks that leave a function early (`return`, `exit`) are a hint. In rounds"
            " three to five none of the latter was right, and seven were debatable: what ranks leave"
            " for is mostly meant for one process. To ask also that all ranks are seen to come to"
            " the condition hid both right ones of round five, and no wrong one. Since the last"
            " round two kinds are shown again, each for a call that stands there itself: a pass"
            " that some ranks leave out (`continue`, `break`), and a way out below a further"
            " condition that only some ranks come to. Of 95 repositories one has such a finding, a"
            " right one; no round has judged them yet."
        ),
        "",
        f"| on by default, rounds {span} | {' | '.join(WORDS)} | right of decided |",
        "|---|---|---|---|---|",
    ]
    for rule in shown:
        judged = found.get(rule, Counter())
        cells = " | ".join(str(judged[word]) for word in WORDS)
        text.append(f"| `{rule}` | {cells} | {share(judged)} |")
    finite = (
        "`data-conditional-collective` is a hint but where a loss that is not finite makes a rank"
        " leave out DDP's backward pass; no round has judged that yet."
    )
    return [*text, "", f"Hints: {', '.join(f'`{rule}`' for rule in hints)}. {finite}", ""]


def missed() -> list[str]:
    """Return the lines about the faults of public histories that were labelled last."""
    part = faults()[-1].part
    rows = [fault for fault in faults() if fault.part == part]
    once = sum(fault.once == "found" for fault in rows)
    today = sum(fault.today == "found" for fault in rows)
    known = [fault for fault in rows if fault.rules != ("none",)]
    text = [
        "## What is missed",
        "",
        (
            f"Of {len(rows)} faults that public commits mended, lint found **{once}** in the commit"
            f" before, by default and judged once: {100 * once / len(rows):.0f} %, or"
            f" {once} of the {len(known)} that a rule is about. They hang, crash or spoil a job of"
            " several ranks, and code shows it. Each was labelled before lint ran on it."
        ),
        (
            (
                f"Rules were mended in general for what was missed: {today} are found today, which"
                " is no measure of code that they have not seen."
                if today != once
                else "As many are found today: the rules are those that were judged."
            )
            + " None of those found is found after its fix; in one file lint then speaks of another"
            " fault near by, rightly: a count of stale epochs that only rank 0 keeps, and by which all"
            " stop. Earlier sets are in"
            " `tests/gallery/lint/history.tsv`."
        ),
        "",
        "| rule | faults | found once | found today |",
        "|---|---|---|---|",
    ]
    for rule in [*sorted({fault.rules[0] for fault in known}), "none"]:
        own = [fault for fault in rows if fault.rules[0] == rule]
        name = f"`{rule}`" if rule != "none" else "no rule is about it"
        found = [sum(getattr(each, when) == "found" for each in own) for when in ("once", "today")]
        text.append(f"| {name} | {len(own)} | {found[0]} | {found[1]} |")
    text += ["", "| where | fix | today | what |", "|---|---|---|---|"]
    text += [
        f"| {fault.repository} {fault.path}:{fault.first} | `{fault.fix}` | {fault.today}"
        f" | {fault.note} |"
        for fault in rows
    ]
    return [*text, ""]


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
        (
            f"Of those that are right or wrong, **{share(total)}** are right. With what is a hint"
            f" since, it would be {share(Counter(row[4] for row in latest.left))}."
        ),
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
    text += ["", *[f"- {each.name}: {each.note}" for each in made], ""]
    text += by_default(made)
    text += missed()[:-1]
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
