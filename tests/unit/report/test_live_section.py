"""What only the report on a live job shows: its ranks, the tree of their stacks, the time left."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.waits.live_rows import CELL, facts_of, job, own, rank, site
from trainprobe.causes.priors import load_priors
from trainprobe.facts import Checkpoint, Deadline, Facts, Job, Reach
from trainprobe.facts.table import Look
from trainprobe.judge import judge
from trainprobe.model.facts import Fact
from trainprobe.report.json_report import read_report, report_of, report_text
from trainprobe.report.text import text_of

STUCK: list[Fact | list[Fact]] = [
    job(3),
    rank(0, age_s=300.0),
    rank(1, age_s=300.0),
    rank(2, own("wait", 31), own("wait", 31)),
    site(31, "time.sleep(3600)"),
]


def text(*more: object) -> str:
    diagnosis = judge(facts_of(*STUCK, *more), (), load_priors())  # type: ignore[arg-type] # facts
    report = report_of(diagnosis, command="attach", case="case")
    assert read_report(report_text(report)) == report
    return text_of(report, verbose=True)


def test_ranks_that_stand_alike_share_a_line_and_the_tree_shows_where_they_part() -> None:
    said = text()

    assert said.startswith("attach 9 · torchrun · 3 ranks on node7 · world complete")
    assert "HUNG for 5 min 00 s. Rank 2 on node7 holds up the other two." in said
    assert "ranks  0-1 waiting for 5 min 00 s at train.py:88 in step -> rank 2" in said
    assert "stacks 0-2: train.py:99 in <module>" in said
    assert "         0-1: train.py:88 in step > distributed_c10d.py:3252 in all_reduce" in said


def test_what_is_unknown_of_the_time_left_is_said_to_be_unknown() -> None:
    said = text()

    assert "the group's timeout: unknown" in said
    assert "the scheduler's limit: unknown" in said
    assert "save the case, then kill" in said


def test_what_killing_costs_is_the_age_of_the_newest_checkpoint() -> None:
    said = text(
        Deadline((), CELL, None, "group", 1800.0, None, "torch's default"),
        Checkpoint((), CELL, None, "/ck/old.pt", 5, 100.0),
        Checkpoint((), CELL, None, "/ck/new.pt", 5, 402.0),
    )

    assert "25 min 00 s left of 30 min 00 s (torch's default)" in said
    assert "/ck/new.pt, 10 min 00 s old" in said


def test_each_row_s_own_pid_stands_at_its_number_and_not_behind_the_rank_that_it_waits_for() -> (
    None
):
    said = text()

    assert "       2 (pid " in said
    assert ") -> " not in said[said.index("ranks  ") : said.index("stacks ")]


def test_a_young_job_without_a_checkpoint_is_not_said_to_lose_all_its_work() -> None:
    rows = STUCK[1:]
    assert isinstance(STUCK[0], Job)
    for began, says in (
        (None, "none was found: all work since the start may be lost"),
        (-600.0, "none was found: all work"),
        (500.0, "none was found\n"),
    ):
        facts = Facts(
            facts_of(replace(job(3), began=began), *rows).all, looked=[Look("deadlines", CELL)]
        )
        report = report_of(judge(facts, (), load_priors()), command="attach", case="case")
        assert f"newest checkpoint: {says}" in text_of(report, verbose=True)


def test_a_job_that_was_reached_on_several_hosts_is_headed_by_the_way_there() -> None:
    reach = Reach(
        by="slurm", job="4711", command="trainprobe attach --slurm 4711", nodes=("node1", "node2")
    )
    assert text(reach).startswith("attach --slurm 4711 · ")


def test_one_process_alone_has_no_group_that_could_time_out() -> None:
    default = Deadline((), CELL, None, "group", 1800.0, None, "torch's default for gloo")
    rows: list[Fact | list[Fact]] = [job(1), rank(0, own("wait", 31), own("wait", 31)), default]
    report = report_of(judge(facts_of(*rows), (), load_priors()), command="attach", case="case")
    said = text_of(report, verbose=True)
    assert "torch's default" not in said
    assert "the group's timeout: one process alone waits in no group" in said
