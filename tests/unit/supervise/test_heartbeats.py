"""`trainprobe.step` and `trainprobe.phase`: what a rank writes and a supervisor reads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import trainprobe
from tests.conftest import python_path
from trainprobe import heartbeat
from trainprobe.supervise.heartbeats import PREFIX, Heartbeats


@pytest.fixture
def beats(monkeypatch: pytest.MonkeyPatch) -> Iterator[Heartbeats]:
    """A supervisor's side, and this process as a rank."""
    made = Heartbeats()
    monkeypatch.setenv(heartbeat.FOLDER, made.folder)
    heartbeat._forget()
    yield made
    heartbeat._forget()
    made.close()
    assert not os.path.exists(made.folder)


def test_steps_arrive_with_their_numbers_and_times(beats: Heartbeats) -> None:
    before = time.monotonic()
    trainprobe.step(7)
    trainprobe.step(8)
    beats.read()
    (rank,) = beats.ranks.values()
    assert [beat.step for beat in rank.newest] == [7, 8]
    assert before <= rank.newest[0].at <= rank.newest[1].at <= time.monotonic()
    beats.read()
    assert rank.newest == []


def test_without_a_number_steps_are_counted(beats: Heartbeats) -> None:
    for _ in range(3):
        trainprobe.step()
    trainprobe.step("nonsense")  # type: ignore[arg-type]
    trainprobe.step(2**80)
    beats.read()
    (rank,) = beats.ranks.values()
    assert [beat.step for beat in rank.newest] == [1, 2, 3, 4, 5]


def test_a_rank_that_is_faster_than_the_reader_loses_the_oldest_steps(beats: Heartbeats) -> None:
    for number in range(10_000):
        trainprobe.step(number)
    beats.read()
    (rank,) = beats.ranks.values()
    assert rank.newest[-1].step == 9999
    assert 200 < len(rank.newest) <= heartbeat.RING


def test_phases_lie_within_each_other(beats: Heartbeats) -> None:
    def now() -> str:
        beats.read()
        return next(iter(beats.ranks.values())).phase

    with trainprobe.phase("evaluation"):
        assert now() == "evaluation"
        with trainprobe.phase("checkpoint"):
            assert now() == "checkpoint"
        assert now() == "evaluation"
    assert now() == ""


def test_a_phase_ends_with_an_exception(beats: Heartbeats) -> None:
    with pytest.raises(KeyError), trainprobe.phase("x" * 200):
        raise KeyError
    beats.read()
    assert next(iter(beats.ranks.values())).phase == ""


def test_a_forked_child_has_a_file_of_its_own(beats: Heartbeats) -> None:
    trainprobe.step(1)
    child = os.fork()
    if child == 0:
        trainprobe.step(100)
        os._exit(0)
    os.waitpid(child, 0)
    beats.read()
    assert set(beats.ranks) == {os.getpid(), child}
    assert [beat.step for beat in beats.ranks[os.getpid()].newest] == [1]
    beats.forget(child)
    beats.read()
    assert set(beats.ranks) == {os.getpid()}


def test_without_a_supervisor_nothing_happens(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(heartbeat.FOLDER, raising=False)
    heartbeat._forget()
    trainprobe.step(1)
    with trainprobe.phase("x"):
        pass
    monkeypatch.setenv(heartbeat.FOLDER, str(tmp_path / "gone"))
    heartbeat._forget()
    trainprobe.step(1)
    with trainprobe.phase("x"):
        pass
    heartbeat._forget()


def test_it_imports_the_standard_library_alone() -> None:
    asks = (
        "import sys; before = set(sys.modules); import trainprobe;"
        "print(sorted({name.split('.')[0] for name in set(sys.modules) - before}"
        " - sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-c", asks],
        env={**os.environ, **python_path()},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "['trainprobe']"


def test_a_file_that_is_no_heartbeat_is_left_alone(beats: Heartbeats) -> None:
    Path(beats.folder, "4711").write_bytes(b"x" * 10_000)
    Path(beats.folder, "notes").write_bytes(b"")
    os.symlink("/etc/passwd", Path(beats.folder, "4712"))
    beats.read()
    assert beats.ranks == {}


def test_what_a_killed_supervisor_left_is_cleared_up_when_its_job_is_gone(
    beats: Heartbeats,
) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    shared = Path(beats.folder).parent
    left = shared / f"{PREFIX}{gone.pid}-left"
    used = shared / f"{PREFIX}{gone.pid}-used"
    for folder, job in ((left, gone.pid), (used, os.getpid())):
        folder.mkdir()
        (folder / str(job)).write_bytes(b"")
    Heartbeats().close()
    assert (left.exists(), used.exists()) == (False, True)
    assert Path(beats.folder).exists()
    shutil.rmtree(used)
