"""What a symptom may mean besides: listed, weak, and never in the way of a cause that is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe import causes
from trainprobe.causes.neighbours import LISTED, symptoms
from trainprobe.causes.scene import Scene
from trainprobe.facts import Facts, LogJob
from trainprobe.pipelines import explain
from trainprobe.waits import SuspectGroup

BUILT = {cause.id: cause for cause in causes.built()}
JOB = LogJob(("E1",), "job", world_size=2)


def logged(tmp_path: Path, *lines: str) -> list[str]:
    path = tmp_path / "train.log"
    path.write_text("\n".join(lines) + "\n")
    return [cause.id for cause in explain([str(path)]).causes]


@pytest.mark.parametrize("symptom", symptoms(), ids=lambda symptom: symptom.id)
def test_every_neighbour_is_a_cause_with_a_reason(symptom: object) -> None:
    told = symptom.causes  # type: ignore[attr-defined]
    assert set(told) <= set(BUILT)
    assert all(reason and not reason.endswith(".") for reason in told.values())


@pytest.mark.parametrize(
    "cause_id", sorted({cause_id for symptom in symptoms() for cause_id in symptom.causes})
)
@pytest.mark.parametrize("mode", ["crash", "hang"])
def test_a_cause_of_which_nothing_was_seen_can_still_say_whose_it_is(
    cause_id: str, mode: str
) -> None:
    group = SuspectGroup("job", "job", (1,), "failed-first", "rank 1 failed", mode, world_size=2)  # type: ignore[arg-type]

    assert set(BUILT[cause_id].ranks(Scene(Facts([JOB]), group))) <= {0, 1}


@pytest.mark.parametrize(
    ("line", "near"),
    [
        (
            "ImportError: cannot import name 'foo' from 'bar' (/opt/bar/__init__.py)",
            {"import-failure", "library-version-conflict", "import-path"},
        ),
        (
            (
                "RuntimeError: The size of tensor a (4) must match the size of tensor b (5) at"
                " non-singleton dimension 1"
            ),
            {"user-exception", "model-shape-fault"},
        ),
        ("RuntimeError: std::bad_alloc", {"host-oom-killed", "address-space-limit"}),
        (
            "RuntimeError: DataLoader worker (pid 4242) exited unexpectedly with exit code 1",
            {"data-worker-crash", "shm-exhausted"},
        ),
        ("Segmentation fault (core dumped)", {"native-crash", "abi-mismatch"}),
        ("Killed", {"host-oom-killed", "model-load-memory", "rank-killed"}),
    ],
)
def test_the_first_places_hold_what_the_symptom_may_mean(
    tmp_path: Path, line: str, near: set[str]
) -> None:
    found = logged(tmp_path, "loading the model", line)

    assert near <= set(found[: LISTED + 1]), found


def test_a_shown_cause_keeps_its_name_and_its_confidence(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        'Traceback (most recent call last):\n  File "/job/train.py", line 8, in main\n    loss ='
        " table[label]\nKeyError: 'label'\n"
    )

    found = explain([str(path)]).causes

    assert (found[0].id, found[0].named) == ("user-exception", True)
    assert found[0].confidence >= 0.9
    assert all(
        cause.confidence < 0.05 and not cause.named and cause.because and cause.fixes
        for cause in found[1:]
    )
    assert sum(cause.confidence for cause in found) <= 1.0


def test_a_healthy_log_has_no_neighbours(tmp_path: Path) -> None:
    assert (
        logged(tmp_path, *(f"step {step}/9 loss 1.0" for step in range(10)), "training finished")
        == []
    )
