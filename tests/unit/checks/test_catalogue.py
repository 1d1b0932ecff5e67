"""The catalogue is whole: every id that a program can say has its row, and every row somebody
who makes it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trainprobe.checks import BUDGETS, SEVERITIES, SLOTS, catalogue, spec_of
from trainprobe.ladder.probes import built_in_folder, find, in_folder
from trainprobe.model.probes import ProbeSpec
from trainprobe.shipped import read_yaml

FILE = ROOT / "trainprobe" / "checks" / "catalogue.yaml"
LISTED = ("launch_plan", "diagnosable", "machine", "storage", "network", "devices")
# Ids that older probes write into their events, without a list of them.
WRITTEN = {
    "host": re.compile(r'"((?:lim|mem|shm|fs|plan|host)\.[a-z-]+|env)"'),
    "environment": re.compile(r'"((?:py|drv)\.[a-z.]+)"'),
}
# made before submission, by the pair search, and before any program is started
ELSEWHERE = {"sbatch", "node_pair", "job_python"}


def check_programs() -> list[ProbeSpec]:
    return [spec for spec in in_folder(built_in_folder()) if "ready" in spec.extra]


def ids_of(program: str) -> dict[str, tuple[tuple[str, ...], str]]:
    """Id to (slots, budget), as the program itself says."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "probes" / f"{program}.py"), "--list"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return {
        name: (tuple(row["slots"]), row["budget"])
        for row in json.loads(done.stdout)
        for name in row["ids"]
    }


@pytest.mark.parametrize("program", LISTED)
def test_what_a_program_says_of_its_checks_stands_in_the_catalogue(program: str) -> None:
    said = ids_of(program)
    rows = {
        name: (row.slots, row.budget) for name, row in catalogue().items() if row.program == program
    }
    assert said == rows


@pytest.mark.parametrize("program", sorted(WRITTEN))
def test_ids_that_older_probes_write_stand_in_the_catalogue(program: str) -> None:
    parts = [ROOT / "probes" / f"{program}.py", *(ROOT / "probes" / f"_{program}").glob("*.py")]
    written = {
        name
        for path in parts
        for name in WRITTEN[program].findall(path.read_text(encoding="utf-8"))
    }
    written |= (
        {f"lim.{name}" for name in ("nofile", "memlock", "as", "stack", "core")}
        if program == "host"
        else set()
    )
    rows = {name for name, row in catalogue().items() if row.program == program}
    assert rows == written


def test_every_row_is_made_by_somebody() -> None:
    checks = {spec.name: spec for spec in check_programs()}
    rungs = {spec.name for spec in find(())}
    for row in catalogue().values():
        if not row.program:
            assert row.shared, f"{row.id} is made by nobody and compared by nobody"
            assert row.id.endswith((".same", ".skew"))
            continue
        assert row.program in set(checks) | rungs | ELSEWHERE, row.id
        if row.program in checks:
            slots = checks[row.program].extra["slots"]
            assert set(row.slots) <= set(slots), (
                f"{row.id} is made in slots in which {row.program} does not run"
            )
            assert BUDGETS.index(row.budget) >= BUDGETS.index(checks[row.program].extra["ready"]), (
                row.id
            )


def test_rows_are_whole_and_ids_unique() -> None:
    rows = read_yaml(FILE.read_text(encoding="utf-8"))
    names = [row["id"] for row in rows]
    assert len(names) == len(set(names))
    assert set(names) == set(catalogue())
    for row in catalogue().values():
        assert row.title, row.id
        assert row.source, f"{row.id}: where its number comes from is not said"
        assert row.threshold, row.id
        assert row.fix, row.id
        assert row.severity in SEVERITIES
        assert row.who in ("user", "admin")
        assert row.budget in BUDGETS
        assert set(row.slots) <= set(SLOTS)
        assert 0 <= row.stage <= 9
    assert {row.stage for row in catalogue().values()} == set(range(10))


def test_every_check_program_is_no_rung_unless_it_says_so() -> None:
    rungs = {spec.name for spec in find(())}
    for spec in check_programs():
        assert (spec.name in rungs) == (spec.extra.get("ladder") is not False)


def test_admin_slots_run_no_program_that_loads_more_than_the_standard_library() -> None:
    """A prolog must not import torch or plugins."""
    for spec in check_programs():
        if set(spec.extra["slots"]) & {"prolog", "epilog", "healthcheck"}:
            assert "torch" not in spec.needs
            assert "import torch" not in Path(spec.program).read_text(encoding="utf-8")


def test_a_check_of_one_place_has_the_row_of_its_kind_and_any_name_is_soon_looked_up() -> None:
    found = [
        spec_of(name)
        for name in ("fs.space:/data/a.b", "env.NCCL_DEBUG", "lim.nofile", "no.such", "", ":")
    ]
    assert [spec.id if spec else None for spec in found] == [
        "fs.space",
        "env",
        "lim.nofile",
        None,
        None,
        None,
    ]
    began = time.process_time()
    assert spec_of("." * 10**6) is None
    assert time.process_time() - began < 1
