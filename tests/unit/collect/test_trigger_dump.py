"""`--trigger-dump`, with a process that answers its pipe as NCCL's heartbeat thread does."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainprobe.case import Case
from trainprobe.collect.members import Member
from trainprobe.collect.trigger_dump import PIPE, ask, trigger_dump

DUMP = pickle.dumps(
    {
        "version": "2.10",
        "pg_config": {},
        "pg_status": {},
        "entries": [{"profiling_name": "nccl:all_reduce", "state": "started"}],
    },
    2,
)
# Makes its pipe, looks into it every 50 ms, and writes a dump for any byte.
ANSWERS = """
import os, sys, time
pipe, dump, answers = sys.argv[1:]
os.mkfifo(pipe)
fd = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
print("ready", flush=True)
while True:
    time.sleep(0.05)
    if os.read(fd, 16) and answers == "yes":
        with open(dump, "wb") as file:
            file.write(DUMP)
"""
Start = Callable[..., Any]


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, dict[str, str]]:
    return {
        "job": {
            PIPE: str(tmp_path / "pipe"),
            "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": str(tmp_path / "dump_"),
        }
    }


def answering(start: Start, tmp_path: Path, answers: str = "yes") -> Any:
    return start(
        ANSWERS.replace("DUMP", repr(DUMP)),
        str(tmp_path / "pipe3.pipe"),
        str(tmp_path / "dump_3"),
        answers,
    )


def test_the_dump_that_comes_of_it_is_read(
    case: Case, start: Start, tmp_path: Path, variables: dict[str, dict[str, str]]
) -> None:
    process = answering(start, tmp_path)
    asked, dump = trigger_dump(case, "job", [Member(3, process.pid)], variables)
    assert (asked.kind, asked.outcome, asked.data["path"]) == (
        "trigger_dump",
        "ok",
        str(tmp_path / "pipe3.pipe"),
    )
    assert (dump.kind, dump.outcome, dump.data["rank"], dump.data["entries"][0]["op"]) == (
        "flight_recorder",
        "ok",
        3,
        "all_reduce",
    )
    assert process.poll() is None


def test_an_old_dump_is_no_answer(
    case: Case, start: Start, tmp_path: Path, variables: dict[str, dict[str, str]]
) -> None:
    (tmp_path / "dump_3").write_bytes(DUMP)
    os.utime(tmp_path / "dump_3", (1_700_000_000, 1_700_000_000))
    (asked,) = trigger_dump(
        case, "job", [Member(3, answering(start, tmp_path, "no").pid)], variables, deadline_s=0.6
    )
    assert (asked.outcome, "wrote no dump within 0.6 s" in asked.reason) == ("timed_out", True)


def test_without_the_variable_nothing_is_written(case: Case, start: Start, tmp_path: Path) -> None:
    process = answering(start, tmp_path)
    (asked,) = trigger_dump(
        case, "job", [Member(3, process.pid), Member(3, process.pid, "loader-worker")], {}
    )
    assert (asked.outcome, f"{PIPE} is not set" in asked.reason) == ("unavailable", True)
    assert not (tmp_path / "dump_3").exists()


def test_only_a_pipe_of_the_jobs_user_is_written_to(
    start: Start, tmp_path: Path, variables: dict[str, dict[str, str]]
) -> None:
    process = answering(start, tmp_path)
    plain = tmp_path / "pipe4.pipe"
    plain.write_text("kept")
    assert "no pipe of the job's own user" in ask(Member(4, process.pid), variables["job"]).reason
    assert plain.read_text() == "kept"
    (tmp_path / "pipe5.pipe").symlink_to(tmp_path / "pipe3.pipe")
    assert "cannot be used" in ask(Member(5, process.pid), variables["job"]).reason
    os.mkfifo(tmp_path / "pipe6.pipe")
    assert "nobody reads it" in ask(Member(6, process.pid), variables["job"]).reason
    assert "cannot be used" in ask(Member(7, process.pid), variables["job"]).reason


def test_a_process_that_is_gone_is_not_asked(
    start: Start, tmp_path: Path, variables: dict[str, dict[str, str]]
) -> None:
    process = answering(start, tmp_path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert "gone" in ask(Member(3, process.pid), variables["job"]).reason
