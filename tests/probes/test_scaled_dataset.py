"""The rung of data on the user's own: what its parts say, and factories that go wrong, by a
stand-in for torch that does nothing.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.probes.conftest import PROBES, ProbeRun, RunProbe

sys.path.insert(0, str(PROBES))
from _scaled_dataset import (
    cell_child,
    cells,
    comparisons,
    process_usage,
    sample_digests,
    trial,
    worker_limit,
)
from _shared import data_sources
from _shared.named_object import NamedObjectError, load_named_object

DATA = Path(__file__).parent / "data"
# As much of torch as the way to a factory needs: children then start in a tenth of a second.
STAND_IN = {
    "__init__.py": "def set_num_threads(count): pass\n",
    "distributed.py": "def is_available(): return False\n",
    "utils/__init__.py": "",
    "utils/data.py": (
        """
def get_worker_info(): return None
def default_collate(rows): return rows
class IterableDataset: pass
class DistributedSampler: pass
class Subset:
    def __init__(self, rows, places): self.rows, self.places = rows, places
    def __len__(self): return len(self.places)
    def __getitem__(self, place): return self.rows[self.places[place]]
class DataLoader:
    worker_init_fn = generator = batch_sampler = None
    num_workers = timeout = prefetch_factor = 0
    def __init__(self, rows, batch_size=1, sampler=None, collate_fn=None, multiprocessing_context=None, batch_sampler=None, **settings):
        self.rows, self.size, self.sampler, self.collate = rows, batch_size, sampler, collate_fn or (lambda rows: rows)
        self.dataset, self.batch_size, self.collate_fn, self.multiprocessing_context = rows, batch_size, self.collate, multiprocessing_context
        if settings.get("num_workers"): raise RuntimeError("the stand-in has no workers")
    def __len__(self): return -(-len(self.rows) // self.size)
    def __iter__(self):
        places = list(self.sampler if self.sampler is not None else range(len(self.rows)))
        for at in range(0, len(places), self.size):
            yield self.collate([self.rows[place] for place in places[at:at + self.size]])
"""
    ),
}
Take = Callable[..., ProbeRun]


@pytest.fixture
def take(run_probe: RunProbe, tmp_path: Path) -> Take:
    """Take faulty.py's factory through the rung without torch."""
    for name, text in STAND_IN.items():
        path = tmp_path / "stand-in" / "torch" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(
        name: str,
        *argv: str,
        deadline_s: float = 16,
        env: dict[str, str] | None = None,
        shell: str = "",
    ) -> ProbeRun:
        given = {
            "PYTHONPATH": str(tmp_path / "stand-in"),
            "TRAINPROBE_DEADLINE_S": str(deadline_s),
            "TRAINPROBE_NPROC": "1",
            **(env or {}),
        }
        flags = argv or ("--rows", "2,20", "--workers", "0")
        return run_probe(
            "scaled_dataset",
            "--dataset",
            f"{DATA}/faulty.py:{name}",
            *flags,
            env=given,
            shell=shell,
            cwd=DATA,
        )

    return run


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("raises", "raised", "raised ValueError: no data at /nowhere at faulty.py:"),
        ("leaves", "raised", "called sys.exit('give me a path')"),
        ("leaves_at_once", "died", "ended by itself with exit code 0"),
        ("kills_itself", "died", "killed by SIGKILL"),
        ("nothing", "nonsense", "The factory gave None"),
        ("a_class", "nonsense", "the class Rows"),
        ("endless", "nonsense", "can be read only once"),
        ("no_rows", "nonsense", "has no rows"),
        ("silent", "raised", "len() of the data raised RuntimeError: nobody counted"),
        ("lies", "raised", "raised IndexError: 5"),
        ("empty", "empty", "samples that were looked at are empty"),
    ],
)
def test_a_factory_that_goes_wrong(name: str, kind: str, words: str, take: Take) -> None:
    flags = ("--rows", "2,100", "--workers", "0") if name == "lies" else ()
    done = take(name, *flags)
    assert (done.exit_code, done.answer) == (10, "no"), done.output
    first = done.of("fail")[0]
    assert (first["kind"], first["given"]) == (kind, "dataset")
    assert words in first["says"]
    assert words in done.events[-1]["says"]
    if kind == "raised":
        assert first["type"]
        assert all("_scaled_dataset" not in frame["file"] for frame in first["frames"])
        assert any(frame["file"].endswith("faulty.py") for frame in first["frames"])


