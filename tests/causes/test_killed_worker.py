"""What to do about a loader worker that died: of itself, or killed from outside."""

from __future__ import annotations

import pytest

from trainprobe.causes.data_loading.data_worker_crash import CAUSE
from trainprobe.causes.scene import Scene
from trainprobe.facts import Facts, RankException
from trainprobe.waits.suspects import SuspectGroup


@pytest.mark.parametrize(
    ("signal", "step"), [("Killed", "killed process"), ("Segmentation fault", "num_workers=0")]
)
def test_a_worker_that_was_killed_did_not_crash(signal: str, step: str) -> None:
    says = f"DataLoader worker (pid 311) is killed by signal: {signal}."
    raised = RankException((), "job", 1, type="RuntimeError", message=says)
    scene = Scene(Facts([raised]), SuspectGroup("job", "", (1,), "failed-first", "", "crash"))

    assert step in str(CAUSE.fixes_for(scene)[0].steps)
