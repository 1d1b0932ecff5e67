"""The truths of the climbs fit their programs; the climbs themselves take minutes each and are
soak tests.
"""

from __future__ import annotations

import ast

import pytest

from tests.gallery.climbs.run import NEEDS, Truth, climbed, held_against, mended_against, truths
from trainprobe import causes

TRUTHS = list(truths().values())
BUILT = {cause.id for cause in causes.built()}


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.name)
def test_a_truth_fits_its_program(truth: Truth) -> None:
    broken, mended = truth.text(mended=False), truth.text(mended=True)

    assert broken != mended
    assert ast.parse(mended).body
    assert set(truth.causes) <= BUILT
    assert truth.heals
    for told in ("trainprobe", "broken", "mended", *truth.causes):
        assert told not in broken, "a program must not name what is wrong with it"


def test_a_report_that_is_wrong_in_everything_is_told_so() -> None:
    report = {
        "verdict": "healthy",
        "causes": [],
        "climb": {
            "smallest_failing": None,
            "healed_by": ["threads=1"],
            "not_healed_by": ["workers=0"],
            "cells_s": 10.0,
        },
    }
    truth = Truth(
        "a", "plain DDP", "", 2, 1000, ("workers=0",), ("threads=1",), ("fd-exhaustion",), ()
    )

    assert len(held_against(truth, report, 12.0).wrong) == 6


def test_three_families_have_two_programs_each() -> None:
    families = [truth.family for truth in TRUTHS]

    assert {families.count(family) for family in families} == {2}
    assert len(set(families)) == 3


@pytest.mark.soak
@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.name)
@pytest.mark.parametrize("mended", [False, True], ids=["broken", "mended"])
def test_the_climb_finds_what_is_true(truth: Truth, *, mended: bool) -> None:
    pytest.importorskip(NEEDS.get(truth.family, "torch"))
    report, took_s = climbed(truth, mended=mended)
    outcome = (mended_against if mended else held_against)(truth, report, took_s)
    assert not outcome.wrong
