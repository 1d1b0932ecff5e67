"""Who waits for a GPU uses the processor all the while: that says nothing of whether it gets on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.waits.live_rows import ALL_REDUCE, facts_of, job, own, rank, site, view
from trainprobe.facts import Facts, Gpu, GpuProcess, LoopValue
from trainprobe.model.facts import Fact
from trainprobe.stacks.gpu_waits import brings_to_host, is_of_cuda
from trainprobe.waits.activity import Activity, watch_of

LINE = own("step", 7)
ITEM = site(7, "print(f'loss {loss.item():.3f}')")
GPU = Gpu(
    ("E7",),
    "job",
    None,
    index=0,
    utilization_percent=100.0,
    power_w=119.0,
    power_limit_w=700.0,
    processes=(GpuProcess(100),),
)


def spinning(*more: Fact, looks: int = 4, others_s: float = 0.0, **changed: object) -> list[Fact]:
    """Rank 0 on a GPU, at one line in all looks, with all of a CPU."""
    about = {
        "looks": looks,
        "looked_s": 5.3,
        "cpu_s": 5.3,
        "all_cpu_s": 5.3 + others_s,
        "switches": looks,
        "on_gpu": True,
        "syscall": "running",
    }
    return [*more, *rank(0, *[LINE] * looks, state="R", age_s=0.0, **{**about, **changed})]


def activity(facts: list[Fact]) -> Activity:
    known: Facts = facts_of(job(1), facts)
    return watch_of(known, "job").activity(100)


def test_one_place_at_a_busy_gpu_is_a_wait_as_long_as_it_was_looked_at() -> None:
    found = activity(spinning(ITEM, GPU))

    assert (found.kind, found.age_s) == ("still", 5.3)
    assert view(job(1), spinning(ITEM, GPU)).verdict == "hung"


def test_a_thread_of_telemetry_is_no_progress_of_the_one_that_waits() -> None:
    busy = {"others_s": 0.5, "wrote_bytes": 4096, "main_wrote_bytes": 0}
    value = LoopValue(("E8",), "job", 0, 100, 1, "f", "f", "step", (0, 0, 0), reads=3)

    assert activity(spinning(ITEM, GPU, **busy)).kind == "unclear"  # type: ignore[arg-type]
    assert activity(spinning(ITEM, GPU, value, **busy)).kind == "still"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "facts",
    [
        spinning(ITEM, replace(GPU, power_w=500.0)),
        spinning(ITEM, GPU, wrote_bytes=80),
        spinning(ITEM, GPU, switches=300),
        spinning(
            ITEM, GPU, LoopValue(("E8",), "job", 0, 100, 1, "f", "f", "i", (0, 1, 2), reads=3)
        ),
    ],
    ids=["the GPU calculates", "it prints", "it sleeps now and then", "a value moves on"],
)
def test_who_gets_on_is_not_hung(facts: list[Fact]) -> None:
    assert activity(facts).kind == "works"
    assert view(job(1), facts).verdict == "healthy"


def test_a_line_that_does_not_say_so_is_no_proof_of_work_either() -> None:
    plain = site(7, "loss = model(batch)")
    assert activity(spinning(plain, GPU)).kind == "unclear"
    assert view(job(1), spinning(plain, GPU)).verdict == "undetermined"
    idle = replace(GPU, utilization_percent=0.0)
    assert activity(spinning(plain, idle)).kind == "works"  # it computes on the CPU


def test_where_no_collective_runs_on_a_gpu_the_wait_is_for_an_own_kernel() -> None:
    facts = [*spinning(ITEM, GPU), *rank(1, ALL_REDUCE, ALL_REDUCE)]

    found = view(replace(job(2), backend="gloo"), facts)

    assert (found.verdict, found.groups[0].ranks) == ("hung", (0,))


def test_signs_of_a_gpu() -> None:
    assert is_of_cuda("cuda-EvtHandlr")
    assert is_of_cuda("cuda00001400006")
    assert not is_of_cuda("python")
    assert not is_of_cuda("cuda_loader")
    assert brings_to_host("if torch.isfinite(loss).all():")
    assert brings_to_host("x = float(loss)")
    assert not brings_to_host("loss = model(batch)")
