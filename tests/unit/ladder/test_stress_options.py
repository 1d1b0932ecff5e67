"""What is said for the model's stress test, on its way from the command line to the probe."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trainprobe.case import Case
from trainprobe.cli.arguments import device_name, whole_number
from trainprobe.config import Settings
from trainprobe.errors import UsageError
from trainprobe.facts import Plan as PlanFact
from trainprobe.facts.reading import read
from trainprobe.ladder import launch
from trainprobe.ladder.cells import Cell
from trainprobe.ladder.plan_evidence import plan_row, write_plan
from trainprobe.ladder.planning import make_plan
from trainprobe.ladder.resuming import check_same
from trainprobe.model.request import DiagnoseRequest

NO_GPU = {"PATH": "/usr/bin", "CUDA_VISIBLE_DEVICES": ""}
REQUEST = DiagnoseRequest(
    nproc=2,
    interpreter=sys.executable,
    only=("model_stress",),
    model="m.py:make",
    sample="m.py:batch",
    device="cpu",
    bench_steps=5,
    fuzz=0,
    seed=7,
)


def test_the_probe_is_told_what_was_typed(tmp_path: Path) -> None:
    plan = make_plan(REQUEST, Settings(), NO_GPU)
    rung = next(one for one in plan.rungs if one.spec.name == "model_stress")
    env = launch.probe(plan, rung, Cell(1), str(tmp_path), 240.0).specs[0].env
    told = {
        name: env[f"TRAINPROBE_{name}"]
        for name in ("MODEL", "SAMPLE", "DEVICE", "BENCH_STEPS", "FUZZ", "SEED")
    }
    assert told == {
        "MODEL": "m.py:make",
        "SAMPLE": "m.py:batch",
        "DEVICE": "cpu",
        "BENCH_STEPS": "5",
        "FUZZ": "0",
        "SEED": "7",
    }


def test_what_was_not_typed_is_left_to_the_probe(tmp_path: Path) -> None:
    plan = make_plan(
        DiagnoseRequest(nproc=1, interpreter=sys.executable, model="m.py:make"), Settings(), NO_GPU
    )
    rung = next(one for one in plan.rungs if one.spec.name == "model_stress")
    env = launch.probe(plan, rung, Cell(1), str(tmp_path), 240.0).specs[0].env
    assert {env[f"TRAINPROBE_{name}"] for name in ("SAMPLE", "BENCH_STEPS", "FUZZ", "SEED")} == {""}


def test_the_plan_of_the_case_holds_it(tmp_path: Path) -> None:
    case = Case.create(str(tmp_path / "case"), "diagnose", ())
    write_plan(make_plan(REQUEST, Settings(), NO_GPU), case)
    plan = read(case.evidence).one(PlanFact)
    assert plan is not None
    assert (plan.sample, plan.device, plan.bench_steps, plan.fuzz, plan.seed) == (
        "m.py:batch",
        "cpu",
        5,
        0,
        7,
    )


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (DiagnoseRequest(nproc=2, device="cuda"), "--device cuda was asked for, but "),
        (
            DiagnoseRequest(sample="m.py:batch"),
            "--sample is for the stress test of a model, but no --model was given",
        ),
        (DiagnoseRequest(fuzz=0), "--fuzz is for the stress test"),
        (DiagnoseRequest(seed=3), "--seed is for the stress test"),
        (DiagnoseRequest(bench_steps=3), "--bench-steps is for the stress test"),
    ],
)
def test_what_cannot_be_is_one_sentence(request_: DiagnoseRequest, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        make_plan(request_, Settings(), NO_GPU)
    assert caught.value.do


@pytest.mark.parametrize(("text", "device"), [(None, ""), ("cpu", "cpu"), (" CUDA ", "cuda")])
def test_devices(text: str | None, device: str) -> None:
    assert device_name(text) == device


@pytest.mark.parametrize("text", ["", "gpu", "cuda:1", "mps", "c" * 5000])
def test_other_devices_are_one_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="--device needs cpu or cuda") as caught:
        device_name(text)
    assert len(str(caught.value)) < 200


def test_no_configurations_may_be_asked_for() -> None:
    assert whole_number("--fuzz", "0", least=0) == 0
    with pytest.raises(UsageError, match="from 0 to "):
        whole_number("--fuzz", "-1", least=0)


def case_with(tmp_path: Path, request_: DiagnoseRequest, *, answered: bool) -> Case:
    case = Case.create(str(tmp_path / "case"), "diagnose", ())
    write_plan(make_plan(request_, Settings(), NO_GPU), case)
    if answered:
        case.add(
            "rung",
            cell="model_stress@1",
            source="ladder",
            data={"probe": "model_stress", "outcome": "failed", "nproc": 1},
        )
    return case


def test_an_answer_about_one_sample_is_none_about_another(tmp_path: Path) -> None:
    case = case_with(tmp_path, REQUEST, answered=True)
    check_same(make_plan(REQUEST, Settings(), NO_GPU), case)
    other = make_plan(DiagnoseRequest(**{**vars(REQUEST), "seed": 8}), Settings(), NO_GPU)
    with pytest.raises(UsageError, match="tested the model with another seed: 7"):
        check_same(other, case)


def test_what_has_no_answer_yet_may_be_asked_in_another_way(tmp_path: Path) -> None:
    case = case_with(tmp_path, REQUEST, answered=False)
    other = make_plan(
        DiagnoseRequest(**{**vars(REQUEST), "sample": "m.py:other"}), Settings(), NO_GPU
    )
    check_same(other, case)
    assert plan_row(other)["sample"] == "m.py:other"
