"""Working folders of killed runs go at the next start; whatever is not ours beyond doubt stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from trainprobe.system.proc import read_stat
from trainprobe.system.working_folders import MARK, make_working_folder, sweep


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def abandoned(root: Path) -> Path:
    """A folder that a process made which is gone."""
    code = (
        "from trainprobe.system.working_folders import make_working_folder;"
        " print(make_working_folder())"
    )
    apart = root / "apart"
    apart.mkdir(exist_ok=True)
    env = {**os.environ, "TMPDIR": str(apart), "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    made = Path(done.stdout.strip())
    return made.rename(root / made.name)


def test_a_folder_of_a_run_that_is_gone_is_cleared_away_at_the_next_start(root: Path) -> None:
    left = abandoned(root)
    (left / "0" / "deep").mkdir(parents=True)
    (left / "0" / "rank0.out").write_text("x")
    made = Path(make_working_folder())
    assert made.is_dir()
    assert not left.exists()
    assert sweep() == [], "our own is in use"
    assert made.is_dir()


def test_a_pid_that_belongs_to_another_process_now_keeps_nothing(root: Path) -> None:
    left = abandoned(root)
    words = (left / MARK).read_text().split(" ", 2)
    now = read_stat(os.getpid())
    assert now is not None
    (left / MARK).write_text(f"{os.getpid()} {now.started_ticks} {words[2]}")
    assert sweep(str(root)) == []
    (left / MARK).write_text(f"{os.getpid()} {now.started_ticks - 1} {words[2]}")
    assert sweep(str(root)) == [str(left)]


def test_what_is_not_ours_beyond_doubt_stays(root: Path) -> None:
    kept = [abandoned(root) for _ in range(5)]
    mark = (kept[0] / MARK).read_text()
    (kept[0] / MARK).unlink()  # no mark
    (kept[1] / MARK).write_text("nonsense")
    (kept[2] / MARK).write_text(mark.replace("pid:[", "pid:[9"))  # of another container
    (kept[3] / MARK).unlink()
    (kept[3] / MARK).symlink_to(kept[0] / "elsewhere")
    other = kept[4].rename(root / "trainprobe-witness-abcd1234")  # another kind of name
    outside = root / "outside"
    outside.mkdir()
    (outside / MARK).write_text(mark)
    (root / "trainprobe-linked__").symlink_to(outside)
    assert sweep(str(root)) == []
    assert all(folder.is_dir() for folder in [*kept[:4], other, outside])


def test_a_link_inside_a_folder_is_not_followed(root: Path) -> None:
    left, precious = abandoned(root), root / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    (left / "link").symlink_to(precious)
    assert sweep(str(root)) == [str(left)]
    assert (precious / "file").read_text() == "x"


def test_the_clearing_is_bounded_in_time(root: Path) -> None:
    left = abandoned(root)
    assert sweep(str(root), within_s=-1.0) == []
    assert left.is_dir()
    assert sweep(str(root / "missing")) == []


MAKES = {
    "a node that is asked": "from trainprobe.attach.node_look import look_here; look_here('', 5)",
    "a batch script": "from trainprobe.cli import run; run(['ready', '--sbatch', sys.argv[1]])",
    "a check that keeps no case": (
        "from trainprobe.ready import case_folders; case_folders.IN_MEMORY = sys.argv[2];"
        " case_folders.case_for(ReadyRequest(slot='prolog')).__enter__()"
    ),
}


@pytest.mark.parametrize("who", MAKES)
def test_what_a_killed_look_leaves_is_cleared_away_by_the_next(who: str, tmp_path: Path) -> None:
    """Every folder that is made for a look bears its mark: killed inside of it, it leaves no
    other kind.
    """
    script, places = tmp_path / "job.sh", tmp_path / "places"
    script.write_text("#!/bin/sh\nsrun true\n", encoding="ascii")
    places.mkdir()
    code = f"""
import os, signal, sys
import trainprobe.case as cases
cases.Case.create = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
import trainprobe.attach.node_look as here
from trainprobe.model.request import ReadyRequest
here._mine = lambda *_: object()
{MAKES[who]}
"""
    env = {
        **os.environ,
        "TMPDIR": str(places),
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "PATH": "/usr/bin:/bin",
    }
    done = subprocess.run(
        [sys.executable, "-c", code, str(script), str(places)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        timeout=60,
        check=False,
    )
    left = [str(path) for path in places.iterdir()]
    assert (done.returncode, len(left)) == (-signal.SIGKILL, 1), done.stderr
    assert sweep(str(places)) == left
