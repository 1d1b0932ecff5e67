"""docs/ladder.md, from the probes' own header blocks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainprobe.ladder.probes import built_in_folder, find
from trainprobe.model.probes import ProbeSpec

NEEDS = {
    "imports": "a module to import",
    "torch": "torch in the job's Python",
    "gpu": "a GPU",
    "nccl": "a torch with NCCL",
    "gloo": "a torch with gloo",
    "ranks>=2": "two ranks or more",
    "script": "a script or command after `--`",
    "dataset": "your data, by `--dataset`",
    "model": "your model, by `--model`",
}
INTRO = """# The ladder

`trainprobe diagnose` climbs these rungs, lowest first.
Each rung is a program of its own that answers one question, runs in processes of its own, and has a deadline.
A rung that a failed lower one makes meaningless is skipped, and the report says so.
Every program also runs by hand, with nothing of trainprobe installed: `python probes/host.py`.
It then prints readable lines and ends with 0 (yes), 10 (no) or 11 (cannot say).

"""


def pages() -> Iterator[tuple[str, str]]:
    """Give file names under docs/ and their text."""
    yield "ladder.md", INTRO + table() + "\n" + "\n".join(_section(spec) for spec in find(()))


def table() -> str:
    """Return the rungs as a table."""
    rows = ["| rung | question | needs | deadline |", "|---|---|---|---|"]
    for spec in find(()):
        needs = ", ".join(NEEDS[need] for need in spec.needs) or "nothing"
        rows.append(
            f"| [`{spec.name}`](#{spec.name}) | {spec.question} | {needs} | {spec.timeout_s:g} s |"
        )
    return "\n".join(rows) + "\n"


def _section(spec: ProbeSpec) -> str:
    runs = "in one process on the host" if spec.scope == "host" else "as one process per rank"
    if "ranks" in spec.climbs:
        runs += ", on 1, 2, 4 … N ranks" if "script" in spec.needs else ", on one rank and on all"
    lines = [
        f"## {spec.name}",
        "",
        spec.question,
        "",
        f"- It runs {runs}, for at most {spec.timeout_s:g} s each time.",
    ]
    lines.append(
        f"- It needs {', '.join(NEEDS[need] for need in spec.needs)}."
        if spec.needs
        else "- It needs nothing."
    )
    if spec.after:
        lines.append(
            "- It means something only where"
            f" {' and '.join(f'[`{name}`](#{name})' for name in spec.after)} passed."
        )
    if spec.means:
        lines.append(f"- When it fails: {spec.means}")
    if spec.program:
        folder = Path(built_in_folder()).resolve()
        lines.append(
            "- Program:"
            f" [`probes/{Path(spec.program).name}`](../probes/{Path(spec.program).resolve().relative_to(folder)})"
        )
    return "\n".join(lines) + "\n"
