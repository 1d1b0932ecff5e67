"""A job is slow for want of processor time only where its ranks are seen to lose time by that."""

from __future__ import annotations

import pytest

from tests.unit.waits.live_rows import job, own, rank, view
from trainprobe.facts import Pressure
from trainprobe.model.facts import Fact


def verdict(*about: Fact, **of_ranks: object) -> str:
    looks = (own("step", 5), own("step", 7), own("step", 5))
    ranks = [
        rank(number, *looks, age_s=0.01, looked_s=8.0, cpu_s=2.0, all_cpu_s=8.0, **of_ranks)
        for number in range(2)
    ]
    return view(job(2), *about, *ranks).verdict


def crowd(**more: object) -> Pressure:
    return Pressure(("E9",), "job", runnable=16, usable_cpus=2.0, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("queued_s", "all_queued_s", "expected"),
    [(0.1, 60.0, "healthy"), (4.0, 60.0, "slow"), (4.0, 2.0, "healthy")],
    ids=["only threads beside the ranks wait", "they take turns", "others crowd the machine"],
)
def test_the_main_threads_must_lose_time_by_threads_of_the_job(
    queued_s: float, all_queued_s: float, expected: str
) -> None:
    assert verdict(crowd(), queued_s=queued_s, all_queued_s=all_queued_s) == expected


@pytest.mark.parametrize(
    ("all_queued_s", "expected"),
    [(2.0, "healthy"), (6.0, "slow")],
    ids=["a thread on each rank", "pools on each rank"],
)
def test_few_threads_are_a_crowd_where_each_rank_has_several(
    all_queued_s: float, expected: str
) -> None:
    few = Pressure(("E9",), "job", runnable=3, usable_cpus=2.0)
    assert verdict(few, queued_s=4.0, all_queued_s=all_queued_s) == expected


@pytest.mark.parametrize(("cpu", "expected"), [(80.0, "slow"), (10.0, "healthy")])
def test_where_the_kernel_counts_no_queue_its_pressure_must_say_the_same(
    cpu: float, expected: str
) -> None:
    assert verdict(crowd(cpu=cpu)) == expected


@pytest.mark.parametrize(("throttled_s", "expected"), [(0.5, "healthy"), (4.0, "slow")])
def test_a_quota_that_is_met_now_and_then_is_no_loss(throttled_s: float, expected: str) -> None:
    group = Pressure(
        ("E9",), "job", scope="cgroup", throttled=5, throttled_s=throttled_s, looked_s=8.0
    )
    assert verdict(group) == expected
