"""Moments at the beginning of lines."""

from __future__ import annotations

import datetime as dt
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainprobe.logtext.stamps import FileClock, stamp

NOON = dt.datetime(2024, 11, 21, 10, 11, 12, tzinfo=dt.timezone.utc).timestamp()
WRITTEN = dt.datetime(2024, 11, 21, 12, 0, 0, tzinfo=dt.timezone.utc).timestamp()


@pytest.mark.parametrize(
    ("line", "fraction", "zoned"),
    [
        ("2024-11-21 10:11:12,345 - INFO - hello", 0.345, False),
        ("2024-11-21T10:11:12.345678Z hello", 0.345678, True),
        ("2024-11-21T11:11:12+01:00 hello", 0.0, True),
        ("2024-11-21T08:11:12.5-0200 hello", 0.5, True),
        ("[2024-11-21 10:11:12,345] [INFO] [engine.py:12:step] hello", 0.345, False),
        ("[2024-11-21 10:11:12] node7:42:43 [0] NCCL WARN hello", 0.0, False),
        ("2024/11/21 10:11:12 - mmengine - INFO - hello", 0.0, False),
        ("11/21/2024 10:11:12 - INFO - __main__ - hello", 0.0, False),
        ("[NeMo W 2024-11-21 10:11:12 file:1] hello", 0.0, False),
        ("[20241121 10:11:12 main.py:3] hello", 0.0, False),
        ("Thu Nov 21 10:11:12 2024", 0.0, False),
        ("[Thu Nov 21 10:11:12 2024] NVRM: Xid", 0.0, False),
        ("Thu Nov 21 10:11:12 UTC 2024", 0.0, True),
        ("21/Nov/2024:10:11:12 +0000 hello", 0.0, True),
        (f"{NOON:.3f} hello", 0.0, True),
        ("[11/21/24 10:11:12] INFO     hello", 0.0, False),
        (
            "[INFO|trainer.py:2345] 2024-11-21 10:11:12,345 >> ***** Running training *****",
            0.345,
            False,
        ),
        ('time="2024-11-21T10:11:12Z" level=info msg="hello"', 0.0, True),
        ('{"level": "INFO", "timestamp": "2024-11-21T10:11:12.5Z", "code": 3}', 0.5, True),
        (
            (
                "slurmstepd: error: *** STEP 42.0 ON node7 CANCELLED AT 2024-11-21T10:11:12 DUE TO"
                " TIME LIMIT ***"
            ),
            0.0,
            False,
        ),
        (
            "slurmstepd-node7: error: *** JOB 42 ON node7 CANCELLED AT 2024-11-21T10:11:12 ***",
            0.0,
            False,
        ),
        ("  time      : 2024-11-21_10:11:12", 0.0, False),
    ],
)
def test_whole_stamps(line: str, fraction: float, zoned: bool) -> None:
    found = stamp(line)
    assert found is not None
    assert found.kind == "full"
    assert found.at == pytest.approx(NOON + fraction, abs=0.001)
    assert found.zoned is zoned


@pytest.mark.parametrize(
    "line",
    [
        "E1121 10:11:12.345678 4242 torch/distributed/run.py:757] hello",
        "[E1121 10:11:12.345678 ProcessGroupNCCL.cpp:607] [Rank 3] hello",
        "INFO 11-21 10:11:12 [engine.py:12] hello",
        "[rank6]:[E1121 10:11:12.384372190 ProcessGroupNCCL.cpp:1743] no"[8:],
        "[11/21 10:11:12 d2.utils.events]: eta: 1:00:00",
        "Nov 21 10:11:12 node7 kernel: hello",
        "[E 10:11:12.3 File.cpp:1] hello",
        "10:11:12 | INFO | hello",
        "[10:11:12] hello",
    ],
)
def test_what_lacks_year_or_date_is_completed_by_the_time_of_writing(line: str) -> None:
    at = FileClock(WRITTEN).read(line)
    assert at is not None
    assert abs(at - NOON) < 1.0


@pytest.mark.parametrize(
    "line",
    [
        "",
        "hello",
        "step 10 loss 0.1",
        "[2024]: hello",
        "2024-13-41 10:11:12 hello",
        "2024-11-21 25:61:00 hello",
        "12:34 hello",
        "[rank3]: hello",
        "E1399 10:11:12 hello",
        "1234567890123 hello",
        "99:99:99",
        "The file of 2024-11-21 10:11:12 is old",
        "0001-01-01 00:00:00",
    ],
)
def test_no_stamp(line: str) -> None:
    assert stamp(line) is None or FileClock(WRITTEN).read(line) is None


def test_relative_clocks_are_not_compared_with_wall_clocks() -> None:
    dmesg, log, container = FileClock(), FileClock(), FileClock()
    assert dmesg.read("[12345.678901] NVRM: Xid") == pytest.approx(12345.678901)
    log.read("2024-11-21 10:11:12 hello")
    container.read("2024-11-21T10:11:12Z hello")
    assert (dmesg.kind, log.kind, container.kind, FileClock().kind) == (
        "relative",
        "wall",
        "wall-utc",
        "none",
    )


def test_midnight_passes() -> None:
    clock = FileClock()
    first = clock.read("2024-11-21 23:59:50 hello")
    second = clock.read("00:00:10 hello")
    assert first is not None
    assert second is not None
    assert second - first == pytest.approx(20)


def test_torch_writes_no_zero_before_the_month() -> None:
    found = stamp("[E429 13:55:49.384372190 ProcessGroupNCCL.cpp:1743] no")
    assert found is not None
    assert (found.kind, found.month, found.day) == ("no-year", 4, 29)


def test_a_year_turns() -> None:
    clock = FileClock(dt.datetime(2025, 1, 1, 1, tzinfo=dt.timezone.utc).timestamp())
    first, second = (
        clock.read("I1231 23:59:59.0 1 x.py:1] a"),
        clock.read("I0101 00:00:01.0 1 x.py:1] b"),
    )
    assert first is not None
    assert second is not None
    assert second - first == pytest.approx(2)


def test_times_without_any_date_are_comparable_as_times_of_day() -> None:
    clock = FileClock()
    assert clock.read("10:00:00 a") == 36000
    assert clock.kind == "day"


@given(st.text(max_size=200))
def test_any_text_is_read_without_a_fault(text: str) -> None:
    at = FileClock(WRITTEN).read(text)
    assert at is None or math.isfinite(at)


def test_it_is_fast() -> None:
    began = time.process_time()
    for _ in range(2000):
        stamp("2024-11-21 10:11:12,345 - INFO - hello" + " 10:11:12" * 30)
        stamp("[" * 100)
        stamp("    x = self.model(batch)")
    assert time.process_time() - began < 2.0