@pytest.mark.parametrize("name", [pytest.param("hangs", marks=pytest.mark.soak), "hangs_below"])
def test_a_factory_that_hangs_is_ended_with_all_below_it(name: str, take: Take) -> None:
    began = time.monotonic()
    done = take(name, deadline_s=14)
    assert done.answer == "no", done.output
    assert time.monotonic() - began < 20
    (failed,) = done.of("fail")
    assert failed["kind"] == "stood"
    assert failed["frames"][-1]["function"] == name
    assert f"in {name}" in failed["says"]
    assert not _left_over("faulty.py")


def _left_over(word: str) -> list[str]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if word in line and "pytest" not in line and "_scaled_dataset/cell_child.py" in line:
            found.append(line)
    return found


@pytest.mark.parametrize("name", ["good", "forks", "prints", "closes"])
def test_a_factory_that_only_does_odd_things_is_read(name: str, take: Take) -> None:
    done = take(name)
    assert done.answer == "yes", done.output
    assert {one["rows"] for one in done.of("measure", name="took_s")} >= {2, 20}
    assert (
        done.of("measure", name="dataset.length", where="pickled")[0]["value"]
        == done.of("measure", name="dataset.length", where="parent")[0]["value"]
    )
    assert bool(done.of("note", check="data.forks")) is (name == "forks")
    assert done.of("measure", name="limit.nofile")
    assert len(done.output) < 100_000


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("faulty.py:goood", "did you mean good"),
        ("nowhere.py:good", "no file"),
        ("no_such_module:make", "no module"),
        ("faulty", "not of the form"),
    ],
)
def test_a_name_that_is_mistyped_is_no_fault_of_the_data(name: str, words: str, take: Take) -> None:
    done = take("", "--dataset", name)
    assert (done.exit_code, done.answer) == (11, "cannot"), done.output
    assert words in done.events[-1]["says"].lower()


def test_lost_rows_are_measured(take: Take) -> None:
    done = take("halved")
    assert done.answer == "no"
    values = {one["where"]: one["value"] for one in done.of("measure", name="dataset.length")}
    assert (values["parent"], values["pickled"]) == (100, 50)
    assert done.of("fail")[0]["kind"] == "lost"


def test_what_cannot_be_pickled(take: Take) -> None:
    done = take("closed_over")
    assert (done.answer, done.of("fail")) == ("yes", []), done.output
    (told,) = done.of("note", check="data.pickle")
    assert told["status"] == "warn"
    assert "lambda" in told["says"]


def test_what_cannot_be_pickled_and_must_be(take: Take) -> None:
    """The data comes as a loader that starts its workers by spawn."""
    done = take("closed_over_and_spawned")
    assert done.answer == "no", done.output
    assert done.of("fail")[0]["kind"] == "unpicklable"


def test_a_digest_is_that_of_the_values() -> None:
    row = {"a": [1, 2.5, None, "x"], "b": (b"y", True), "c": {3, 4}}
    again = {"c": {4, 3}, "b": (b"y", True), "a": [1, 2.5, None, "x"]}
    assert sample_digests.digest([row]) == sample_digests.digest([again])
    assert sample_digests.digest([row]) != sample_digests.digest(
        [{**row, "a": [1, 2.5, None, "z"]}]
    )
    assert sample_digests.digest([1]) != sample_digests.digest([True])
    assert sample_digests.digest([object()]) is None
    assert sample_digests.combined([]) is None


@pytest.mark.parametrize(
    ("sample", "empty"),
    [
        ({}, True),
        (None, True),
        ({"a": None, "b": []}, True),
        ("", True),
        ({"a": 0}, False),
        ([0], False),
        (0, False),
    ],
)
def test_an_empty_sample(sample: Any, empty: bool) -> None:
    assert sample_digests.is_empty(sample) is empty


