"""A few kinds of the live gallery, each at two ranks through the real tool; the whole of it is
`make accuracy`.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from tests.gallery.live.kinds import KINDS, Planned
from tests.gallery.live.replay import judged, line_of
from tests.gallery.live.run import one_run

pytestmark = [pytest.mark.torch, pytest.mark.slow]
TWICE = Planned("barrier_in_save", 0, 2, "loud", "bare", 0, 10, 4)
RUNS = [
    Planned("flock_cache", 0, 2, "masked", "torchrun", 1, 7, 4),
    Planned("rank_stopped", 0, 2, "loud", "torchrun", 1, 20, 4),
    Planned("workers", 0, 2, "quiet", "torchrun", 0, 25, 4),
]


@pytest.mark.parametrize("run", RUNS, ids=[run.kind for run in RUNS])
def test_a_live_job_is_judged_right_and_left_alone(run: Planned, tmp_path: Path) -> None:
    from tests.gallery.live.score import outcome_of

    result = one_run(run, tmp_path, deep_runs=0)
    assert "error" not in result, result["error"]
    assert outcome_of(result) == "right", (
        line_of({**result, "outcome": "missed"}) + f"\n{result['says']}"
    )
    assert (result["left"], result["stopped"], result["pids_gone"]) == ([], [], [])
    assert (tmp_path / f"{run.key}.xz").stat().st_size < 40_000
    assert KINDS[run.kind].cause in (
        "none",
        result["causes"][0]["id"] if result["causes"] else "none",
    )


def test_a_second_look_asks_the_other_analyzer_as_well(tmp_path: Path) -> None:
    result = one_run(TWICE, tmp_path, deep_runs=1)
    assert "error" not in result, result["error"]
    assert (result["deep"]["exit"], result["left"], result["stopped"], result["pids_gone"]) == (
        result["exit"],
        [],
        [],
        [],
    )
    answers = json.loads(
        lzma.decompress((tmp_path / f"{TWICE.key}.deep.xz").read_bytes()).split(b"\n")[0]
    )["torchfrtrace"]
    assert answers["dumps"] == [0, 1]
    assert answers["as_written"]["outcome"] in ("crashed", "blamed", "nobody"), answers
    assert answers["groups_named"]["outcome"] in ("blamed", "nobody"), answers
    again = judged(tmp_path / f"{TWICE.key}.xz")
    assert (again["outcome"], again["deep"]["outcome"], again["then"]) == (
        "right",
        "right",
        "right",
    ), line_of(again)
    assert again["guesses"]["torchfrtrace"] == answers["as_written"]["ranks"]
