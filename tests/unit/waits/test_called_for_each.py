"""Who comes to a line for one thing after the other, by a loop of its own or of a trainer."""

from __future__ import annotations

import pytest

from tests.unit.waits.live_rows import MAIN, SITE, own, site
from trainprobe.stacks.frames import Frame
from trainprobe.waits.loops import called_for_each

STEP = Frame("Net.validation_step", "/job/net.py", 39)


@pytest.mark.parametrize(
    ("caller", "each"),
    [
        (Frame("_EvaluationLoop.run", f"{SITE}lightning/pytorch/loops/evaluation_loop.py", 146), 1),
        (Frame("Trainer._inner_training_loop", f"{SITE}transformers/trainer.py", 2500), 1),
        (Frame("poll", "/home/me/composer/train.py", 9), 0),  # a folder of the user's own
        (Frame("Retrying.__call__", f"{SITE}tenacity/__init__.py", 477), 0),
    ],
)
def test_a_trainers_loop_goes_over_batches_and_a_retry_does_not(caller: Frame, each: int) -> None:
    stack = (MAIN, caller, STEP)
    sites = {(STEP.file, STEP.line): site(39, "time.sleep(0.3)", file=STEP.file)}

    assert called_for_each([stack, stack], sites) is bool(each)


def test_the_users_own_loop_around_the_call_counts_before_a_trainers_further_out() -> None:
    hook = Frame("_call_hook", f"{SITE}lightning/pytorch/trainer/call.py", 329)
    waits = Frame("Upload.wait", "/job/upload.py", 12)
    stack = (MAIN, hook, waits, *own("asks", 20)[1:])
    sites = {
        ("/job/upload.py", 12): site(
            12, "asks()", ("while", "while not done():"), file="/job/upload.py"
        )
    }

    assert not called_for_each([stack, stack], sites)
