"""The tree of torchrun's --log-dir: stdout and stderr of a rank in files of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.pipelines import explain

ERROR = (
    'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n   '
    " main()\nKeyError: 2\n"
)
STEPS = "loading\nstep 1 loss 3.0\nstep 2 loss 2.0\nstep 3 loss 1.9\n"


def _tree(folder: Path, attempt: int, failed: int) -> None:
    for rank in range(4):
        place = folder / f"attempt_{attempt}" / str(rank)
        place.mkdir(parents=True)
        (place / "stdout.log").write_text(STEPS)
        (place / "stderr.log").write_text(ERROR if rank == failed else "")


def test_steps_in_another_file_do_not_come_after_the_error(tmp_path: Path) -> None:
    _tree(tmp_path / "none_x", 0, failed=2)
    report = explain([str(tmp_path)])
    assert report.verdict == "crashed"
    assert [(cause.id, tuple(cause.ranks)) for cause in report.causes[:1]] == [
        ("user-exception", (2,))
    ]


@pytest.mark.parametrize("last", [1, 3])
def test_each_attempt_has_its_own_failure(tmp_path: Path, last: int) -> None:
    _tree(tmp_path / "none_x", 0, failed=2)
    _tree(tmp_path / "none_x", 1, failed=last)
    report = explain([str(tmp_path)])
    assert {(cause.id, tuple(cause.ranks)) for cause in report.causes if cause.named} == {
        ("user-exception", (2,)),
        ("user-exception", (last,)),
    }


def test_steps_after_the_error_in_its_own_file_show_that_it_was_lived_through(
    tmp_path: Path,
) -> None:
    (tmp_path / "rank_0.log").write_text(
        f"step 1 loss 3.0\n{ERROR}step 2 loss 2.9\nstep 3 loss 2.8\nstep 4 loss 2.7\nTraining"
        " completed\n"
    )
    assert explain([str(tmp_path / "rank_0.log")]).verdict == "healthy"


def test_the_number_of_a_lone_dump_is_no_rank(tmp_path: Path) -> None:
    dump = (
        'Thread 4711 (idle): "MainThread"\n    wait (torch/utils/file_baton.py:42)\n   '
        " _jit_compile (torch/utils/cpp_extension.py:1522)\n    main (fit.py:27)\n"
    )
    (tmp_path / "417.txt").write_text(
        f"Process 4711: python fit.py\nPython v3.11.2 (/opt/py/bin/python3.11)\n\n{dump}",
        encoding="utf-8",
    )

    report = explain([str(tmp_path / "417.txt")])

    assert [suspect.ranks for suspect in report.suspects] == [(0,)]
    assert report.causes[0].id == "extension-build-lock"
