"""The probes that import torch, on the CPU with gloo."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.probes.conftest import RunProbe, RunRanks

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="torch is not installed here"
    ),
]

OPERATIONS = {"broadcast", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"}


def test_one_step_on_one_device(run_probe: RunProbe) -> None:
    done = run_probe("single_gpu", "--device", "cpu", "--seconds", "0.05")
    assert (done.exit_code, done.answer) == (0, "yes"), done.output
    errors = done.of("measure", name="step_relative_error")
    assert {one["dtype"] for one in errors} | {
        one["dtype"] for one in done.of("note", name="unsupported")
    } == {"fp32", "bf16", "fp16"}
    assert all(one["value"] <= one["threshold"] for one in errors)
    assert done.of("measure", name="matmul_gflops")[0]["value"] > 0
    assert done.of("measure", name="copy_gb_s")[0]["value"] > 0


@pytest.mark.parametrize("device", ["nonsense", "cuda:77"])
def test_a_device_that_is_not_there(device: str, run_probe: RunProbe) -> None:
    assert run_probe("single_gpu", "--device", device).answer == "cannot"


def test_collectives_are_exact_and_timed(run_ranks: RunRanks) -> None:
    done = run_ranks("gloo_control", "--sizes", "1024,65536", "--repeats", "2")
    assert [one.answer for one in done] == ["yes", "yes"], done[0].output
    assert {one["op"] for one in done[0].of("measure", name="busbw_gbps")} | {
        one["op"] for one in done[0].of("note", name="unsupported")
    } == OPERATIONS
    begun = [one["name"] for one in done[1].of("phase.begin")]
    assert begun[:3] == ["import:torch", "init", "barrier"]
    assert {name.split(":")[0] for name in begun if name.endswith(":65536")} == OPERATIONS
    (wide,) = done[0].of("measure", name="busbw_gbps", op="all_reduce", bytes=65536)
    (took,) = done[0].of("measure", name="took_us", op="all_reduce", bytes=65536)
    assert wide["value"] == pytest.approx(
        65536 / took["value"] / 1e3, rel=0.1, abs=1e-3
    )  # the factor 2(n-1)/n is 1 for two ranks


def test_a_rank_that_never_comes_is_a_failure_and_no_hang(run_ranks: RunRanks) -> None:
    (done,) = run_ranks("gloo_control", "--timeout-s", "2", ranks=(0,))
    assert (done.exit_code, done.answer) == (10, "no")
    (failed,) = done.of("fail")
    assert failed["phase"] == "init"
    assert failed["frames"][-1]["function"]


def test_ddp_agrees_with_one_rank(run_ranks: RunRanks) -> None:
    done = run_ranks("train_step")
    assert [one.answer for one in done] == ["yes", "yes"], done[0].output
    (difference,) = done[1].of("measure", name="ddp_relative_difference")
    assert 0 <= difference["value"] < difference["threshold"]


@pytest.mark.parametrize("name", ["gloo_control", "train_step"])
def test_a_world_of_one_needs_no_launcher(name: str, run_probe: RunProbe) -> None:
    argv = ("--backend", "gloo") if name == "train_step" else ("--sizes", "1024", "--repeats", "1")
    assert run_probe(name, *argv).answer == "yes"


def test_nccl_without_a_gpu_cannot(run_probe: RunProbe) -> None:
    done = run_probe("nccl_collectives", env={"CUDA_VISIBLE_DEVICES": ""})
    assert (done.exit_code, done.answer) == (11, "cannot"), done.output


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU here")
def test_no_gpu_cannot(run_probe: RunProbe) -> None:
    assert run_probe("basic_cuda").answer == "cannot"


def test_loading_at_growing_sizes(run_probe: RunProbe) -> None:
    done = run_probe("scaled_dataset", "--rows", "100,500", "--workers", "0,1")
    assert done.answer == "yes", done.output
    cells = [(one["rows"], one["workers"]) for one in done.of("measure", name="rows_per_s")]
    assert cells == [(100, 0), (500, 0), (100, 1), (500, 1)]
    assert {one["name"] for one in done.of("measure")} == {
        "first_batch_s",
        "took_s",
        "rows_per_s",
        "pss",
        "fds",
        "shm",
    }


def test_loading_with_too_few_descriptors(run_probe: RunProbe) -> None:
    done = run_probe(
        "scaled_dataset",
        "--rows",
        "1000",
        "--workers",
        "0,4",
        "--timeout-s",
        "5",
        shell="ulimit -n 24",
    )
    assert done.answer == "no", done.output
    (failed,) = done.of("fail")
    assert failed["workers"] == 4


SCRIPT = """
import sys, torch
weight = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(weight.parameters(), lr=0.1)
for _ in range(int(sys.argv[1])):
    optimizer.step()
sys.exit(int(sys.argv[2]))
"""


@pytest.mark.parametrize(
    ("argv", "answer"), [(("5", "0"), "yes"), (("0", "0"), "no"), (("5", "7"), "no")]
)
def test_a_script_of_the_users_by_hand(
    argv: tuple[str, str], answer: str, run_probe: RunProbe, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    done = run_probe("user_script", str(script), *argv)
    assert done.answer == answer, done.output
    (ended,) = done.of("note", name="exit")
    assert (ended["optimizer_steps"], ended["code"]) == (int(argv[0]), int(argv[1]))


def test_a_script_that_does_not_exist(run_probe: RunProbe) -> None:
    assert run_probe("user_script", "nowhere.py").answer == "cannot"
