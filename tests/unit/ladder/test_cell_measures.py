"""Numbers of a cell: steps from the witness' marks, use of processes, limits."""

from __future__ import annotations

import os

from trainprobe.ladder.cell_measures import of_limits, step_s
from trainprobe.ladder.resource_use import Use, limits


def test_the_median_step_counts_every_step_of_a_span() -> None:
    """The witness tells steps 1, 2, 3 and then one a second: the slow first steps are three, the
    others forty.
    """
    assert step_s([(0.0, 1), (2.0, 2), (4.0, 3), (5.0, 23), (6.0, 43)]) == 0.05
    assert step_s([(0.0, 1), (2.0, 2)]) == 2.0
    assert step_s([(0.0, 1)]) is None
    assert step_s([]) is None


def test_a_sample_of_ourselves_has_all_numbers_and_the_next_one_waits() -> None:
    use = Use()
    use.sample([os.getpid()])
    use.sample([os.getpid()])
    values = use.values()

    assert use.samples == 1
    assert values["pss"][0] > 2**20
    assert values["rss"][0] >= values["pss"][0]
    assert values["fds"][0] >= 3
    assert values["pids"][0] >= 1


def test_a_process_that_is_gone_counts_nothing() -> None:
    use = Use()
    use.sample([2**22 + 1])

    assert not {"pss", "rss", "fds", "pids"} & set(use.values())


def test_limits_have_positive_values_with_their_source() -> None:
    found = limits()

    assert found["limit.memory_bytes"][0] > 0
    assert found["limit.cpus"][0] > 0
    rows = of_limits(found)["measures"]
    assert all(
        row["name"].startswith("limit.") and row["value"] > 0 and row["source"] for row in rows
    )
    assert not any("ranks" in row for row in rows)
