"""The stress test's findings as groups: one for each property, what explains others first, each
with its own cause, place and fix.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainprobe.causes import built
from trainprobe.causes.model_stress import advice
from trainprobe.causes.priors import load_priors
from trainprobe.facts.rows import facts_from_rows
from trainprobe.judge import judge
from trainprobe.model.diagnosis import Diagnosis
from trainprobe.waits import suspect_groups

CELL = "model_stress@1"
OWN = {
    "shape": "model-shape-fault",
    "mask": "model-mask-fault",
    "tied": "tied-weights-lost",
    "precision": "precision-fault",
    "state": "state-dict-mismatch",
    "resume": "resume-mismatch",
    "ranks": "multi-rank-mismatch",
    "unused": "ddp-unused-parameters",
    "evaluation": "eval-not-deterministic",
    "config": "model-config-fault",
    "gradient": "nan-loss",
}


def rows(*found: dict[str, Any], outcome: str = "failed") -> list[dict[str, Any]]:
    """A climb of this one rung with findings: name, where, what, and what else the event says."""
    facts: list[dict[str, Any]] = [
        {
            "Plan": {
                "command": "diagnose",
                "nproc": 2,
                "model": "net.py:make",
                "sample": "net.py:batch",
                "seed": 3,
                "probes": ["model_stress"],
            }
        },
        {
            "Rung": {
                "cell": CELL,
                "rung": 88,
                "probe": "model_stress",
                "nproc": 1,
                "outcome": outcome,
                "says": "6/7 suites passed",
            }
        },
    ]
    for number, one in enumerate(found):
        labels: dict[str, Any] = {
            "suite": "any",
            **{name: one[name] for name in ("what", "where", "module") if name in one},
        }
        seen = {"probe": "model_stress", "cell": CELL, "evidence": [f"E{number}"]}
        details = {**labels, "property": one["name"], **one.get("details", {})}
        facts.append(
            {
                "Measured": {
                    **seen,
                    "name": one["name"],
                    "value": one.get("value", 0.5),
                    "threshold": 0.001,
                    "labels": labels,
                }
            }
        )
        facts.append(
            {
                "ProbeFailure": {
                    **seen,
                    "says": one.get("says", f"{one['name']} does not hold."),
                    "details": details,
                }
            }
        )
    return facts


def judged(*found: dict[str, Any], outcome: str = "failed") -> Diagnosis:
    return judge(facts_from_rows(rows(*found, outcome=outcome)), built(), load_priors())


@pytest.mark.parametrize("name", OWN)
def test_each_property_is_the_cause_s_own(name: str) -> None:
    found = judged({"name": f"{name}.anything", "what": "module", "where": "layers.1.attn"})
    first = found.causes[0]
    assert (found.verdict, first.id, first.named) == ("at-risk", OWN[name], True)
    assert first.confidence >= 0.9
    assert "layers.1.attn" in first.summary
    assert all(
        one.verify.startswith(
            "trainprobe diagnose --nproc 2 --only model_stress --model net.py:make --sample"
            " net.py:batch"
        )
        for one in first.fixes
    )


def test_two_faults_are_two_groups_each_with_its_own_first_place() -> None:
    found = judged(
        {"name": "mask.ignored", "what": "module", "where": "layers.1.attn"},
        {"name": "tied.after_load", "what": "parameter", "where": "head.weight"},
    )
    firsts = [next(cause for cause in found.causes if cause.group == group) for group in (0, 1)]
    assert [(cause.id, cause.named) for cause in firsts] == [
        ("model-mask-fault", True),
        ("tied-weights-lost", True),
    ]
    assert [suspect.extra["findings"][0]["where"] for suspect in found.suspects] == [
        "layers.1.attn",
        "head.weight",
    ]
    assert "head.weight" not in firsts[0].summary
    assert {evidence for weighing in firsts[1].because for evidence in weighing.evidence} == {"E1"}


@pytest.mark.parametrize(
    ("found", "order"),
    [
        ([("resume.loss", ""), ("state.not_saved", "norm.mean")], ["state", "resume"]),
        (
            [("ranks.loss", ""), ("mask.padding", "layers.0"), ("shape.rows_mixed", "layers.0")],
            ["shape", "mask", "ranks"],
        ),
        (
            [("precision.tolerance", "layers.0"), ("evaluation.difference", "mix")],
            ["evaluation", "precision"],
        ),
        ([("state.differs", "head.weight"), ("tied.after_load", "head.weight")], ["tied", "state"]),
        ([("config.fails", ""), ("shape.raises", "")], ["shape", "config"]),
        (
            [("precision.tolerance", "Tagger"), ("tied.after_load", "head.weight")],
            ["tied", "precision"],
        ),
    ],
)
def test_what_explains_others_comes_first(found: list[tuple[str, str]], order: list[str]) -> None:
    facts = facts_from_rows(
        rows(
            *(
                {"name": name, "what": "module" if where else "", "where": where}
                for name, where in found
            )
        )
    )
    groups = suspect_groups(facts)
    assert [group.stressed.property for group in groups if group.stressed] == order
    assert groups[0].chain == ()
    assert groups[1].chain[0].how == "may follow from"


def test_what_may_follow_from_another_is_told_weaker_and_still_named() -> None:
    found = judged(
        {"name": "resume.loss", "what": "loss", "where": "step 3"},
        {"name": "state.not_saved", "what": "buffer", "where": "norm.mean"},
    )
    root, echo = found.causes[:2]
    assert [(cause.id, cause.named) for cause in (root, echo)] == [
        ("state-dict-mismatch", True),
        ("resume-mismatch", True),
    ]
    assert root.confidence > echo.confidence


def test_parts_that_have_nothing_to_do_with_each_other_explain_nothing() -> None:
    apart = rows(
        {"name": "state.not_saved", "what": "buffer", "where": "norm.mean"},
        {"name": "resume.parameter", "what": "parameter", "where": "head.weight"},
    )
    assert [group.chain for group in suspect_groups(facts_from_rows(apart))] == [(), ()]


def test_a_finding_with_a_place_speaks_before_one_without() -> None:
    found = judged(
        {"name": "precision.tolerance", "says": "The loss differs."},
        {"name": "precision.overflow", "what": "module", "where": "layers.0.mlp"},
    )
    assert len(found.suspects) == 1
    assert "layers.0.mlp" in found.causes[0].summary
    assert "Beside it: precision.tolerance" in found.causes[0].summary


def test_what_died_later_is_told_before_what_was_found() -> None:
    found = judged(
        {"name": "mask.ignored", "what": "module", "where": "layers.1.attn"}, outcome="timed_out"
    )
    assert found.verdict == "hung"
    assert "model-mask-fault" in [cause.id for cause in found.causes if cause.named]


def test_a_number_that_is_held_against_nothing_is_no_finding() -> None:
    facts = [
        *rows(outcome="failed"),
        {
            "Measured": {
                "cell": CELL,
                "probe": "model_stress",
                "name": "mask.batches",
                "value": 12,
                "labels": {"suite": "masks"},
            }
        },
    ]
    found = judge(facts_from_rows(facts), built(), load_priors())
    assert found.causes[0].id == "unknown"


def test_lines_of_suites_stand_in_the_row_of_the_ladder() -> None:
    told = [
        ("masks", "failed", "masks: failed, 0.3 in layers.1.attn"),
        ("tying", "skipped", "tying: skipped, nothing is tied"),
        ("odd", "passed", "odd: passed"),
    ]
    checks = [
        {
            "HostCheck": {
                "cell": CELL,
                "probe": "model_stress",
                "name": f"stress.{name}",
                "says": says,
                "value": json.dumps({"state": state, "took_s": 1.5}),
            }
        }
        for name, state, says in told
    ]
    found = rows(
        {
            "name": "mask.ignored",
            "what": "module",
            "where": "layers.1.attn",
            "details": {"suite": "masks"},
        }
    )
    row = judge(facts_from_rows([*found, *checks]), built(), load_priors()).ladder[0]
    assert [(one["name"], one["outcome"], one["says"]) for one in row.extra["suites"]] == [
        ("masks", "failed", "mask.ignored in layers.1.attn"),
        ("tying", "skipped", "nothing is tied"),
    ]


@pytest.mark.parametrize("key", sorted(advice()))
def test_every_fix_can_be_typed_or_changed(key: str) -> None:
    name, _, what = key.partition(":")
    one = {
        "name": name if "." in name else f"{name}.other",
        "what": what or "module",
        "where": "layers.1.attn.scale",
    }
    fixes = judged(one).causes[0].fixes
    assert fixes
    for made in fixes:
        assert made.title
        assert made.steps
        assert all(step and "{where}" not in step and "{{" not in step for step in made.steps)
    assert any(
        "attn" in text or "scale" in text for made in fixes for text in (made.title, *made.steps)
    ) or not name.startswith(("mask", "precision"))


def test_nonsense_in_findings_harms_nobody() -> None:
    deep: Any = []
    for _ in range(50):
        deep = [deep]
    odd = {
        "name": "mask.ignored",
        "details": {"what": 7, "where": deep, "frames": "none", "type": None, "message": deep},
    }
    facts = [
        *rows(odd),
        {
            "HostCheck": {
                "cell": CELL,
                "probe": "model_stress",
                "name": "stress.masks",
                "value": "[" * 5000,
            }
        },
    ]
    facts.append(
        {
            "HostCheck": {
                "cell": CELL,
                "probe": "model_stress",
                "name": "stress.fuzz",
                "value": '{"state": "passed", "took_s": NaN}',
            }
        }
    )
    found = judge(facts_from_rows(facts), built(), load_priors())
    assert found.causes[0].id == "model-mask-fault"
    assert found.ladder[0].extra["suites"][0]["took_s"] == 0.0


def test_a_rounding_between_ranks_is_told_under_the_cast_that_makes_it() -> None:
    cast = {"name": "precision.cast", "what": "module", "where": "norm"}
    echo = {"name": "ranks.loss", "what": "loss", "where": "loss"}
    small, large = (judged(cast, {**echo, "value": value}) for value in (2e-4, 0.2))
    assert [one.id for one in small.causes] == ["precision-fault"]
    assert "ranks.loss" in small.causes[0].summary
    assert [one.id for one in large.causes] == ["precision-fault", "multi-rank-mismatch"]


def test_the_verdict_says_what_was_left_unasked() -> None:
    facts = rows(outcome="passed")
    facts += [
        {
            "HostCheck": {
                "probe": "model_stress",
                "cell": CELL,
                "name": f"stress.{name}",
                "status": "unknown" if state == "skipped" else "ok",
                "value": json.dumps({"state": state, "took_s": 0.1}),
                "says": f"{name}: {state}, {says}",
                "evidence": ["E9"],
            }
        }
        for name, state, says in (
            ("masks", "skipped", "no axis of the batch counts positions"),
            ("shapes", "passed", "9 sizes"),
        )
    ]
    facts.append({"ProbeResult": {"probe": "model_stress", "cell": CELL, "answer": "yes"}})
    found = judge(facts_from_rows(facts), built(), load_priors())
    assert found.verdict == "healthy"
    assert "Not asked of the model: masks (no axis of the batch counts positions)." in found.says