DUMP = f"""Thread 0x00007f1 (most recent call first):
  File "/usr/lib/python3.11/selectors.py", line 415 in select
Current thread 0x00007f0 (most recent call first):
  File "/job/rows.py", line 7 in wait
  File "/job/rows.py", line 3 in make
  File "{PROBES}/_scaled_dataset/cell_child.py", line 60 in sources
"""


def test_the_main_thread_of_a_dump_is_read_outermost_first() -> None:
    assert [(frame["function"], frame["line"]) for frame in cells.main_thread(DUMP)] == [
        ("make", 3),
        ("wait", 7),
    ]


def test_what_a_size_will_take_is_foreseen_from_the_two_before() -> None:
    assert cell_child.foreseen([(2, 1.0)], 1000) == 3.0
    assert cell_child.foreseen([(2, 1.0), (100, 1.98)], 1000) == pytest.approx(1.98 + 9.0)


def test_what_bends_is_foreseen_as_it_bends() -> None:
    spent = [(rows, 2e-7 * rows**2) for rows in (512, 2048, 8192)]
    assert cell_child.foreseen(spent, 16384) == pytest.approx(2e-7 * 16384**2, rel=0.05)
    in_step = [(rows, 0.1 + 1e-3 * rows) for rows in (512, 2048, 8192)]
    assert cell_child.foreseen(in_step, 16384) == pytest.approx(0.1 + 1e-3 * 16384, rel=0.05)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_sizes_come_close_enough_to_tell_a_law_before_one_is_too_long(power: int) -> None:
    """Whatever the law, the time is not passed, and four sizes and more lie on the way."""
    spent: list[tuple[int, float]] = []
    left_s, sizes = 60.0, [2, 74_074, 2_000_000]
    while sizes and left_s > 0:
        rows = cell_child.nearest(spent, sizes[0], left_s)
        if not rows:
            break
        spent.append((rows, 0.002 + {1: 1e-3, 2: 2e-7, 3: 1e-10}[power] * rows**power))
        left_s -= spent[-1][1]
        sizes = sizes[1:] if rows == sizes[0] else sizes
    assert left_s > 0
    assert sizes, "what does not fit is left out"
    assert len([rows for rows, took_s in spent if took_s > 0.01]) >= 3
    assert max(took_s for _, took_s in spent) > 3.0, "near to what the time allows"


def test_cheap_sizes_are_taken_at_once() -> None:
    assert cell_child.nearest([], 100, 60.0) == 100
    assert cell_child.nearest([(2, 0.001)], 20, 60.0) == 20
    assert cell_child.nearest([(2, 0.001), (100, 0.002)], 1000, 60.0) == 1000
    assert cell_child.nearest([(1000, 2.0), (2000, 4.0)], 4000, 60.0) == 4000


def test_one_number_of_rows_is_the_most() -> None:
    assert trial.grown((1000,)) == (2, 37, 111, 333, 1000)
    assert trial.grown((5, 50)) == (5, 50)


def test_what_a_node_bears(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "_emit.check",
        lambda name, _state, says, value=None, **more: told.append(
            {"says": says, "check": name, "value": value, **more}
        ),
    )
    monkeypatch.setattr("_emit.measure", lambda *_, **__: None)
    none = {"pss": 1e9, "parent_fds": 20, "pids": 4, "shm": 0, "worker_private": 0, "worker_pss": 0}
    two = {
        "pss": 2e9,
        "parent_fds": 40,
        "pids": 8,
        "shm": 1e6,
        "worker_private": 0.5e9,
        "worker_pss": 0.5e9,
    }
    costs = {(0, "none", 1): none, (2, "fork", 1): two}
    limits = {
        "memory_free_bytes": (20 * 10**9, "bytes"),
        "nofile": (1024, ""),
        "cpus": (64, ""),
        "shm_bytes": (10**10, "bytes"),
        "pids": (10**4, ""),
    }
    assert worker_limit.tell(costs, limits, 2, 3, []) == 4  # (0.8 x 20 - 2 x 1) / (2 x 3 x 0.5)
    assert "memory" in told[-1]["says"]
    assert (told[-1]["check"], told[-1]["value"]) == ("data.safe_workers", 4)
    assert (
        worker_limit.tell({**costs}, {**limits, "nofile": (100, "")}, 1, 3, []) == 2
    )  # (80 - 20) / (3 x 10)
    assert (
        worker_limit.tell({(0, "none", 1): none}, limits, 1, 1, [{"workers": 2, "method": "fork"}])
        == 0
    )
    assert worker_limit.tell({(0, "none", 1): none}, limits, 1, 1, []) is None


