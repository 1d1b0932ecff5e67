"""What steps say of a job's pace: drawn steps, no processes."""

from __future__ import annotations

import random

from trainprobe.supervise.step_times import WARM_UP, StepTimes


class Job:
    """Ranks that wait for each other after every step, on a machine with noise."""

    def __init__(self, ranks: int = 4, seed: int = 0, noise: float = 0.1) -> None:
        self.times, self.chance = StepTimes(), random.Random(seed)
        self.ranks, self.noise, self.step, self.at = ranks, noise, 0, 50.0
        self.cpu = [0.0] * ranks

    def go(self, steps: int, work_s: float = 0.2, late: dict[int, float] | None = None) -> None:
        for _ in range(steps):
            self.step += 1
            took = [
                (work_s + (late or {}).get(rank, 0.0)) * self.chance.lognormvariate(0.0, self.noise)
                for rank in range(self.ranks)
            ]
            self.at += max(took)
            for rank in range(self.ranks):
                self.cpu[rank] += took[rank]
                self.times.add(rank, self.step, self.at, self.cpu[rank])


def test_a_straggler_of_a_fifth_is_found_within_fifty_steps_with_its_first_step() -> None:
    for seed in range(20):
        job = Job(seed=seed)
        job.go(100)
        assert job.times.straggler() is None
        job.go(50, late={2: 0.04})
        found = job.times.straggler()
        assert found is not None, seed
        assert found.rank == 2
        assert 0.1 < found.share < 0.3
        assert 75 <= found.since <= 126


def crowded(seed: int, late_s: float) -> StepTimes:
    """Steps of a job that gets a fifth of its processors; rank 1 works for `late_s` longer."""
    times, chance, at = StepTimes(), random.Random(seed), 50.0
    cpu, busy = [0.0] * 3, [0.0] * 3
    for step in range(60):
        works = [0.1 + (late_s if rank == 1 else 0.0) for rank in range(3)]
        took = [one * chance.lognormvariate(1.6, 0.1) for one in works]
        at += max(took)
        for rank in range(3):
            cpu[rank], busy[rank] = cpu[rank] + works[rank], busy[rank] + took[rank]
            times.add(rank, step, at, cpu[rank], busy[rank])
    return times


def test_a_straggler_on_a_crowded_machine_is_told_by_how_long_it_is_at_work() -> None:
    for seed in range(20):
        found = crowded(seed, 0.025).straggler()
        assert found is not None, seed
        assert found.rank == 1
        assert crowded(seed, 0.0).straggler() is None


def test_balanced_noise_is_no_straggler() -> None:
    false = 0
    for seed in range(20):
        job = Job(seed=100 + seed, noise=0.25)
        for _ in range(50):
            job.go(10)
            false += job.times.straggler() is not None
    assert false <= 1


def test_growing_steps_are_drift_with_their_first_step() -> None:
    job = Job(noise=0.05)
    job.go(200)
    assert job.times.drift() is None
    job.go(60, work_s=0.4)
    found = job.times.drift()
    assert found is not None
    assert found.now_s > 1.8 * found.before_s
    assert 195 <= found.since <= 206


def test_the_first_steps_do_not_count() -> None:
    job = Job()
    job.go(5, work_s=60.0)
    job.go(40)
    assert (job.times.median_s() or 0) < 0.4


def test_steps_that_do_not_count_show_that_a_rank_goes_on() -> None:
    times = StepTimes()
    for step in range(20):
        times.add(1, step, 10.0 + step, 0.0)
    times.add(1, 20, 99.0, 0.0, counts=False)
    assert times.last_at() == 99.0
    assert times.median_s() == 1.0


def test_a_rank_that_is_gone_is_forgotten() -> None:
    job = Job()
    job.go(50)
    for rank in range(4):
        job.times.forget(rank)
    assert (job.times.last_at(), job.times.median_s(), job.times.newest) == (None, None, {})


def test_memory_is_bounded() -> None:
    job = Job(ranks=2)
    job.go(3000)
    assert job.times.count <= 512


def test_all_steps_since_the_warm_up_are_ended_ones() -> None:
    """More than are kept, and those during a look too."""
    times = StepTimes()
    for step in range(600 + WARM_UP):
        times.add(1, step, float(step), 0.0, counts=step % 2 == 0)
    assert (times.ended, times.count < 512) == (600, True)
    times.add(2, 0, 700.0, 0.0)
    assert times.ended == 0, "one rank has only begun"
