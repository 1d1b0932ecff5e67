"""What an ablation leaves out, and why; what an answer is worth with a knob, and with few rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainprobe.config import Settings
from trainprobe.ladder import ablation, running
from trainprobe.ladder.cells import Cell
from trainprobe.ladder.knobs import Change, Turn, turns
from trainprobe.ladder.outcome import Result
from trainprobe.ladder.plan import Rung
from trainprobe.ladder.running import Done, Runner
from trainprobe.model.probes import ProbeSpec

OURS = {turn.label: turn for turn in turns(("train.py",), (), {}, gpus=0, witness=True)}
SCRIPT = ProbeSpec("user_script", 100, "?", scope="ranks")
INSIDE = Turn("workers=0", Change(how="witness", says="every DataLoader loads in its own process"))


def failing(outcome: str = "crashed", cell: Cell | None = None, **data: Any) -> Done:
    return Done(
        cell or Cell(2, 100), outcome, {"elapsed_s": 20.0, "cell": "user_script@2x100", **data}
    )


@pytest.mark.parametrize(
    ("label", "could", "left_out"),
    [
        ("workers=0", {"workers": 0, "loaders": 1}, True),
        ("workers=0", {"workers": 2}, False),
        ("batch=half", {"loaders": 0}, True),
        ("batch=half", {"loaders": 1}, False),
        ("start=spawn", {"children": 0}, True),
        ("start=spawn", {"children": 3}, False),
        ("evaluation=off", {"trainer": False}, True),
        ("evaluation=off", {"trainer": True}, False),
        ("threads=1", {"loaders": 0, "workers": 0}, False),
        ("workers=0", {}, False),  # no witness told anything: then it is tried
        ("workers=0", None, False),
    ],
)
def test_a_knob_is_left_out_only_where_it_is_known_to_have_nothing_to_change(
    label: str, could: Mapping[str, Any] | None, left_out: bool
) -> None:
    assert bool(ablation._nothing_to_change(OURS[label], could)) is left_out


def test_a_usage_error_at_once_is_no_reason_to_change_knobs() -> None:
    assert "refused its own arguments" in ablation._pointless(failing(usage_error=True))
    assert not ablation._pointless(failing(usage_error=True, elapsed_s=300.0))
    assert not ablation._pointless(failing(usage_error=False))


def test_a_failing_cell_that_made_steps_teaches_its_own_rhythm() -> None:
    rhythm = {"first_sign_s": 8.0, "quiet_s": 5.0, "steps": 7}

    assert ablation._deadlines(failing(rhythm=rhythm), (), Settings()).stall_s == 15.0
    assert (
        ablation._deadlines(failing(rhythm={**rhythm, "steps": 0}), (), Settings()).stall_s
        == Settings().stall_s
    )


def test_without_rows_a_cell_has_passed_well_after_the_moment_at_which_it_failed() -> None:
    stalled = failing("timed_out", Cell(2), elapsed_s=45.0, silent_s=30.0)

    assert ablation._deadlines(stalled, (), Settings()).run_s == 45.0
    assert ablation._deadlines(failing(cell=Cell(2), elapsed_s=1.0), (), Settings()).run_s == 30.0
    assert (
        ablation._deadlines(failing(cell=Cell(2), elapsed_s=500.0), (), Settings()).run_s
        == Settings().run_s
    )


def watched(applied: int) -> Any:
    return SimpleNamespace(signs=SimpleNamespace(by_pid={1: SimpleNamespace(knob_applied=applied)}))


def test_an_answer_with_a_knob_that_changed_nothing_is_none() -> None:
    result = running._turned(Result("passed"), INSIDE, watched(0))

    assert (result.outcome, result.more["unmet"], result.more["applied"]) == (
        "skipped",
        "knob:no-effect",
        False,
    )
    assert result.more["without_effect"] == "passed"


def test_an_answer_with_a_knob_that_took_hold_stands() -> None:
    result = running._turned(Result("passed"), INSIDE, watched(3))

    assert (result.outcome, result.more["applied"], result.more["applied_count"]) == (
        "passed",
        True,
        3,
    )
    assert (
        running._turned(Result("crashed"), Turn("x=1", Change(how="option")), watched(0)).outcome
        == "crashed"
    )


def test_a_script_that_cannot_be_spawned_has_not_answered(tmp_path: Path) -> None:
    (tmp_path / "err").write_text(
        "RuntimeError:\n  An attempt has been made to start a new process before the\n  current"
        " process has finished its bootstrapping phase.\n"
    )
    spec = SimpleNamespace(stdout=str(tmp_path / "out"), stderr=str(tmp_path / "err"))
    watch = SimpleNamespace(
        signs=watched(2).signs, launch=SimpleNamespace(specs=(spec,)), find_logs=list
    )
    turn = Turn("start=spawn", Change(how="witness"))

    assert running._turned(Result("crashed"), turn, watch).outcome == "skipped"  # type: ignore[arg-type]
    (tmp_path / "err").write_text("KeyError: 'label'\n")
    assert running._turned(Result("crashed"), turn, watch).outcome == "crashed"  # type: ignore[arg-type]


def test_too_few_rows_for_a_batch_are_no_failure_unless_there_are_no_more() -> None:
    rung = Rung(SCRIPT, (1, 2), rows=(2, 100))

    assert (
        Runner._too_few_rows(Result("failed", "no batch"), rung, Cell(2, 2)).outcome
        == "not_measured"
    )
    assert (
        Runner._too_few_rows(Result("failed", "no batch"), rung, Cell(2, 100)).outcome == "failed"
    )
    assert Runner._too_few_rows(Result("crashed"), rung, Cell(2, 2)).outcome == "crashed"
    assert Runner._too_few_rows(Result("failed"), Rung(SCRIPT, (1, 2)), Cell(2)).outcome == "failed"
