"""docs/slots.md: where SLURM may call trainprobe from, which checks run there, and the rules of
a site, from the code itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainprobe.ready.slots import ADMIN, SLOTS, checks_in
from trainprobe.site import SITE_FILE, site_rows

INTRO = """# Slots and the rules of a site

A slot is a place from which `trainprobe ready` is called.
`step` is the user's own: `srun trainprobe ready`, or the first line of the batch script.
The others are the administrators': `--slot prolog` and so on. [sites.md](sites.md) says how to set them up.

"""
RULES = """## What holds in the administrators' slots

- No torch, no plugin, no typer; nothing is compiled or written beside the code.
- No device is opened, no process of a job is looked into, nothing of a job is changed.
- SLURM is not asked anything, unless `--drain` is given in the health check.
- `PATH` and `HOME` are not needed. Of root's environment only `SLURMD_NODENAME`, `SLURM_JOB_ID` and `SLURM_JOB_UID` are used.
- Every check runs in a child of its own. What does not answer is killed, and all is over within the seconds above.
- A child that the kernel does not let go is left behind and written down. While it lives nothing is started on that node, and that is said.
- The exit code is 10 only where a check failed that is a `blocker` and an administrator's to mend; else 0.
  What a user must change, and what only makes jobs slow, goes to stderr and takes no node away.
- What could not be measured takes no node away either, unless `--inconclusive fail` or the site says so.
- A drain of somebody else's is never touched, and nothing is ever undrained.

"""


def pages() -> Iterator[tuple[str, str]]:
    """Give the page under docs/ and its text."""
    yield "slots.md", INTRO + _slots() + RULES + _checks() + _site()


def _slots() -> str:
    rows = [
        "## The slots",
        "",
        (
            "| slot | called by | as | when | its environment | its stdout | another code than 0 |"
            " over in |"
        ),
        "|---|---|---|---|---|---|---|---|",
    ]
    rows += [
        f"| `{slot.name}` | {slot.setting} | {slot.runs_as} | {slot.when} | {slot.environment} |"
        f" {slot.stdout} | {slot.acts} | {slot.stop_s:g} s |"
        for slot in SLOTS.values()
    ]
    return (
        "\n".join(rows)
        + "\n\nThe environments are those that SLURM 22.05 gave on the test cluster.\n\n"
    )


def _checks() -> str:
    specs = {spec.id: spec for slot in ADMIN for spec in checks_in(slot)}
    rows = [
        "## Which checks run where",
        "",
        "In `step` all of them run. In the administrators' slots these:",
        "",
    ]
    rows += [
        f"| check | what | fails as | who mends it | {' | '.join(ADMIN)} |",
        f"|---|---|---|---|{'---|' * len(ADMIN)}",
    ]
    for spec in sorted(specs.values(), key=lambda spec: (spec.stage, spec.id)):
        marks = " | ".join("yes" if slot in spec.slots else "" for slot in ADMIN)
        rows.append(f"| `{spec.id}` | {spec.title} | {spec.severity} | {spec.who} | {marks} |")
    return "\n".join(rows) + "\n\n"


def _site() -> str:
    rows = [
        "## The rules of a site",
        "",
        f"`{SITE_FILE}` wins over `trainprobe.yaml` and the command line.",
        (
            "Its place cannot be changed. It counts only if it is root's and nobody else can write"
            " it or a folder above it; else it is ignored, and that is said."
        ),
        "A file that cannot be understood forbids `--deep` and `--drain`, and stops nobody.",
        "",
        "| key | default | what it does |",
        "|---|---|---|",
    ]
    rows += [f"| `{row.key}` | {_shown(row.default)} | {row.says} |" for row in site_rows()]
    return "\n".join(rows) + "\n\nAll of them: [examples/site.yaml](examples/site.yaml).\n"


def _shown(value: Any) -> str:
    if isinstance(value, Mapping) or value is None or value == "":
        return "none"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(f"`{item}`" for item in value) or "none"
    return f"`{value}`"
