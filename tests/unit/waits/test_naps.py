"""How long a rank has waited is told where that means something."""

from __future__ import annotations

import pytest

from trainprobe.model.diagnosis import Verdict
from trainprobe.waits.situation import Situation
from trainprobe.waits.standings import Standing


@pytest.mark.parametrize(
    ("verdict", "times"), [("healthy", [None, 12.0]), ("hung", [3.5, 12.0]), ("slow", [3.5, 12.0])]
)
def test_the_nap_of_a_rank_that_goes_on_has_no_age(
    verdict: Verdict, times: list[float | None]
) -> None:
    ranks = (Standing(0, "waiting", since_s=3.5), Standing(1, "waiting", since_s=12.0))
    situation = Situation(
        "job", verdict, conclusive=True, says="", ranks=ranks, waits_for={1: "rank 0"}
    )
    assert [row.since_s for row in situation.world.ranks] == times
