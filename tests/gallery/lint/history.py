"""How many faults of public histories `trainprobe lint` finds before their fix, and of how many it
is silent after it.

    python -m tests.gallery.lint.history MIRRORS     a folder with bare clones, OWNER+NAME/repo

`history.tsv` names each fault by repository, the commit that mends it, file and lines; no code of
others lies here. A fault is found where a finding of one of the rules stands in these lines of the
commit before, or names one of them (`ranks … have returned in line 289`); the program is the whole
tree.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from trainprobe.lint.engine import findings_of
from trainprobe.lint.model import Finding
from trainprobe.lint.reading import read_program

HERE = Path(__file__).parent
NEAR = 60
"""Lines within which a finding after the fix is about the same code."""


class HistoricFault(NamedTuple):
    """A fault, its place before the fix, the rules of which any may find it ("none" where no rule
    is about it), and what was found: when it was judged once, and with today's rules.
    """

    part: str
    repository: str
    fix: str
    path: str
    first: int
    last: int
    rules: tuple[str, ...]
    once: str
    today: str
    note: str


def faults() -> list[HistoricFault]:
    rows = [
        line.split("\t")
        for line in (HERE / "history.tsv").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    return [
        HistoricFault(part, repo, fix, path, int(a), int(b), tuple(rules.split("|")), *rest)
        for part, repo, fix, path, a, b, rules, *rest in rows
    ]


@cache
def findings_at(mirrors: Path, repository: str, commit: str) -> list[Finding]:
    """Return the findings in a commit's Python files, with paths relative to its root."""
    clone = mirrors / repository.replace("/", "+") / "repo"
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "--git-dir", str(clone), "archive", commit, "--", "*.py"],
            check=True,
            capture_output=True,
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        return [
            replace(finding, file=str(Path(finding.file).relative_to(folder)))
            for finding in findings_of(read_program([folder]))[0]
        ]


def lines_of(finding: Finding) -> list[int]:
    """The line where it stands, and those of that file that it names."""
    return [finding.line, *map(int, re.findall(r"\(?\bline (\d{1,6})", finding.says))]


def is_found(mirrors: Path, fault: HistoricFault) -> bool:
    return any(
        finding.file == fault.path
        and finding.rule in fault.rules
        and any(fault.first <= line <= fault.last for line in lines_of(finding))
        for finding in findings_at(mirrors, fault.repository, f"{fault.fix}^")
    )


def is_silent(mirrors: Path, fault: HistoricFault) -> bool:
    return not any(
        finding.file == fault.path
        and finding.rule in fault.rules
        and abs(finding.line - fault.first) < NEAR
        for finding in findings_at(mirrors, fault.repository, fault.fix)
    )


def main() -> None:
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("mirrors", type=Path)
    mirrors = asked.parse_args().mirrors
    total, found, silent = Counter[str](), Counter[str](), Counter[str]()
    for fault in faults():
        total[fault.part] += 1
        here, after = is_found(mirrors, fault), is_silent(mirrors, fault)
        found[fault.part] += here
        silent[fault.part] += after
        told = "found " if here else "missed"
        print(told, "silent" if after else "speaks", fault.repository, fault.fix, fault.path)
    for part, number in total.items():
        print(f"{part}: {found[part]} of {number} found, {silent[part]} silent after the fix")


if __name__ == "__main__":
    main()
