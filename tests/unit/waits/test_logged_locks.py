"""Lines of the import lock in logs: who holds it, who waits, and what the ranks held after their
imports.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.model.diagnosis import Report
from trainprobe.pipelines import explain

PATH = "/run/user/7/trainprobe-7/import.lock"
GOT = f"LOCK: rank 0 pid 4240 got import lock {PATH} after 0.0 s"
RELEASED = f"LOCK: rank 0 pid 4240 released import lock {PATH} after 8.0 s"


def waits(rank: int, held_s: float, holder: str = "rank 0 pid 4240") -> str:
    return (
        f"LOCK: rank {rank} pid {4240 + rank} waits for import lock {PATH} (held by {holder} for"
        f" {held_s:.1f} s)"
    )


def explained(folder: Path, *lines: str) -> Report:
    (folder / "job.log").write_text(
        "\n".join(["starting 3 ranks", *lines]) + "\n", encoding="utf-8"
    )
    return explain([str(folder / "job.log")])


def test_a_rank_that_never_releases_the_lock_is_named(tmp_path: Path) -> None:
    report = explained(tmp_path, GOT, waits(1, 0.1), waits(2, 0.1), waits(1, 30.1), waits(2, 30.1))
    assert report.verdict == "hung", report.says
    first = report.causes[0]
    assert (first.id, first.named, first.ranks) == ("import-hang", True, (0,))
    assert "Rank 0 (pid 4240) holds the import lock" in first.summary
    assert first.chain[0].awaited == "rank 0 (pid 4240)"


def test_a_holder_outside_the_job_is_named_by_its_pid(tmp_path: Path) -> None:
    report = explained(
        tmp_path,
        waits(1, 5.0, "pid 911"),
        waits(2, 5.0, "pid 911"),
        waits(1, 35.0, "pid 911"),
        waits(2, 35.0, "pid 911"),
    )
    assert report.verdict == "hung", report.says
    first = report.causes[0]
    assert (first.id, first.ranks, first.pids) == ("file-lock-held", (1, 2), (911,))
    assert PATH in first.summary


@pytest.mark.parametrize(
    "lines",
    [
        (GOT, waits(1, 0.1)),  # it may have gone on the moment after
        (
            GOT,
            waits(1, 31.0),
            RELEASED,
            "LOCK: rank 1 pid 4241 got import lock X after 8.0 s",
            RELEASED.replace("rank 0 pid 4240", "rank 1 pid 4241"),
        ),
        (GOT, waits(1, 31.0), "step 1/100 loss 2.1", "step 2/100 loss 2.0", "step 3/100 loss 1.9"),
    ],
    ids=["a short wait", "all through", "steps afterwards"],
)
def test_a_wait_that_is_over_or_short_is_no_hang(lines: tuple[str, ...], tmp_path: Path) -> None:
    report = explained(tmp_path, *lines)
    assert report.verdict == "undetermined", report.says
    assert not [cause for cause in report.causes if cause.named]


def test_a_deadline_that_passed_names_the_holder(tmp_path: Path) -> None:
    trace = (
        "Traceback (most recent call last):",
        '  File "/job/fit.py", line 3, in <module>',
        "    with trainprobe.import_lock(timeout_s=60):",
    )
    gave_up = (
        f"LOCK: rank 1 pid 4241 gave up on import lock {PATH} after 60.0 s (held by rank 0 pid 4240"
        " for 60.2 s)"
    )
    error = (
        f"TimeoutError: The import lock {PATH} was not to be had in 60.0 s: it is held by rank 0"
        " pid 4240 for 60.2 s (fit.py), on n1. See what it does: trainprobe attach 4240."
    )
    report = explained(tmp_path, GOT, waits(1, 0.1), gave_up, *trace, error)
    first = report.causes[0]
    assert (report.verdict, first.id, first.named, first.ranks, first.pids) == (
        "crashed",
        "file-lock-held",
        True,
        (0,),
        (4240,),
    )
    assert any("attach 4240" in step for fix in first.fixes for step in fix.steps)


@pytest.mark.parametrize(("limit_mib", "full"), [(8192, True), (65536, False)])
def test_what_the_ranks_held_after_their_imports_speaks_for_memory(
    limit_mib: int, full: bool, tmp_path: Path
) -> None:
    lines = [
        f"MEM: rank {rank} pid {4240 + rank} rss 1812 MiB (+1640 MiB) peak 2024 MiB limit"
        f" {limit_mib} MiB after import"
        for rank in range(4)
    ]
    lines.append("run.sh: line 12:  4242 Killed                  python train.py")
    report = explained(tmp_path, *lines)
    (killed,) = (cause for cause in report.causes if cause.id == "host-oom-killed")
    said = [one.says for one in killed.because if "After their imports 4 processes" in one.says]
    assert bool(said) is full, killed.because
    assert all("held 7.1 GiB, each counted whole, of 8.0 GiB" in text for text in said)
