"""What causes say and advise, where a reader was misled by it."""

from __future__ import annotations

from tests.causes.fixtures import load
from trainprobe.causes import built


def said(cause_id: str, fixture: str) -> str:
    """The summary and the steps of a cause for a fixture of another's confusions, as one text."""
    found = load("_confusions", fixture)
    cause = next(cause for cause in built() if cause.id == cause_id)
    steps = [step for fix in cause.fixes_for(found.scene) for step in (fix.title, *fix.steps)]
    return "\n".join([cause.summary(found.scene), *steps])


def test_a_rank_that_has_ended_waits_for_nobody_and_the_place_to_open_is_in_the_user_s_code() -> (
    None
):
    text = said("rank-stuck", "live_thread_keeps_a_rank_from_ending")

    assert "in a collective" not in text
    assert "_shutdown" not in text
    assert "open train.py:16 in loop" in text


def test_a_lock_file_whose_name_nobody_knows_is_not_made_up() -> None:
    text = said("file-lock-held", "live_lock_file_by_its_name")

    assert "LOCKFILE" not in text
    assert "tries again and again at train.py:12 in exclusive" in text


def test_a_program_without_python_gets_no_python_stack() -> None:
    text = said("queue-deadlock", "live_waits_for_a_program_whose_output_it_should_read")

    assert "py-spy dump --pid 75" not in text
    assert "-p 75" in text
    assert "py-spy dump --pid 70" in text


def test_a_step_that_was_skipped_is_named_with_its_line() -> None:
    text = said("rank-conditional-collective", "live_a_step_of_the_loop_can_be_skipped")

    assert "a step is skipped where `if not torch.isfinite(batch).all():` holds" in text
    assert "(line 22)" in text


def test_a_rendezvous_at_which_all_stand_names_no_scheduler_that_is_not_there() -> None:
    text = said("rendezvous-incomplete", "live_all_stand_at_one_rendezvous")

    assert "All 2 ranks wait" in text
    assert "squeue" not in text
    assert "squeue" not in said("rendezvous-incomplete", "live_rank_never_came")


def test_agents_that_were_told_apart_are_told_in_what() -> None:
    text = said("rendezvous-incomplete", "live_agents_of_two_rendezvous")

    assert (
        "2 agents of torchrun wait here and were not told the same: --rdzv-id 311 and 928" in text
    )
    assert "other nodes" not in text
    assert "--rdzv-endpoint a:1" not in text
    assert "Tell all agents of the job the same" in text
