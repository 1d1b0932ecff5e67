"""What is read of a job that has failed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import python_path
from trainprobe.case import Case
from trainprobe.collect.members import Member
from trainprobe.model.evidence import Ended
from trainprobe.supervise.after_the_end import OutputFile, record_end
from trainprobe.targets.jobs import LiveJob
from trainprobe.targets.live_job import LaunchedBy, LiveRank

TRACEBACK = (
    'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n'
    "    raise KeyError('label')\nKeyError: 'label'\n"
)


def job() -> LiveJob:
    ranks = tuple(LiveRank(pid, 1, pid - 100, "environment") for pid in (100, 101))
    return LiveJob(LaunchedBy("torchrun", 99), ranks, world_size=2, host="n1")


def kinds(case: Case) -> list[str]:
    return [record.kind for record in case.evidence]


def test_endings_and_output_become_one_case(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"an older run: ValueError: not this\n{TRACEBACK}")
    outputs = [OutputFile(str(log), len("an older run: ValueError: not this\n"))]
    endings = [(Member(1, 101, "rank", 1), Ended("exited", code=1, at=5.0))]
    with Case.create(str(tmp_path / "case"), "run", ()) as case:
        assert record_end(case, job(), endings, outputs, str(tmp_path))
        assert kinds(case)[:2] == ["job", "rank.ended"]
        told = "\n".join(str(dict(record.data)) for record in case.evidence)
    assert "KeyError" in told
    assert "not this" not in told


def test_without_output_the_endings_count(tmp_path: Path) -> None:
    endings = [(Member(1, 101, "rank", 1), Ended("signalled", signal=9, at=5.0))]
    with Case.create(str(tmp_path / "case"), "run", ()) as case:
        assert record_end(case, job(), endings, [], str(tmp_path))
        assert kinds(case) == ["job", "rank.ended"]
    with Case.create(str(tmp_path / "other"), "run", ()) as case:
        empty = tmp_path / "empty"
        empty.write_text("")
        assert not record_end(case, None, [], [OutputFile(str(empty), 0)], str(tmp_path))


def test_only_plain_files_behind_our_streams_are_output(tmp_path: Path) -> None:
    asks = (
        "from trainprobe.supervise.after_the_end import output_files\n"
        "import sys; open(sys.argv[1], 'w').write(repr([(one.before) for one in output_files()]))"
    )
    log = tmp_path / "log"
    log.write_text("12345")
    with log.open("ab") as both:
        for stderr in (both, subprocess.PIPE):
            subprocess.run(
                [sys.executable, "-c", asks, str(tmp_path / "said")],
                stdout=both,
                stderr=stderr,
                env={**os.environ, **python_path()},
                check=True,
            )
            assert (tmp_path / "said").read_text() == "[5]"
