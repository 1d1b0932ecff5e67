"""Ends of real jobs, srun over torchrun with gloo on two nodes of Slurm 22.05, and what other
schedulers and clouds print, are told as what they are; what came behind them is an echo.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.model.diagnosis import Report
from trainprobe.model.request import ExplainRequest
from trainprobe.pipelines import explain

RECORDED = Path(__file__).with_name("ended")
SAID = {
    "scancel": ("The job was cancelled", "sacct"),
    "time-limit": ("reached its time limit", "--time="),
    "requeue": ("put back into the queue", "--open-mode=append"),
    "preemption": ("higher priority", "--requeue"),
    "node-failure": ("A node of the job failed", "--exclude="),
}
STEPS = "step 10 loss 2.1\nstep 20 loss 2.0\n"
PRINTED = (
    ("=>> PBS: job killed: walltime 86432 exceeded limit 86400", "reached its time limit"),
    ("TERM_RUNLIMIT: job killed after reaching LSF run time limit.", "reached its time limit"),
    ("TERM_OWNER: job killed by owner.", "The job was cancelled"),
    ("1.029s: job.exception type=timeout severity=0 resource allocation expired", "time limit"),
    ("1.029s: job.exception type=cancel severity=0 ", "The job was cancelled"),
    ("Message: Pod The node had condition: [DiskPressure].", "Kubernetes evicted"),
    ("The node was low on resource: ephemeral-storage.", "Kubernetes evicted"),
    ("Spot ITN received. Instance will be interrupted at 2031-02-03T04:07:06Z", "The cloud took"),
)


def told(path: Path) -> Report:
    return explain(ExplainRequest(paths=(str(path),), argv=("trainprobe", "explain", path.name)))


@pytest.mark.parametrize("name", SAID)
def test_what_slurm_says_of_a_real_jobs_end_is_the_cause(name: str) -> None:
    report = told(RECORDED / f"{name}.out")

    first = report.causes[0]
    words, do = SAID[name]
    assert (first.id, first.ranks) == ("preempted-or-hangup", ())
    assert first.confidence >= 0.9
    assert words in first.summary
    assert do in " ".join(step for fix in first.fixes for step in fix.steps)


def test_the_logs_of_srun_tasks_that_are_launchers_are_no_ranks() -> None:
    """`srun --output=task-%t.log torchrun --nproc-per-node=2` on two nodes of a SLURM that puts the
    node into the name of its slurmstepd.
    """
    report = told(RECORDED / "scancel-by-task")

    first = report.causes[0]
    assert (first.id, first.ranks, report.world.size) == ("preempted-or-hangup", (), 4)
    assert first.confidence >= 0.85
    assert "The job was cancelled" in first.summary


def test_steps_in_the_second_of_a_cancellation_are_no_going_on(tmp_path: Path) -> None:
    """SLURM rounds its time down; a logger's fractions of that second sort behind it."""
    lines = [f"2031-02-03 04:05:06,{100 + step} step {step} loss 2.0\n" for step in range(6)]
    end = "slurmstepd: error: *** JOB 7 ON node1 CANCELLED AT 2031-02-03T04:05:06 ***\n"
    (tmp_path / "rank_0.log").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "slurm-7.out").write_text(
        f"{end}srun: error: node1: task 0: Terminated\n", encoding="utf-8"
    )

    first = told(tmp_path).causes[0]
    assert first.id == "preempted-or-hangup"
    assert "The job was cancelled" in first.summary


@pytest.mark.parametrize(("line", "words"), PRINTED)
def test_what_others_print_of_an_end_is_told_as_it_is(
    line: str, words: str, tmp_path: Path
) -> None:
    log = tmp_path / "job.log"
    log.write_text(f"{STEPS}{line}\n", encoding="utf-8")

    first = told(log).causes[0]
    assert first.id == "preempted-or-hangup"
    assert first.confidence >= 0.9
    assert words in first.summary


def test_a_step_that_srun_ends_for_a_failed_task_was_not_cancelled(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(
        f"{STEPS}[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/job/train.py", line 25, in main\n[rank1]:     label = row["label"]\n'
        "[rank1]: KeyError: 'label'\n"
        "srun: error: n1: task 1: Exited with exit code 1\n"
        "slurmstepd: error: *** STEP 8.0 ON n1 CANCELLED AT 2031-02-03T04:05:06 ***\n",
        encoding="utf-8",
    )

    assert told(log).causes[0].id != "preempted-or-hangup"


TRACEBACK = """Traceback (most recent call last):
  File "/job/train.py", line 25, in main
    label = row["label"]
KeyError: 'label'
"""
LIMIT = "slurmstepd: error: *** JOB 4711 ON node1 CANCELLED AT 2031-02-03T04:07:06 DUE TO TIME LIMIT ***"


@pytest.mark.parametrize("file", ["a.err", "z.err"])
def test_a_failure_in_a_file_of_its_own_is_no_echo_of_the_time_limit(
    file: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(STEPS + TRACEBACK, encoding="utf-8")
    (tmp_path / "slurm-4711.out").write_text(f"{STEPS}{LIMIT}\n", encoding="utf-8")

    assert told(tmp_path).causes[0].id == "user-exception"


def test_a_failure_behind_the_time_limit_in_one_file_is_its_echo(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(f"{STEPS}{LIMIT}\n{TRACEBACK}", encoding="utf-8")

    assert told(log).causes[0].id == "preempted-or-hangup"


def test_a_step_killed_for_memory_is_told_with_its_node_and_no_more_than_slurm_knows(
    tmp_path: Path,
) -> None:
    log = tmp_path / "job.log"
    log.write_text(
        f"{STEPS}slurmstepd: error: *** STEP 4711.0 ON node1 CANCELLED AT 2031-02-03T04:07:06 ***\n"
        "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of the step tasks have"
        " been OOM Killed.\nsrun: error: node3: task 2: Out Of Memory\n",
        encoding="utf-8",
    )

    first = told(log).causes[0]
    assert (first.id, first.ranks) == ("host-oom-killed", (2,))
    assert (
        "Rank 2 on node3 was killed by the kernel because the memory of its job step, or of the"
        in (first.summary)
    )
