"""docs/checks.md, from the catalogue of readiness checks."""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.checks import SLOTS, CheckSpec, catalogue

STAGES = {
    0: "Launch plan",
    1: "Host",
    2: "Limits and cgroups",
    3: "Storage and shared memory",
    4: "Python, libraries, and whether a hang could be diagnosed",
    5: "Driver",
    6: "One GPU",
    7: "Collectives in one node",
    8: "Network and collectives between nodes",
    9: "Data",
}
INTRO = """# Readiness checks

`trainprobe ready` makes these checks on every node, each check program in a process of its own that is killed at its deadline.
A check says ok, warn, fail, skip (it does not apply, with the reason) or unknown (it could not be measured, which is no pass).

What a failure means:

- **blocker**: the job must not start.
- **degraded**: it starts, and is slow or fragile.
- **warning**: worth a word; it never fails.
- **info**: only recorded.

A site sets another number in `thresholds` of its `site.yaml`, under the id of the check.
Checks with *all nodes* in the last column are also held against what the other nodes say.

"""
SLOT_INTRO = """## Where a check is made

A prolog, an epilog and a health check run as root, without PATH and HOME, beside the jobs of others.
What is made there asks the node alone: no device is opened, no process is touched, nothing is written into a shared folder.
`taskprolog` runs as the user in the task's own environment.
`sbatch` checks are made before submission, from the script and the site's configuration.

"""


def pages() -> Iterator[tuple[str, str]]:
    """Give the page's name under docs/ and its text."""
    yield (
        "checks.md",
        INTRO + "\n".join(_stage(stage) for stage in STAGES) + "\n" + SLOT_INTRO + _slots(),
    )


def _stage(stage: int) -> str:
    rows = [row for row in catalogue().values() if row.stage == stage]
    head = [
        (
            "| check | what | threshold | where it comes from | severity | who acts | budget | made"
            " by |"
        ),
        "|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join([f"## {stage}. {STAGES[stage]}", "", *head, *map(_row, rows), ""])


def _row(row: CheckSpec) -> str:
    by = f"`{row.program}`" if row.program else "comparison of nodes"
    by += ", all nodes" if row.shared and row.program else ""
    cells = (
        f"`{row.id}`",
        row.title,
        row.threshold,
        row.source,
        row.severity,
        row.who,
        row.budget,
        by,
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _slots() -> str:
    head = [f"| check | {' | '.join(SLOTS)} |", "|---" * (len(SLOTS) + 1) + "|"]
    rows = [row for row in catalogue().values() if set(row.slots) - {"step"}]
    lines = [
        f"| `{row.id}` | {' | '.join('yes' if slot in row.slots else '' for slot in SLOTS)} |"
        for row in rows
    ]
    return "\n".join([*head, *lines, "", "All others are made in the user's own step only.", ""])
