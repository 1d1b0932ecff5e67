"""How fast a job says that it goes."""

from __future__ import annotations

import pytest

from trainprobe.facts.printed_pace import pace_of


def lines(*paces: float, form: str) -> list[str]:
    return [form.format(step=10 * number, pace=pace) for number, pace in enumerate(paces)]


SLOWER = (0.9, 0.4, 0.1, 0.11, 0.1, 0.11, 0.4, 0.4, 0.4, 0.4)


@pytest.mark.parametrize(
    ("form", "now"),
    [
        ("step {step} | loss 5.44 | {pace:.2f} s/step", "0.40 s/step"),
        ("(epoch: 1, iters: {step}, time: {pace:.3f}) G: 0.77", "time: 0.400"),
        ("12:00:01 step {step} loss 0.1 took {pace:.2f}s lr 0.001", "took 0.40s"),
    ],
)
def test_the_column_of_a_time_is_found_and_compared(form: str, now: str) -> None:
    found = pace_of(lines(*SLOWER, form=form))

    assert found is not None
    times, _, words = found
    assert 3.5 < times < 4.1
    assert words == now


def test_a_rate_counts_as_its_inverse() -> None:
    found = pace_of(lines(*(1 / pace for pace in SLOWER), form="step {step} {pace:.2f} it/s"))

    assert found is not None
    assert 3.5 < found[0] < 4.1


def test_a_clock_that_only_rises_counts_by_its_differences() -> None:
    even = [f"[{2.5 * number:7.1f}s] epoch 0 step {number} loss 4.{number}" for number in range(12)]

    found = pace_of(even)

    assert found is not None
    assert found[0] == pytest.approx(1.0)


def test_a_clock_of_two_ranks_stays_one_where_their_lines_are_not_in_order() -> None:
    clocks = (9.8, 9.9, 12.4, 12.3, 15.1, 15.0, 17.9, 17.8, 20.6, 20.7, 23.4, 23.2, 26.0, 26.1)

    found = pace_of(lines(*clocks, form="[rank 1 | {pace:8.1f}s] step {step} loss 0.02"))

    assert found is None or found[0] < 1.5


def test_numbers_too_coarse_to_be_compared_tell_nothing() -> None:
    coarse = lines(*(0.1,) * 6, *(0.2,) * 6, form="step {step} collect {pace:.1f}s")

    assert pace_of(coarse) is None


def test_few_lines_and_other_numbers_tell_nothing() -> None:
    assert pace_of(lines(*SLOWER[:5], form="step {step} {pace:.2f} s/step")) is None
    assert pace_of([f"step {n} loss {n}.5 lr 0.1" for n in range(20)]) is None


def test_numbers_beyond_all_measure_are_no_times() -> None:
    assert pace_of(["step 1 1e400 s/step", "step 2 0e0 it/s"] * 20) is None
