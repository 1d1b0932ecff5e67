"""Points, families, decisive evidence, refinement, and when a cause is named."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainprobe.causes.cause import Cause
from trainprobe.causes.priors import load_priors
from trainprobe.facts import Facts, LogJob
from trainprobe.model.diagnosis import Family, Weighing
from trainprobe.ranking import confidences, points_of, rank_group
from trainprobe.waits import SuspectGroup

GROUP = SuspectGroup(
    "user_script@2",
    "user_script",
    (1,),
    "never-joined",
    "rank 1 did not join",
    "hang",
    world_size=2,
)


def weighing(points: int, family: Family = "suspects-stack") -> Weighing:
    return Weighing(points, family, f"{points} points of {family}")


def cause(id_: str, *weighings: Weighing, refines: str = "") -> Cause:
    return Cause(
        id=id_,
        title=id_,
        means="",
        telling="",
        modes=("hang",),
        weigh=lambda *_: weighings,
        summary=lambda *_: id_,
        fixes=lambda *_: (),
        would_settle=f"look closer at {id_}",
        refines=refines,
    )


def test_within_a_family_only_the_strongest_counts() -> None:
    assert points_of([weighing(10), weighing(6), weighing(3)]) == 10
    assert points_of([weighing(10), weighing(-6)]) == 4


def test_families_add_up_and_are_clipped() -> None:
    assert points_of([weighing(13), weighing(13, "source"), weighing(-3, "gpu")]) == 23


def test_decisive_evidence_is_not_clipped() -> None:
    assert points_of([weighing(26), weighing(6, "source")]) == 32


def test_an_odd_number_of_points_is_refused() -> None:
    with pytest.raises(ValueError, match="is not one of"):
        weighing(7)


def test_no_evidence_is_unknown_with_the_suspects_ranks() -> None:
    ranked = rank_group(Facts(), GROUP, [cause("a"), cause("b", weighing(-6))], load_priors())

    assert [(placed.id, placed.ranks, placed.named) for placed in ranked.placed] == [
        ("unknown", (1,), False)
    ]


def test_a_strong_cause_is_named_and_unknown_is_not_shown() -> None:
    ranked = rank_group(
        Facts(), GROUP, [cause("a", weighing(13), weighing(13, "source"))], load_priors()
    )

    assert [placed.id for placed in ranked.placed] == ["a"]
    assert ranked.placed[0].named
    assert ranked.placed[0].confidence >= 0.9


def test_two_equal_causes_leave_it_unknown_and_say_what_would_settle_it() -> None:
    ranked = rank_group(
        Facts(), GROUP, [cause("a", weighing(13)), cause("b", weighing(13))], load_priors()
    )

    assert ranked.placed[0].id == "unknown"
    assert {row.id for row in ranked.undecided} == {"a", "b"}


def test_a_decisive_contradiction_eliminates_and_is_said() -> None:
    ranked = rank_group(
        Facts(), GROUP, [cause("a", weighing(13), weighing(-26, "exit-status"))], load_priors()
    )

    assert ranked.placed[0].id == "unknown"
    assert [(row.id, row.why) for row in ranked.ruled_out] == [("a", "-26 points of exit-status")]


def test_the_more_specific_cause_stands_for_the_one_that_it_refines() -> None:
    general, special = (
        cause("general", weighing(26)),
        cause("special", weighing(13), refines="general"),
    )

    ranked = rank_group(Facts(), GROUP, [general, special], load_priors())

    assert ranked.placed[0].id == "special"
    assert ranked.placed[0].named


def test_a_refinement_without_evidence_of_its_own_does_not_take_over() -> None:
    ranked = rank_group(
        Facts(),
        GROUP,
        [cause("general", weighing(26)), cause("special", weighing(3), refines="general")],
        load_priors(),
    )

    assert ranked.placed[0].id == "general"


def test_a_cause_of_another_mode_does_not_compete() -> None:
    check = SuspectGroup("host@1", "host", (), "failed-first", "", "check")

    assert (
        rank_group(Facts(), check, [cause("a", weighing(26))], load_priors()).placed[0].id
        == "unknown"
    )


@given(st.lists(st.floats(-60, 60), min_size=1, max_size=12), st.floats(0.5, 4))
def test_confidences_are_a_distribution_in_the_order_of_points(
    points: list[float], temperature: float
) -> None:
    shares = confidences(points, temperature)

    assert math.isclose(sum(shares), 1.0, abs_tol=1e-9)
    assert (
        shares.index(max(shares)) == points.index(max(points))
        or max(points) - points[shares.index(max(shares))] < 1e-9
    )


def test_of_a_log_the_confidence_is_that_of_such_answers_and_the_order_stays() -> None:
    causes = [cause("one", weighing(13)), cause("two", weighing(3, "exit-status"))]
    plain, logged = (
        rank_group(facts, group, causes, load_priors()).placed
        for facts in (Facts(()), Facts((LogJob((), "cell", None),)))
        for group in [SuspectGroup("cell", "job", (), "stuck-inside", "It stopped", "hang")]
    )

    assert [one.id for one in plain] == [one.id for one in logged]
    assert plain[0].named
    assert logged[0].named
    assert plain[0].confidence < logged[0].confidence < 0.8
    assert sum(one.confidence for one in logged) <= 1.0


def test_a_special_cause_that_something_speaks_against_stands_for_itself_alone() -> None:
    against = Weighing(-13, "source", "a call that the others left out")
    special = cause(
        "special", weighing(10), weighing(6, "other-stacks"), against, refines="general"
    )
    general = cause("general", weighing(13), weighing(10, "source"))

    ranked = rank_group(Facts(), GROUP, [general, special], load_priors())

    assert ranked.placed[0].id == "general"
    kept = cause("special", weighing(10), weighing(6, "other-stacks"), refines="general")
    assert rank_group(Facts(), GROUP, [general, kept], load_priors()).placed[0].id == "special"
