"""The truth about each case of logs, in answers.yaml, apart from the cases; and which part a case
belongs to.

The part is given by a hash of the case's name, which is itself drawn without regard to what is in
it: nobody chooses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from trainprobe.shipped import read_yaml

HERE = Path(__file__).resolve().parent
CASES, ANSWERS = HERE / "cases", HERE / "answers.yaml"


@dataclass(frozen=True)
class Answer:
    """What is true of one case.

    `cause` is an id of the catalogue, `unknown`, or `none` where nothing is ill or nothing can be
    said. `also` stands only where the catalogue itself makes a second id legitimate. `ranks` is
    None where any naming of ranks is accepted. `verdict` holds those that are true. `origin` is
    recorded or written, `part` is fit or report.
    """

    case: str
    cause: str
    also: tuple[str, ...] = ()
    ranks: tuple[int, ...] | None = None
    verdict: tuple[str, ...] = ("crashed",)
    origin: str = "written"
    part: str = "fit"
    decoy: bool = False
    notes: str = ""


def part_of(case: str) -> str:
    """Half of the cases are reported and never looked at while rules are written."""
    return "report" if hashlib.sha256(f"part of {case}".encode()).digest()[0] % 2 else "fit"


def read_answers() -> list[Answer]:
    """Return all answers in the order of the file."""
    if not ANSWERS.exists():
        return []
    rows = read_yaml(ANSWERS.read_text(encoding="utf-8")) or []
    return [
        Answer(
            row["case"],
            row["cause"],
            tuple(row.get("also", ())),
            None if row.get("ranks") is None else tuple(row["ranks"]),
            tuple(row["verdict"]),
            row["origin"],
            row["part"],
            bool(row.get("decoy", False)),
            str(row.get("notes", "")),
        )
        for row in rows
    ]


def write_answers(answers: Iterable[Answer]) -> None:
    """Write all answers, one a line."""
    import yaml

    lines = [
        (
            "# The truth about each case; see answers.py. Written by record.py and by hand. The "
            "tool"
            " never sees it."
        )
    ]
    for answer in answers:
        row = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(answer).items()
        }
        row = {
            name: value
            for name, value in row.items()
            if name not in ("also", "decoy", "notes") or value
        }
        lines.append(
            "- "
            + yaml.safe_dump(
                row, default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True
            ).strip()
        )
    ANSWERS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def digest() -> str:
    """A hash over the answers and the names and sizes of all files of the cases."""
    seen = hashlib.sha256(ANSWERS.read_bytes())
    for path in sorted(CASES.rglob("*")):
        if path.is_file():
            seen.update(f"{path.relative_to(CASES).as_posix()} {path.stat().st_size}\n".encode())
    return seen.hexdigest()[:16]
