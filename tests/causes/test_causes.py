"""One parametrised test over all fixtures, their completeness, and that a cause wins on its own
ground.
"""

from __future__ import annotations

import pytest

from tests.causes.fixtures import HERE, Fixture, everything, load
from trainprobe import causes
from trainprobe.causes.cause import Cause
from trainprobe.causes.priors import load_priors
from trainprobe.ranking import points_of, rank_group

FIXTURES = everything()
BUILT = {cause.id: cause for cause in causes.built()}
CONFUSIONS = sorted(path.stem for path in (HERE / "_confusions").glob("*.yaml"))
ENOUGH = 13  # points with which a cause is named when nothing rivals it


def points(cause: Cause, fixture: Fixture) -> float:
    """The cause's points on a fixture; minus infinity when it does not compete there or is ruled
    out.
    """
    if fixture.group.mode not in cause.modes:
        return float("-inf")
    weighings = list(cause.weigh(fixture.scene))
    if any(weighing.points == -26 for weighing in weighings) or not any(
        weighing.points > 0 for weighing in weighings
    ):
        return float("-inf")
    return points_of(weighings)


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
def test_a_fixture_says_what_its_cause_must_make_of_it(fixture: Fixture) -> None:
    cause = BUILT[fixture.cause_id]
    weighings = list(cause.weigh(fixture.scene))
    positive = {weighing.family for weighing in weighings if weighing.points > 0}

    if fixture.kind == "fires":
        assert fixture.group.mode in cause.modes
        assert points(cause, fixture) >= ENOUGH, weighings
        assert set(fixture.expect["families"]) <= positive
        assert list(cause.ranks(fixture.scene)) == fixture.expect["ranks"]
        summary = cause.summary(fixture.scene)
        assert all(words in summary for words in fixture.expect["says"]), summary
        fixes = cause.fixes_for(fixture.scene)
        assert fixes
        assert all(fix.steps and all(fix.steps) for fix in fixes)
    elif fixture.kind == "silent":
        if fixture.expect.get("eliminated"):
            assert any(weighing.points == -26 for weighing in weighings), weighings
        else:
            assert not positive, weighings
    else:
        assert not weighings
        assert cause.would_settle


def test_every_built_cause_has_a_fixture_on_which_it_fires() -> None:
    assert {fixture.cause_id for fixture in FIXTURES} == set(BUILT)


@pytest.mark.parametrize("cause_id", sorted(BUILT))
def test_a_cause_is_named_on_its_own_facts(cause_id: str) -> None:
    """Confused pairs must separate: where a cause fires it ends first, by the margin that a name
    needs.
    """
    fixture = load(cause_id, "fires")

    ranked = rank_group(fixture.facts, fixture.group, BUILT.values(), load_priors())

    first = ranked.placed[0]
    assert (first.id, first.named) == (cause_id, True), [
        (place.id, place.points, place.confidence) for place in ranked.placed
    ]
    assert first.summary.endswith((".", "…"))
    assert all(fix.verify for fix in first.fixes)


@pytest.mark.parametrize("name", CONFUSIONS)
def test_a_situation_that_misleads_comes_out_right(name: str) -> None:
    fixture = load("_confusions", name)

    ranked = rank_group(fixture.facts, fixture.group, BUILT.values(), load_priors())

    first = ranked.placed[0]
    assert (first.id, list(first.ranks)) == (fixture.expect["first"], fixture.expect["ranks"]), [
        (place.id, place.points) for place in ranked.placed
    ]


def test_an_exception_steps_back_for_each_cause_that_its_words_name() -> None:
    for cause in BUILT.values():
        if cause.refines == "user-exception":
            fixture = load(cause.id, "fires")
            assert points(BUILT["user-exception"], fixture) < points(cause, fixture), cause.id
