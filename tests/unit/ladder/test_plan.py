"""Which rungs are climbed at which sizes, and the words for those that are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainprobe.errors import UsageError
from trainprobe.ladder.plan import Ask, Rung, rungs_of, sizes_of
from trainprobe.model.probes import ProbeSpec
from trainprobe.targets.interpreter import Interpreter

TORCH = Interpreter(
    "/envs/llm/bin/python", "3.11.4", torch="2.13.0", cuda="12.8", gloo=True, nccl=True
)
BARE = Interpreter(
    "/usr/bin/python3", "3.11.4", reason="/usr/bin/python3 has no torch; install it there"
)
ASK = Ask(
    nproc=4,
    gpus=0,
    gpus_requested=None,
    no_gpu_because="this machine has no NVIDIA GPU",
    form="none",
    interpreter=TORCH,
)
SPECS = (
    ProbeSpec("host", 10, "?"),
    ProbeSpec("gpu_alone", 40, "?", needs=("torch", "gpu")),
    ProbeSpec(
        "gloo", 60, "?", scope="ranks", needs=("torch", "gloo", "ranks>=2"), climbs=("ranks",)
    ),
    ProbeSpec("nccl", 70, "?", scope="ranks", needs=("torch", "gpu", "nccl"), climbs=("ranks",)),
    ProbeSpec("step", 80, "?", scope="ranks", needs=("torch",), climbs=("ranks",)),
    ProbeSpec("user_script", 100, "?", scope="ranks", needs=("script",), climbs=("ranks",)),
)


def by_name(ask: Ask) -> dict[str, Rung]:
    return {rung.spec.name: rung for rung in rungs_of(SPECS, ask)}


@pytest.mark.parametrize(
    ("nproc", "every", "both"),
    [
        (1, (1,), (1,)),
        (2, (1, 2), (1, 2)),
        (4, (1, 2, 4), (1, 4)),
        (6, (1, 2, 4, 6), (1, 6)),
        (64, (1, 2, 4, 8, 16, 32, 64), (1, 64)),
    ],
)
def test_sizes_climb_to_the_whole_world(
    nproc: int, every: tuple[int, ...], both: tuple[int, ...]
) -> None:
    spec = SPECS[-1]

    assert sizes_of(spec, nproc, every_size=True) == every
    assert sizes_of(spec, nproc, every_size=False) == both


def test_a_rung_for_two_ranks_leaves_one_out() -> None:
    assert sizes_of(SPECS[2], 4, every_size=False) == (4,)


def test_without_gpu_and_script_those_rungs_say_why() -> None:
    rungs = by_name(ASK)

    assert (rungs["gpu_alone"].unmet, rungs["gpu_alone"].because) == (
        "gpu",
        "this machine has no NVIDIA GPU",
    )
    assert rungs["nccl"].unmet == "gpu"
    assert (rungs["user_script"].unmet, rungs["user_script"].sizes) == ("script", ())
    assert (rungs["host"].sizes, rungs["gloo"].sizes, rungs["step"].sizes) == ((1,), (4,), (1, 4))


def test_without_torch_its_rungs_are_left_out_with_what_to_install() -> None:
    rungs = by_name(replace(ASK, interpreter=BARE))

    assert (rungs["step"].unmet, rungs["step"].because) == ("torch", BARE.reason)
    assert rungs["gpu_alone"].unmet == "gpu"  # it would not apply with torch either
    assert rungs["host"].unmet == ""


def test_one_rank_has_no_gloo_rung() -> None:
    assert by_name(replace(ASK, nproc=1))["gloo"].unmet == "ranks>=2"


def test_more_ranks_than_gpus_climb_nccl_only_as_far_as_there_are_gpus() -> None:
    rungs = by_name(replace(ASK, gpus=1, nproc=4))

    assert rungs["nccl"].sizes == (1,)
    assert rungs["gpu_alone"].sizes == (1,)


def test_the_command_climbs_by_its_placeholder_or_runs_once() -> None:
    assert by_name(replace(ASK, form="command"))["user_script"].sizes == (1, 2, 4)
    assert by_name(replace(ASK, form="command", sizes_of_command="one"))["user_script"].sizes == (
        4,
    )


def test_only_and_skip() -> None:
    assert {
        name
        for name, rung in by_name(replace(ASK, only=("host", "step"))).items()
        if not rung.because
    } == {"host", "step"}
    assert by_name(replace(ASK, skip=("step",)))["step"].unmet == "asked"


@pytest.mark.parametrize("wrong", [replace(ASK, only=("hots",)), replace(ASK, skip=("hots",))])
def test_a_rung_that_does_not_exist_is_named_with_those_that_do(wrong: Ask) -> None:
    with pytest.raises(UsageError) as caught:
        rungs_of(SPECS, wrong)

    assert "hots" in caught.value.says
    assert caught.value.do == "Did you mean host?"


def test_ranks_and_rows_make_the_cells_of_the_command_alone() -> None:
    rungs = by_name(replace(ASK, form="launch", ranks=(1, 3), rows=(2, 100)))

    assert [rungs["user_script"].name(cell) for cell in rungs["user_script"].cells] == [
        "user_script@1x2",
        "user_script@3x2",
        "user_script@1x100",
        "user_script@3x100",
    ]
    assert [rungs["step"].name(cell) for cell in rungs["step"].cells] == ["step@1", "step@4"]
    assert [cell.rows for cell in by_name(replace(ASK, form="launch"))["user_script"].cells] == [
        None,
        None,
        None,
    ]
