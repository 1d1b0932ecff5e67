"""How `trainprobe lint` does: planted faults found, sound look-alikes left alone, and what it says
of code that nobody here wrote.

    python -m tests.gallery.lint.score                    planted and sound programs
    python -m tests.gallery.lint.score --foreign SITE     the trainers inside a site-packages folder, each finding listed

Each program is read alone. A planted fault is found where a finding has one of its ids in its line,
or in one of its lines.
`judged.tsv` holds what reading said of each foreign finding.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from trainprobe.lint.engine import all_rules, findings_of
from trainprobe.lint.model import Finding
from trainprobe.lint.program import NodeInfo
from trainprobe.lint.reading import read_program

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
FOREIGN = (
    "transformers/trainer*.py",
    "transformers/training_args*.py",
    "transformers/integrations",
    "transformers/data",
    "accelerate",
    "lightning",
    "torch/distributed",
    "torch/utils/data",
    "torch/nn/parallel",
    "datasets",
)


class Fault(NamedTuple):
    """A planted fault: the program, and the places (file, line, ids) of which one must be found."""

    kind: str
    program: str
    places: tuple[tuple[str, int, tuple[str, ...]], ...]


def faults() -> list[Fault]:
    """Return the planted faults of truth.tsv; lines with one letter in one program are one
    fault.
    """
    grouped: dict[tuple[str, str], list[tuple[str, int, tuple[str, ...]]]] = {}
    for number, row in enumerate((HERE / "truth.tsv").read_text().splitlines()):
        if row.startswith("#"):
            continue
        file, line, ids, letter = row.split("\t")
        grouped.setdefault((program_of(file), letter or f"#{number}"), []).append(
            (file, int(line), tuple(ids.split("|")))
        )
    return [
        Fault(program.split("/")[0], program, tuple(places))
        for (program, _), places in grouped.items()
    ]


def program_of(file: str) -> str:
    """`kind/3/train.py` and `kind/3.py` are the programs `kind/3` and `kind/3.py`."""
    return "/".join(file.split("/")[:2])


def planted_and_sound() -> Iterator[tuple[str, list[Finding]]]:
    """Yield each program with what is found in it, files relative to the folder of programs."""
    for entry in sorted(
        path
        for kind in PROGRAMS.iterdir()
        for path in kind.iterdir()
        if path.suffix == ".py" or (path.is_dir() and path.name[0] != "_")
    ):
        found, trouble = findings_of(read_program([str(entry)], around=NodeInfo()), hints=True)
        found = as_asked(found)
        assert not trouble, trouble
        yield (
            entry.relative_to(PROGRAMS).as_posix(),
            [one for one in found if Path(one.file).resolve().is_relative_to(PROGRAMS)],
        )


def as_asked(found: list[Finding]) -> list[Finding]:
    """What is shown by default, and of a rule that is a hint its plain cases."""
    least = {rule.id: min(rule.confidence, rule.plain_hint) for rule in all_rules()}
    return [one for one in found if one.confidence >= least[one.rule]]


class Score(NamedTuple):
    """What was found of the planted faults by kind, the missed ones, and findings that no truth
    asks for.
    """

    found: Counter[str]
    planted: Counter[str]
    missed: list[Fault]
    beside: list[Finding]
    sound: list[Finding]


def score() -> Score:
    found, planted, missed = Counter[str](), Counter[str](), []
    beside: list[Finding] = []
    sound: list[Finding] = []
    by_program = dict(planted_and_sound())
    wanted: dict[str, set[tuple[str, int, str]]] = defaultdict(set)
    for fault in faults():
        planted[fault.kind] += 1
        drawn = {
            (Path(one.file).resolve().relative_to(PROGRAMS).as_posix(), one.line, one.id)
            for one in by_program[fault.program]
        }
        right = {(file, line, cause) for file, line, ids in fault.places for cause in ids}
        wanted[fault.program] |= right
        if drawn & right:
            found[fault.kind] += 1
        else:
            missed.append(fault)
    for program, findings in by_program.items():
        if program.startswith("sound/"):
            sound += findings
        else:
            beside += [
                one
                for one in findings
                if (Path(one.file).resolve().relative_to(PROGRAMS).as_posix(), one.line, one.id)
                not in wanted[program]
            ]
    return Score(found, planted, missed, beside, sound)


def one_line(finding: Finding) -> str:
    return (
        f"{finding.file}:{finding.line}  {finding.id}  [{finding.rule} {finding.confidence}] "
        f" {finding.says}"
    )


def show_planted() -> None:
    done = score()
    for kind in sorted(done.planted):
        print(f"{kind:28} {done.found[kind]:3} of {done.planted[kind]}")
    print(f"{'all':28} {sum(done.found.values()):3} of {sum(done.planted.values())}")
    for fault in done.missed:
        print(
            "missed  ",
            fault.program,
            *(f"{file}:{line} {'|'.join(ids)}" for file, line, ids in fault.places),
        )
    for one in done.beside:
        print("beside  ", one_line(one))
    print(
        f"sound: {len(done.sound)} false findings in {len(list((PROGRAMS / 'sound').iterdir()))}"
        " programs"
    )
    for one in done.sound:
        print("false   ", one_line(one))


def judged() -> dict[tuple[str, int, str], str]:
    """Return what reading said of each foreign finding ("right" | "wrong"), by file, line and
    rule.
    """
    rows = [
        row.split("\t")
        for row in (HERE / "judged.tsv").read_text().splitlines()
        if not row.startswith("#")
    ]
    return {(file, int(line), rule): said for file, line, rule, said, _reason in rows}


def show_foreign(site: Path, parts: list[str]) -> None:
    """List every finding in the packages of a site-packages folder, each package read as one
    program.
    """
    told = judged()
    lines = wrong = 0
    seen: set[tuple[str, int, str]] = set()
    for part in parts:
        paths = sorted(str(path) for path in site.glob(part))
        if not paths:
            continue
        began = time.monotonic()
        program = read_program(paths)
        found, trouble = findings_of(program)
        given = sum(len(module.lines) for module in program.modules.values() if module.requested)
        print(
            f"== {part}: {given} lines, {len(found)} findings, {time.monotonic() - began:.1f} s",
            *trouble,
        )
        for one in found:
            key = (one.file.replace(f"{site}/", ""), one.line, one.rule)
            print(f"   {told.get(key, 'not judged'):10}", one_line(one).replace(f"{site}/", ""))
            wrong += key not in seen and told.get(key) != "right"
            seen.add(key)
        lines += given
    print(
        f"all: {len(seen)} findings in {lines} lines; {wrong} wrong or not judged,"
        f" {wrong / max(1, lines) * 2000:.2f} for each 2,000"
    )


def main() -> None:
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("--foreign", type=Path)
    asked.add_argument("parts", nargs="*", default=list(FOREIGN))
    told = asked.parse_args()
    if told.foreign:
        show_foreign(told.foreign, told.parts)
    else:
        show_planted()


if __name__ == "__main__":
    main()
