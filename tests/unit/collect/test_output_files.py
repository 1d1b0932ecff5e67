"""Where the output of a live job goes, with real processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainprobe import mount_table
from trainprobe.collect.collector import JobView
from trainprobe.collect.collectors.output import look_at_files
from trainprobe.collect.look_results import LookResult
from trainprobe.collect.members import Member

SPEAKS = "import sys, time; print(sys.argv[1], flush=True); time.sleep(60)"


class Jobs:
    """Stand-ins for ranks, that say one line and sleep."""

    def __init__(self) -> None:
        self.running: list[subprocess.Popen[bytes]] = []

    def rank(self, number: int, says: str, **streams: Any) -> Member:
        streams = {"stderr": subprocess.DEVNULL, **streams}
        process = subprocess.Popen([sys.executable, "-c", SPEAKS, says], **streams)
        self.running.append(process)
        return Member(number, process.pid)


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    jobs = Jobs()
    yield jobs
    for process in jobs.running:
        process.kill()
        process.wait()


def seen(*members: Member, expect: str, **data: Any) -> list[LookResult]:
    """What a look brings, once `expect` has been written."""
    view = JobView(members, data, cell="live")
    for _ in range(300):
        found = list(look_at_files(view, 1.5))
        if any(expect in result.data.get("head", "") for result in found):
            return found
        time.sleep(0.1)
    raise AssertionError(found)


def said(found: list[LookResult]) -> dict[int | None, str]:
    return {
        result.subject.rank: result.data["head"].strip()
        for result in found
        if result.outcome == "ok" and result.subject is not None
    }


def test_each_rank_has_its_own_file_with_the_time_of_its_last_line(
    jobs: Jobs, tmp_path: Path
) -> None:
    with open(tmp_path / "a.log", "wb") as first, open(tmp_path / "b.log", "wb") as second:
        members = jobs.rank(0, "step 1", stdout=first), jobs.rank(1, "step 2", stdout=second)
    seen(*members, expect="step 1")
    found = seen(*members, expect="step 2")
    assert said(found) == {0: "step 1", 1: "step 2"}
    data = found[-1].data
    assert (data["stream"], data["path"]) == ("stdout", str(tmp_path / "b.log"))
    assert data["last_at"] == os.stat(tmp_path / "b.log").st_mtime
    assert 0 <= data["silent_s"] < 30


def test_a_deleted_file_is_read_through_the_process(jobs: Jobs, tmp_path: Path) -> None:
    path = tmp_path / "gone.log"
    with open(path, "wb") as file:
        member = jobs.rank(0, "step 7", stdout=file)
    path.unlink()
    found = seen(member, expect="step 7")
    assert said(found) == {0: "step 7"}
    assert found[-1].data["deleted"] is True


def test_the_file_of_a_tee_at_the_other_end_of_the_pipe_is_read(jobs: Jobs, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    tee = subprocess.Popen(["tee", path], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    jobs.running.append(tee)
    member = jobs.rank(0, "step 9", stdout=tee.stdin)
    assert tee.stdin is not None
    tee.stdin.close()
    found = seen(member, expect="step 9")
    assert said(found) == {0: "step 9"}
    assert "tee" in found[-1].data["via"]


def test_the_log_of_the_service_that_passes_the_output_on_is_not_the_job_s(
    jobs: Jobs, tmp_path: Path
) -> None:
    with open(tmp_path / "slurmd.log", "ab") as log:
        step = subprocess.Popen(
            ["slurmstepd: [1.0]", tmp_path / "rank-0.out"],
            executable=shutil.which("tee"),
            stdin=subprocess.PIPE,
            stdout=log,
        )
    jobs.running.append(step)
    member = jobs.rank(0, "step 9", stdout=step.stdin)
    assert step.stdin is not None
    step.stdin.close()

    found = seen(member, expect="step 9")

    paths = {result.data["path"] for result in found if result.outcome == "ok"}
    assert paths == {str(tmp_path / "rank-0.out")}


def test_a_file_that_holds_no_text_is_no_output(jobs: Jobs, tmp_path: Path) -> None:
    with open(tmp_path / "shared.sm", "wb") as file:
        member = jobs.rank(0, "step 9", stdout=file)
        file.write(b"\x00\x01" * 100)
        file.flush()
        found = list(look_at_files(JobView([member], {}, cell="live"), 1.5))

    assert not [result for result in found if result.outcome == "ok"]


def test_a_file_that_all_ranks_share_is_taken_apart_once(jobs: Jobs, tmp_path: Path) -> None:
    with open(tmp_path / "all.log", "ab") as file:
        members = [jobs.rank(0, "[rank0]: step 1", stdout=file)]
        seen(*members, expect="step 1")
        members.append(jobs.rank(1, "[rank1]: step 2", stdout=file))
        found = seen(*members, expect="step 2")
    assert said(found) == {0: "step 1", 1: "step 2"}
    when = {result.subject.rank: result.data["last_at"] for result in found if result.subject}
    assert when[0] is None, "only whose line is the last is known to have written then"
    assert when[1] is not None


@pytest.mark.parametrize(
    ("name", "says"), [("/dev/null", "/dev/null"), ("pipe", "nobody reads"), ("fifo", "goes")]
)
def test_what_keeps_nothing_says_so_and_is_not_opened(
    jobs: Jobs, tmp_path: Path, name: str, says: str
) -> None:
    if name == "pipe":
        reads, out = os.pipe()
        os.close(reads)
    elif name == "fifo":
        os.mkfifo(tmp_path / "fifo")
        out = os.open(tmp_path / "fifo", os.O_RDWR)
    else:
        out = os.open(name, os.O_WRONLY)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdout=out)
    jobs.running.append(process)
    os.close(out)
    began = time.monotonic()
    found = list(look_at_files(JobView([Member(3, process.pid)], {}, cell="live"), 1.5))
    assert time.monotonic() - began < 2
    reasons = [result.reason for result in found if result.outcome == "unavailable"]
    assert any(says in reason or "regular file" in reason for reason in reasons), reasons


def test_the_file_of_a_rank_that_is_gone_is_found_by_the_names_of_the_others(
    jobs: Jobs, tmp_path: Path
) -> None:
    (tmp_path / "run0").mkdir()
    paths = [tmp_path / "run0" / f"rank{number:02}.log" for number in range(3)]
    paths[1].write_text("finished\n")
    members = []
    for number in (0, 2):
        with open(paths[number], "wb") as file:
            members.append(jobs.rank(number, f"step {number}", stdout=file))
    seen(*members, expect="step 0")
    found = seen(*members, expect="step 2", absent=[1], began=time.time() - 5)
    assert said(found) == {0: "step 0", 2: "step 2", 1: "finished"}
    os.utime(paths[1], (1000, 1000))
    found = seen(*members, expect="step 2", absent=[1], began=time.time() - 5)
    assert 1 not in said(found), "an earlier run wrote it"


def test_a_file_that_the_launcher_holds_for_a_rank_that_is_gone_is_that_rank_s(
    jobs: Jobs, tmp_path: Path
) -> None:
    """As torchrun does with --redirects."""
    paths = [tmp_path / str(number) / "stdout.log" for number in range(2)]
    for path in paths:
        path.parent.mkdir()
    paths[1].write_text("finished\n")
    with open(paths[0], "ab") as first, open(paths[1], "ab") as second:
        member = jobs.rank(0, "step 0", stdout=first)
        launcher = jobs.rank(0, "launching", stdout=subprocess.DEVNULL, pass_fds=[second.fileno()])
    launcher = replace(launcher, rank=None, role="launcher")
    found = seen(member, launcher, expect="step 0", absent=[1], began=time.time() - 5)
    assert said(found) == {0: "step 0", 1: "finished"}
    assert {result.data["stream"] for result in found if result.outcome == "ok"} == {"stdout"}


def test_a_file_of_another_host_is_read_by_a_child(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mount_table, "LOCAL", frozenset())
    with open(tmp_path / "far.log", "wb") as file:
        member = jobs.rank(0, "step 4", stdout=file)
    found = seen(member, expect="step 4")
    assert said(found) == {0: "step 4"}
    assert found[-1].data["silent_s"] < 30


def test_only_the_end_of_a_long_file_is_read(jobs: Jobs, tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_bytes(b"old line\n" * 100_000 + b"the end\n")
    with open(path, "ab") as file:
        member = jobs.rank(0, "and more", stdout=file)
    time.sleep(1)
    found = look_at_files(JobView([member], {}, cell="live"), 1.5)
    data = next(result.data for result in found if result.outcome == "ok")
    assert (data["head"], len(data["tail"])) == ("", 65536)
    assert data["left_out_bytes"] == data["bytes"] - 65536


def test_what_their_shell_started_beside_the_ranks_is_read_too(tmp_path: Path) -> None:
    speaks = f"{sys.executable} -c '{SPEAKS}'"
    script = (
        f"{speaks} one > a.log & echo $! >> pids; {speaks} two > b.log & echo $! >> pids\n"
        f"{speaks} 'pid 7 is killed' > watch.log & wait"
    )
    # a shell of their own, without a pipe to this test: nothing leads to what stands above it
    shell = subprocess.Popen(
        ["bash", "-c", script],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    pids = tmp_path / "pids"
    with shell:
        try:
            while not pids.exists() or pids.read_text().count("\n") < 2:
                time.sleep(0.02)
            one, two = map(int, pids.read_text().split())
            found = seen(Member(0, one), Member(1, two), expect="pid 7 is killed")
            assert said(found)[None] == "pid 7 is killed"
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
