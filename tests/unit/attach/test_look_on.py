"""How long a visit looks on, by what its looks have shown."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from trainprobe.attach import visit
from trainprobe.attach.pace import Pace
from trainprobe.stacks.arrivals import Arrivals


def late(rounds: int) -> Arrivals:
    """Rank 1 is last in all rounds, and the other waits for it most of the time."""
    return Arrivals((0, 1), 2.0, {0: 0, 1: rounds}, {1: 1.8}, inside_s={0: 1.8, 1: 0.0})


@pytest.mark.parametrize(
    ("shows", "spans"),
    [
        ([Arrivals((0, 1), 2.0, {0: 3, 1: 3}, {0: 0.2, 1: 0.2})], 1),
        ([late(6)], 1),
        ([late(2), late(5)], 2),
        ([late(0), late(1), late(1)], 3),
    ],
    ids=["in turns", "settled at once", "settled by more", "never settled"],
)
def test_samples_go_on_while_one_rank_seems_late(shows: list[Arrivals], spans: int) -> None:
    notes: list[str] = []
    left = iter(shows)
    one = SimpleNamespace(
        pace=Pace(),
        clock=SimpleNamespace(left_s=30.0),
        progress=SimpleNamespace(note=notes.append),
        _hurry=lambda: False,
        _arrivals=lambda _: next(left),
    )

    visit.Visit._sample(one)  # type: ignore[arg-type] # all that it asks of a visit

    assert len(notes) == spans
    assert all("sampling them for" in note for note in notes)