def _shard(rank: int, read: dict[str, list[int]], *, batches: int = 5) -> cells.ChildRun:
    return cells.ChildRun(
        rank,
        "done",
        [{"what": "shard", "read": read, "batches": batches, "rows": 0, "whole": True}],
        0,
        "",
        [],
    )


def _shards(*said: cells.ChildRun, workers: int, ranks: int) -> list[str]:
    run = cells.CellRun(list(said), [], 0.0, 0.0, 0)
    alone = _shard(0, {"-1": list(range(40))})
    return [
        failure.kind
        for failure in comparisons.shards(
            run, {"workers": workers, "ranks": ranks, "method": "fork"}, alone
        )
    ]


def test_shards_are_held_against_what_one_process_reads() -> None:
    halves = list(range(0, 40, 2)), list(range(1, 40, 2))
    assert _shards(_shard(0, {"0": halves[0], "1": halves[1]}), workers=2, ranks=1) == []
    assert _shards(_shard(0, {"0": list(range(40)), "1": list(range(40))}), workers=2, ranks=1) == [
        "overlap"
    ]
    assert _shards(
        _shard(0, {"-1": halves[0]}), _shard(1, {"-1": halves[1]}, batches=4), workers=0, ranks=2
    ) == ["uneven"]
    assert _shards(
        _shard(0, {"-1": halves[0]}), _shard(1, {"-1": halves[0]}), workers=0, ranks=2
    ) == ["missing"]
    assert (
        _shards(
            _shard(0, {"-1": list(range(40))}),
            _shard(1, {"-1": list(range(40))}),
            workers=0,
            ranks=2,
        )
        == []
    )  # a trainer may split it


def test_a_look_at_this_process_finds_it() -> None:
    seen = process_usage.look(os.getpid())
    assert seen.pss > 1e6
    assert seen.fds >= 3
    assert process_usage.limits()["cpus"][0] == len(os.sched_getaffinity(0))


def test_data_is_taken_as_it_is_and_factories_are_called() -> None:
    assert data_sources.call([1, 2], 5) == [1, 2]
    assert data_sources.call(lambda rows: list(range(rows)), 5) == [0, 1, 2, 3, 4]
    assert data_sources.call(lambda: [7], 5) == [7]


def test_an_object_of_a_file_or_of_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "rows_of_a_file.py").write_text("class Made:\n    value = 5\nmade = Made()\n")
    assert load_named_object(f"{tmp_path}/rows_of_a_file.py:made.value") == 5
    assert load_named_object("os:path.sep") == os.sep
    (tmp_path / "broken_of_a_file.py").write_text("import no_such_thing\n")
    with pytest.raises(NamedObjectError) as caught:
        load_named_object(f"{tmp_path}/broken_of_a_file.py:made")
    assert not caught.value.mistyped
    assert isinstance(caught.value.error, ModuleNotFoundError)


needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed here"
)


@pytest.mark.torch
@needs_torch
def test_the_users_own_rows_with_torch(run_probe: RunProbe) -> None:
    done = run_probe(
        "scaled_dataset",
        "--dataset",
        f"{DATA}/faulty.py:good",
        "--rows",
        "2,40",
        "--workers",
        "0",
        env={"TRAINPROBE_DEADLINE_S": "80"},
    )
    assert done.answer == "yes", done.output
    digests = {one["where"]: one["value"] for one in done.of("measure", name="dataset.digest")}
    assert digests.keys() >= {"parent", "pickled", "worker"}
    assert len(set(digests.values())) == 1
