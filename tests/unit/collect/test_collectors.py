"""A collector is one file: found, run under its deadline, parsed; and importing or judging looks at
nothing.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainprobe.attach.background import BackgroundLooks
from trainprobe.case import Case
from trainprobe.collect import collector as collectors
from trainprobe.collect.collector import ROUNDS, built, every_collector
from trainprobe.collect.members import Member
from trainprobe.facts import read
from trainprobe.facts.rows import fact_types, facts_from_rows
from trainprobe.pipelines import conclude

ROOT = Path(__file__).resolve().parents[3]

PLUGIN = """
import time
from dataclasses import dataclass
from trainprobe.api import Collector, Fact, LookResult, fields

@dataclass(frozen=True)
class Seats(Fact):
    free: int = 0

def parse(record):
    free = fields.whole(record.data, "free")
    return [Seats(evidence=(record.id,), cell=record.cell, free=free)]

def breaks(job, deadline_s):
    raise OSError("no such server")

def hangs(job, deadline_s):
    time.sleep(30)

def breaks_while_joined(facts):
    raise KeyError("x")

COLLECTOR = [
    Collector(
        "seats",
        lambda job, deadline_s: LookResult({"free": 3, "pids": [m.pid for m in job.members]}),
        deadline_s=1.0,
        source="the licence server",
        parse=parse,
        facts=(Seats,),
    ),
    Collector("seats-broken", breaks, deadline_s=1.0, parse=parse, join=breaks_while_joined),
    Collector("seats-hanging", hangs, deadline_s=0.2, parse=parse),
    Collector("seats-unwanted", hangs, deadline_s=0.2, wanted=lambda job: "SEATS" in job.variables),
    Collector("seats-later", breaks, deadline_s=1.0, rounds=("second",)),
    Collector("ports", hangs, deadline_s=0.2),
]
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One file in a temporary folder, with the metadata that an installer leaves behind."""
    folder = tmp_path / "site"
    info = folder / "seats-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: seats\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[trainprobe.collectors]\nseats = seats_collector\n")
    (folder / "seats_collector.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(folder))
    for cached in (collectors.added, fact_types):
        cached.cache_clear()
    yield
    for cached in (collectors.added, fact_types):
        cached.cache_clear()
    sys.modules.pop("seats_collector", None)


@pytest.mark.usefixtures("plugin")
def test_a_collector_of_a_plugin_is_run_in_attach_and_its_fact_reaches_the_judgement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody claims `ports` before the plug-in then.
    monkeypatch.setattr(collectors, "built", lambda: ())
    with Case.create(str(tmp_path / "case"), "attach", ()) as case:
        looks = BackgroundLooks(case, "job", {"environment": {}})
        looks.start_round("first", [Member(0, 4711)])
        looks.finish(5.0)
        records = {record.kind: record for record in case.seal()}
    assert (records["seats"].outcome, records["seats"].source) == ("ok", "the licence server")
    assert records["seats"].data == {"free": 3, "pids": [4711]}
    assert (records["seats-broken"].outcome, records["seats-broken"].reason) == (
        "crashed",
        "the look itself failed: OSError: no such server",
    )
    assert (records["seats-hanging"].outcome, records["seats-hanging"].took_s < 3) == (
        "timed_out",
        True,
    )
    assert "did not come back within" in records["seats-hanging"].reason
    assert not {"seats-unwanted", "seats-later"} & set(records)

    seats = fact_types()["Seats"]
    facts = read(records.values())
    (fact,) = facts.of(seats)
    assert (fact.evidence, fact.cell, fact) == ((records["seats"].id,), "job", fact)
    assert facts.looked("seats")
    assert {one.kind for one in facts.refused()} == {"ports", "seats-broken", "seats-hanging"}
    assert facts.unreadable == ("all of kind seats-broken",)
    assert facts_from_rows([{"Seats": {"free": 3}}]).of(seats) == (seats(free=3),)  # type: ignore[call-arg]


@pytest.mark.usefixtures("plugin")
def test_a_kind_that_is_taken_is_left_to_the_first_and_reported() -> None:
    assert [one.kind for one in every_collector()].count("ports") == 1
    assert every_collector()[: len(built())] == built()
    report = conclude([], "attach", "")
    assert any("adds no ports" in sentence for sentence in report.unexplained)


def test_every_collector_says_when_it_looks_and_what_it_yields() -> None:
    for one in built():
        assert 0 < one.deadline_s <= 5, one.kind
        assert (one.look is None) == (not one.rounds), one.kind
        assert set(one.rounds) <= set(ROUNDS), one.kind
        assert (one.parse is None) == (not one.facts), one.kind


IMPORTING = """
import sys
from trainprobe import causes, judge
from trainprobe.collect.collector import built
from trainprobe.report import json_report, text
causes.built(), built()
FORBIDDEN = {"subprocess", "multiprocessing", "psutil", "pynvml", "ctypes"}
FLOORS = ("attach", "ladder", "logs", "nodes", "ready", "system", "targets")
print(sorted(
    name for name in sys.modules
    if name in FORBIDDEN or name.startswith(tuple(f"trainprobe.{floor}" for floor in FLOORS))
))
"""

JUDGING = """
import sys
from trainprobe import causes, judge
from trainprobe.causes.priors import load_priors
from trainprobe.facts import read
from trainprobe.report.json_report import report_of
from trainprobe.saved_case import read_case
def conclude(saved):
    diagnosis = judge.judge(read(saved.evidence), causes.built(), load_priors(), ())
    return report_of(diagnosis, command="attach", case="case")
saved = [read_case(folder) for folder in sys.argv[1:]]
conclude(saved[0])  # loads modules and tables
touched = set()
TOUCHES = ("subprocess.", "socket.", "os.", "ctypes.", "shutil.", "tempfile.", "fcntl.")
def note(event, arguments):
    if event.startswith(TOUCHES) or (
        event == "open" and not str(arguments[0]).endswith((".py", ".pyc", ".yaml", ".zip"))
    ):
        touched.add((event, str(arguments[:1])))
sys.addaudithook(note)
for one in saved:
    conclude(one)
print(sorted(touched))
"""


def printed(program: str, *words: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return ran.stdout.strip()


def test_importing_the_concluding_side_with_all_collectors_touches_nothing() -> None:
    assert printed(IMPORTING) == "[]"


def test_judging_touches_nothing() -> None:
    cases = sorted(str(path) for path in (ROOT / "tests" / "cases").glob("attach-*"))
    assert len(cases) > 3
    assert printed(JUDGING, *cases) == "[]"
