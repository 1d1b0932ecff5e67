"""The classes of an illness: what a report says where no special cause can be named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.gallery.live.families import CLAIMS
from tests.gallery.live.replay import RECORDED, _read
from trainprobe import causes, pipelines
from trainprobe.causes.classes import TITLES, TRUST, passed_the_rendezvous
from trainprobe.causes.scene import Scene
from trainprobe.facts import Facts, MainThread
from trainprobe.model.diagnosis import Report
from trainprobe.report.format import Layout
from trainprobe.report.formats import choose
from trainprobe.report.text import text_of
from trainprobe.stacks.frames import Frame
from trainprobe.waits.suspects import SuspectGroup


def judged(key: str, monkeypatch: pytest.MonkeyPatch, *without: str) -> Report:
    """The recorded run, judged without these causes."""
    kept = tuple(cause for cause in causes.built() if cause.id not in without)
    monkeypatch.setattr(causes, "built", lambda: kept)
    return pipelines.conclude(_read(RECORDED / f"{key}.xz")[1], "attach", "./case")


CALLS = (
    "rank-conditional-collective",
    "collective-order-mismatch",
    "collective-shape-mismatch",
    "rank-divergent-forward",
    "uneven-inputs",
)


def test_a_located_trouble_without_a_cause_is_named_by_its_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = judged("ddp_branch.0", monkeypatch, *CALLS)
    first, text = report.causes[0], text_of(report)
    assert (first.id, first.ranks) == ("unknown", (1,))
    assert [one.id for one in first.classes] == ["calls-part"]
    assert first.title == "The ranks' calls part"
    assert first.confidence == first.classes[0].confidence == TRUST["calls-part"]
    assert "no cause fits" not in text
    assert "The ranks' calls part" in text
    assert "Rank 1 waits in barrier" in first.summary


def test_the_look_inside_the_ranks_is_offered_where_it_would_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = judged("ddp_branch.0", monkeypatch, *CALLS)
    assert report.extra["deep_would_settle"] is True
    assert report.causes[0].fixes[0].steps[0] == "trainprobe attach 21070 --deep"
    stuck = judged("child_command.0", monkeypatch, "rank-stuck", "queue-deadlock")
    assert "deep_would_settle" not in stuck.extra
    assert "--deep" not in text_of(stuck)


@pytest.mark.parametrize(("line", "passed"), [(22, False), (24, True)])
def test_a_rank_on_an_earlier_line_has_not_passed_the_rendezvous(line: int, passed: bool) -> None:
    def standing(rank: int, leaf: str, op: str, line: int, *more: Frame) -> MainThread:
        frames = (Frame("setup", "/job/run.py", line), *more)
        return MainThread((), "job", rank, pid=60 + rank, leaf=leaf, op=op, frames=frames)

    waits = standing(0, "store-wait", "rendezvous", 23)
    other = standing(1, "sleep", "", line, Frame("cache", "/job/run.py", 12))
    group = SuspectGroup("job", "", (1,), "never-joined", "", "hang", world_size=2)

    assert passed_the_rendezvous(Scene(Facts([waits, other]), group)) is passed


def test_a_rank_that_does_not_join_has_a_narrower_class(monkeypatch: pytest.MonkeyPatch) -> None:
    first = judged("child_command.0", monkeypatch, "rank-stuck", "queue-deadlock").causes[0]
    assert [one.id for one in first.classes] == ["rank-held-up", "waits-for-child"]
    wide, narrow = first.classes
    assert wide.confidence >= narrow.confidence > 0.8


def test_nobody_is_blamed_where_all_that_is_seen_waits_at_the_rendezvous(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = judged("odd_world.2", monkeypatch, "world-size-mismatch", "rendezvous-incomplete")
    assert [one.id for one in first.causes[0].classes] == ["meeting-incomplete"]
    assert first.causes[0].ranks == ()


def test_a_named_cause_keeps_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    first = judged("ddp_branch.0", monkeypatch).causes[0]
    assert first.named
    assert [one.id for one in first.classes] == ["calls-part"]


def test_each_class_has_a_title_and_each_wide_one_a_meaning_for_the_gallery() -> None:
    assert set(TRUST) <= set(TITLES)
    of_logs = {"first-failure", "ended-by-hand", "says-it-waits", "one-look"}
    assert set(TRUST) - set(CLAIMS) == of_logs


def test_a_rank_slow_in_every_step_is_no_long_task(monkeypatch: pytest.MonkeyPatch) -> None:
    report = judged("slow_rank.1", monkeypatch, "straggler-rank", "cpu-oversubscribed")
    assert "rank0-long-task" not in [cause.id for cause in report.causes if cause.named]


def test_a_stopped_rank_is_not_said_to_make_another_call(monkeypatch: pytest.MonkeyPatch) -> None:
    report = judged("mesh_stopped.0", monkeypatch, "process-stopped")
    assert not any(cause.named for cause in report.causes)


def test_ids_of_evidence_are_for_those_who_ask_and_lines_of_the_program_for_everybody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = judged("ddp_branch.0", monkeypatch)
    plain = text_of(report)
    verbose = choose("diagnosis", "text").renders["diagnosis"](report, Layout(verbose=True))
    ids = report.causes[0].because[0].evidence
    assert ids
    assert ids[0] not in plain
    assert f"({ids[0]}" in verbose
    assert [row.source for row in report.world.ranks][:2] == ["loss.backward()", "dist.barrier()"]
    assert "dist.barrier()" in plain


def test_the_first_step_names_the_condition_and_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = judged("ddp_branch.0", monkeypatch).causes[0].fixes[0].steps
    assert "out of `if step == args.when:` (line 27)" in steps[0]


def test_a_stopped_loader_worker_is_not_called_its_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    first = judged("worker_stopped.0", monkeypatch).causes[0]
    assert first.summary.startswith("A loader worker of rank 1 (pid 23729) is stopped")


def test_code_that_inductor_wrote_is_nobodys_own(monkeypatch: pytest.MonkeyPatch) -> None:
    report = judged("compile_lengths.1", monkeypatch)
    assert report.world.ranks[1].where == "mb33434d4.py:23 in main"


def test_no_look_inside_the_ranks_is_offered_again_where_it_was_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = tuple(cause for cause in causes.built() if cause.id not in CALLS)
    monkeypatch.setattr(causes, "built", lambda: kept)
    records = _read(RECORDED / "ddp_branch.0.xz")[1]
    stack = next(record for record in records if "stack" in record.kind)
    refused = replace(stack, id="E999", kind="deep", outcome="denied", reason="no", data={})
    report = pipelines.conclude([*records, refused], "attach", "./case")
    assert "deep_would_settle" not in report.extra
    assert "--deep" not in report.causes[0].fixes[0].steps[0]
