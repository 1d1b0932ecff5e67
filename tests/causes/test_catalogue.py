"""The catalogue as a whole: built against planned, pages, refinement, priors and the levels at
which a cause is named.
"""

from __future__ import annotations

import re

import pytest

from trainprobe import causes
from trainprobe.causes.priors import SPREAD, load_priors, parse
from trainprobe.ranking import NAMED_MARGIN_POINTS, confidences

BUILT = {cause.id: cause for cause in causes.built()}


def test_built_and_planned_are_disjoint_and_know_their_family() -> None:
    planned = {cause.id: cause for cause in causes.planned()}

    assert not set(BUILT) & set(planned)
    assert len(planned) == len(causes.planned())
    assert {causes.family_of(cause_id) for cause_id in (*BUILT, *planned)} == set(causes.FAMILIES)
    assert all(cause.means and cause.telling and cause.usual_fix for cause in planned.values())


def test_find_knows_both_and_nothing_else() -> None:
    assert causes.find("rank-stuck") is BUILT["rank-stuck"]
    assert isinstance(causes.find("cannot-look"), causes.Planned)
    assert causes.find("nccl-timeout") is None
    assert causes.family_of("nccl-timeout") == ""


@pytest.mark.parametrize("cause_id", sorted(BUILT))
def test_a_cause_tells_its_story(cause_id: str) -> None:
    cause = BUILT[cause_id]
    page = causes.page(cause_id)

    assert page.count("\n\n") >= 2, "what happens, then how it is recognised"
    assert "recognised" in page
    assert all((cause.title, cause.means, cause.would_settle, cause.modes))
    if cause.refines:
        assert cause.refines in BUILT
        assert set(cause.modes) & set(BUILT[cause.refines].modes)
    if cause.wording:
        re.compile(cause.wording)


def test_a_prior_covers_every_mode_of_its_cause_and_is_0_where_there_is_none() -> None:
    priors = load_priors()

    assert set(priors.causes) <= set(BUILT)
    for cause_id, prior in priors.causes.items():
        assert set(prior.points) == set(BUILT[cause_id].modes), cause_id
    assert priors.prior("a-plugin's-own", "hang") == 0


def test_the_levels_hold_for_every_prior() -> None:
    """No evidence leaves `unknown` first, one piece of 10 points names nothing, one of 13 does."""
    priors = load_priors()
    for cause_id, cause in BUILT.items():
        for mode in cause.modes:
            prior = priors.prior(cause_id, mode)
            assert prior < priors.unknown
            assert prior + 10 - priors.unknown < NAMED_MARGIN_POINTS
            assert prior + 13 - priors.unknown >= NAMED_MARGIN_POINTS
    assert confidences([13 - 1, priors.unknown], priors.temperature)[0] >= 0.6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "levels"),
        ("levels: {unknown: 6}\ncauses: {}", "temperature"),
        ("levels: {unknown: 6, temperature: 0}\ncauses: {}", "above 0"),
        ("levels: {unknown: 6, temperature: 1}\ncauses: {a: {hang: 1}}", "source"),
        ("levels: {unknown: 6, temperature: 1}\ncauses: {a: {hang: x, source: y}}", "number"),
        (
            (
                "levels: {unknown: 6, temperature: 1}\ncauses: {a: {hang: 0, crash:"
                f" {SPREAD + 1}, source: y}}}}"
            ),
            "spread",
        ),
    ],
)
def test_broken_priors_say_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse(text)
