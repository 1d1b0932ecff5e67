"""What the first screen shows, and what waits for --verbose."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.report import handmade
from trainprobe.model.diagnosis import (
    Expiry,
    Fix,
    Link,
    PlacedCause,
    RankRow,
    Report,
    RuledOut,
    StackBranch,
    Stacks,
    Undecided,
    Weighing,
    World,
)
from trainprobe.report.phrases import columns
from trainprobe.report.text import text_of

EXCERPT = {
    "group": 0,
    "who": "rank 1",
    "lines": [
        {"file": "train.py", "line": 28, "text": "if rank == 0:", "depth": 2},
        {"file": "train.py", "line": 29, "text": "save(model)", "depth": 3},
        {"file": "io.py", "line": 11, "text": "def save(model):", "depth": 0},
        {"file": "io.py", "line": 13, "text": "dist.barrier()", "depth": 1, "guilty": True},
    ],
}
CAUSE = PlacedCause(
    "rank-conditional-collective",
    "Some ranks call a collective that the others do not",
    0.97,
    26,
    named=True,
    ranks=(1,),
    summary="Rank 1 called barrier at io.py:13.",
    chain=(Link("rank 0", "rank 1", "waits for"),),
    because=tuple(Weighing(points, "other-stacks", f"Reason {points}.", ("E1",)) for points in (13, 10, 6, -3)),
    fixes=(
        Fix("Call it on all ranks", ("DataLoader(..., timeout=60)   or 'spawn'",)),
        Fix("End it", ("kill 17   (its holder)",), risk="disruptive"),
        Fix("Ask", ("sysctl x=1",), risk="needs-admin", who="admin"),
    ),
    docs="x",
)  # fmt: skip
LIVE = replace(
    handmade.HUNG,
    command="attach",
    conclusive=True,
    causes=(CAUSE,),
    world=World(2, (RankRow(0, "n1", 5, "waiting", "train.py:23 in main", "rank 1", 9.0, "loss.backward()"), RankRow(1, "n1", 6, "waiting", "io.py:13 in save", "rank 0", 9.0, "dist.barrier()"))),
    stacks=Stacks(tree=(StackBranch("0-1", "train.py:34 in <module>"),)),
    expiry=(Expiry("the group's timeout", 1780.0, None, "torch's default", "29 min left"),),
    advice="Save the case, then kill the job.",
    undecided=(Undecided("cannot-look", "gpus: no driver"), Undecided("cannot-look", "kernel log: closed"), Undecided("rank-stuck", "trainprobe attach 9")),
    ruled_out=(RuledOut("rank-stuck", "it is not"),),
    extra={"world_seen": "world complete", "excerpts": [EXCERPT]},
)  # fmt: skip


def test_the_guilty_line_is_marked_as_a_compiler_does() -> None:
    assert (
        "    --> train.py  (rank 1)\n"
        "      28 |         if rank == 0:\n"
        "      29 |             save(model)\n"
        "    --> io.py\n"
        "      11 | def save(model):\n"
        "      ..\n"
        "    > 13 |     dist.barrier()\n"
        "         |     ^^^^^^^^^^^^^^\n"
    ) in text_of(LIVE)


def test_verdict_line_change_and_command_stand_on_one_screen_of_thirty_lines() -> None:
    screen = text_of(LIVE).splitlines()[:30]
    places = [
        next(place for place, line in enumerate(screen) if part in line)
        for part in ("HUNG", "rank-conditional-collective", "dist.barrier()", "1. Call it", "kill 17", "Reason 13")
    ]  # fmt: skip
    assert places == sorted(places)


def test_what_only_supports_the_answer_waits_for_verbose() -> None:
    short, whole = text_of(LIVE), text_of(LIVE, verbose=True)
    for part in ("+13", "E1", "Reason 6", "Reason -3", "chain ", "stacks ", "time ", "ruled out", "could not look", "undecided"):  # fmt: skip
        assert part not in short
        assert part in whole
    assert "gpus: no driver" not in whole
    assert "now    Save the case, then kill the job." in short
    assert "(more: trainprobe explain" in short
    assert "--verbose" not in whole


def test_what_hides_the_answer_is_told_on_the_first_screen() -> None:
    open_ = replace(CAUSE, id="unknown", named=False, confidence=0.3)
    for report in (
        replace(LIVE, conclusive=False),
        replace(LIVE, verdict="undetermined", causes=()),
        replace(LIVE, causes=(open_,)),
    ):
        text = text_of(report)
        assert "kernel log: closed" in text
        assert "gpus" not in text


def test_only_what_disturbs_or_needs_somebody_else_is_said_of_a_fix() -> None:
    text = text_of(LIVE)
    assert "1. Call it on all ranks\n" in text
    assert "2. End it [it disturbs the job]\n" in text
    assert "3. Ask [an administrator]\n" in text


def test_a_remark_is_a_comment_so_that_the_line_can_be_copied() -> None:
    text = text_of(LIVE)
    assert "kill 17  # its holder\n" in text
    assert "DataLoader(..., timeout=60)  # or 'spawn'\n" in text
    long = Fix("Look", (), verify=f"trainprobe attach {'x' * 40}   # once the job runs again")
    shown = text_of(replace(LIVE, causes=(replace(CAUSE, fixes=(long,)),)), 60)
    assert "# once the job runs again\n" in shown
    assert "# #" not in shown


def test_unknown_never_stands_above_a_candidate_that_is_likelier() -> None:
    unknown = PlacedCause("unknown", "Nothing fits", 0.2, 0, named=False, summary="Nothing fits.")
    likelier = replace(CAUSE, confidence=0.55, named=False)
    text = text_of(replace(LIVE, causes=(unknown, likelier)))
    assert "No candidate is sure" in text
    assert "maybe rank-conditional-collective 55 %" in text
    assert "no cause fits" not in text
    rarer = replace(likelier, confidence=0.1)
    assert "no cause fits, 20 %" in text_of(replace(LIVE, causes=(unknown, rarer)))


def test_frames_that_repeat_are_shown_once() -> None:
    branch = StackBranch("0-1", "tree.py:9 in leaf")
    for number in range(39):
        branch = StackBranch("0-1", f"tree.py:{5 + number % 2} in walk", (branch,))
    for _ in range(20):
        branch = StackBranch("0-1", "tree.py:3 in grow", (branch,))
    text = text_of(replace(LIVE, stacks=Stacks(tree=(branch,))), verbose=True)
    assert "tree.py:3 in grow (x 20)" in text
    assert text.count("in walk") <= 3
    assert "x 19)" in text
    assert "tree.py:9 in leaf" in text


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("verbose", [False, True])
def test_it_fits_also_with_lines_that_somebody_made_up(width: int, verbose: bool) -> None:
    hostile = {
        "file": "x\x1b[2J" * 300,
        "line": 7,
        "text": "数据 \u202e\n" * 60,
        "depth": 99,
        "guilty": True,
    }
    for shown in (
        {**EXCERPT, "lines": [*EXCERPT["lines"], hostile]},  # type: ignore[misc]
        {**EXCERPT, "lines": [None, 7, {"line": True}, {"line": -1}, hostile]},
        {**EXCERPT, "lines": "none"},
        {"group": 0},
        None,
    ):
        report: Report = replace(LIVE, extra={**LIVE.extra, "excerpts": [shown]})
        text = text_of(report, width, verbose=verbose)
        assert max(map(columns, text.splitlines())) <= width
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert text_of(replace(LIVE, extra={**LIVE.extra, "excerpts": 5}), width)
