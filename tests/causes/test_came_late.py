"""A rank that comes to a collective after another gave up was at work elsewhere; ranks that fail
together tell nothing of the kind.
"""

from __future__ import annotations

from trainprobe import causes
from trainprobe.causes.collectives.rank0_long_task import came_late
from trainprobe.causes.scene import Scene
from trainprobe.facts import Facts, RankEnding, RankException
from trainprobe.waits import SuspectGroup

GROUP = SuspectGroup(
    "job", "user_script", (), "stuck-inside", "all ranks broke", "crash", world_size=2
)


def raised(rank: int, at: float, echo_of: str) -> RankException:
    return RankException(
        (f"E{rank}",),
        "job",
        rank,
        "RuntimeError",
        "",
        (),
        at,
        "witness",
        echo=bool(echo_of),
        echo_of=echo_of,
    )


def scene(*raisings: RankException) -> Scene:
    return Scene(
        Facts([*raisings, *(RankEnding((), "job", rank, how="exited", code=1) for rank in (0, 1))]),
        GROUP,
    )


def test_a_rank_that_comes_nine_seconds_late_is_named() -> None:
    one = scene(raised(1, 100.0, "peer-timeout"), raised(0, 109.0, "connection-closed"))
    cause = causes.find("rank0-long-task")

    found = came_late(one)
    assert found is not None
    assert (found.ranks, found.after_s) == ((0,), 9.0)
    assert cause.ranks(one) == (0,)  # type: ignore[union-attr] # it is built
    assert "9 s later" in cause.summary(one)  # type: ignore[union-attr]


def test_ranks_that_fail_together_and_a_fault_of_its_own_name_nobody() -> None:
    assert (
        came_late(scene(raised(1, 100.0, "peer-timeout"), raised(0, 100.4, "connection-closed")))
        is None
    )
    assert came_late(scene(raised(1, 100.0, "peer-timeout"), raised(0, 109.0, ""))) is None
    assert (
        came_late(scene(raised(1, 100.0, "peer-timeout"), raised(0, 109.0, "peer-timeout"))) is None
    )
