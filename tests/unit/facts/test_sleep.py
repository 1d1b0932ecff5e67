"""The age of a wait, also after somebody looked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from trainprobe.facts import ProcessState, read
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import Subject

RANK = Subject("rank", rank=0, pid=50, role="rank")
WAITING = [
    {
        "name": "all_reduce",
        "file": "/envs/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py",
        "line": 2800,
    },
    {"name": "main", "file": "/job/train.py", "line": 9},
]
ASLEEP = [{"name": "main", "file": "/job/train.py", "line": 9}]


def looks(
    frames: list[dict[str, Any]],
    voluntary: tuple[int, ...],
    *,
    asleep: float = 0.02,
    apart_s: float = 2.0,
    ticks: tuple[int, ...] = (),
) -> list[Evidence]:
    records = []
    for number, count in enumerate(voluntary):
        began = 1000.0 + number * apart_s
        used = ticks[number] if ticks else 10
        thread = {
            "tid": 50,
            "state": "S",
            "wchan": "futex_do_wait",
            "cpu_ticks": used,
            "voluntary": count,
            "asleep_s": asleep,
        }
        data = {
            "pid": 50,
            "look": number + 1,
            "state": "S",
            "role": "rank",
            "threads": [thread],
            "clock_hz": 100,
        }
        records.append(Evidence(f"P{number}", "process", RANK, "job", began=began, data=data))
        stack = {
            "pid": 50,
            "look": number + 1,
            "role": "rank",
            "threads": [{"os_thread_id": 50, "name": "MainThread", "frames": frames}],
        }
        records.append(
            Evidence(f"S{number}", "stacks.python", RANK, "job", began=began, data=stack)
        )
    return records


def connections(*rows: dict[str, Any]) -> Evidence:
    return Evidence(
        "C",
        "sockets",
        cell="job",
        data={
            "connections": [
                {"pid": 50, "kind": "tcp", "state": "ESTAB", "peer_pid": 51, **row} for row in rows
            ]
        },
    )


def state(records: list[Evidence]) -> ProcessState:
    (process,) = read(records).of(ProcessState)
    return process


def test_two_switches_a_look_are_the_looks_own() -> None:
    assert state(looks(ASLEEP, (100, 102, 104))).asleep_s == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("voluntary", "ticks"),
    [((100, 103), ()), ((100, 102), (10, 110))],
    ids=["another wait ended in between", "it used the processor"],
)
def test_a_thread_that_ran_is_as_young_as_it_says(
    voluntary: tuple[int, ...], ticks: tuple[int, ...]
) -> None:
    assert state(looks(ASLEEP, voluntary, ticks=ticks)).asleep_s == pytest.approx(0.02)


def test_in_a_collective_the_silence_between_the_ranks_counts() -> None:
    process = state(
        [
            *looks(WAITING, (100, 102)),
            connections(
                {"peer_rank": 1, "silent_s": 700.0},
                {"peer_rank": 2, "silent_s": 650.5},
                {"silent_s": 1.0},
            ),
        ]
    )
    assert process.asleep_s == pytest.approx(650.5), (
        "the youngest word between ranks, not that of a stranger"
    )
    assert "C" in process.evidence


def test_nobody_has_waited_for_longer_than_it_lives() -> None:
    records = looks(WAITING, (100, 102))
    young = [
        replace(one, data={**one.data, "age_s": 13.0}) if one.kind == "process" else one
        for one in records
    ]
    assert state(
        [*young, connections({"peer_rank": 1, "silent_s": 27.0})]
    ).asleep_s == pytest.approx(13.0)
    assert state(
        [*young, connections({"peer_rank": 1, "silent_s": 9.0})]
    ).asleep_s == pytest.approx(9.0)


def test_elsewhere_it_does_not() -> None:
    records = [*looks(ASLEEP, (100, 150)), connections({"peer_rank": 1, "silent_s": 700.0})]
    assert state(records).asleep_s == pytest.approx(0.02)


def gloo(**environment: str) -> Evidence:
    return Evidence(
        "J",
        "job",
        cell="job",
        data={"cell": "job", "backend": "gloo", "ranks": [], "environment": {"0": environment}},
    )


def late(silent_s: float, *, at: float = 1004.2, remote: str = "127.0.0.1:40000") -> Evidence:
    """Connections as they were after the last of three looks two seconds apart."""
    return replace(
        connections(
            {"peer_rank": 1, "silent_s": silent_s, "local": "127.0.0.1:50000", "remote": remote}
        ),
        id=f"C{at}",
        began=at,
    )


def still(*more: Evidence) -> tuple[float, float | None]:
    judged = state([*looks(ASLEEP, (100, 150, 200)), *more]).stillness
    assert judged is not None
    return judged.at_least_s, judged.at_most_s


def test_a_poll_is_as_old_as_the_looks_where_nothing_went_between_the_ranks() -> None:
    assert still(gloo(), late(60.0)) == pytest.approx((4.0, 60.0))
    assert still(late(60.0)) == pytest.approx((0.02, 60.0)), (
        "nobody knows what carries its collectives"
    )


def test_of_two_looks_at_the_connections_the_later_one_counts() -> None:
    assert still(gloo(), late(60.0, at=1000.1), late(1.5)) == pytest.approx((0.02, 1.5))
    assert still(gloo(), late(0.3, at=1000.1), late(4.4)) == pytest.approx((4.0, 4.4))
    assert still(gloo(), late(60.0, at=1000.1)) == pytest.approx((0.02, 63.9)), (
        "what went since the first look is not known"
    )


def test_words_to_the_store_are_no_exchange_between_ranks() -> None:
    asks = late(0.01, remote="127.0.0.1:29500")
    talks = {
        "peer_rank": 1,
        "silent_s": 60.0,
        "local": "127.0.0.1:50001",
        "remote": "127.0.0.1:40000",
    }
    rows = [
        *asks.data["connections"],
        {"pid": 50, "kind": "tcp", "state": "ESTAB", "peer_pid": 51, **talks},
    ]
    assert still(
        gloo(MASTER_PORT="29500"), replace(asks, data={"connections": rows})
    ) == pytest.approx((4.0, 60.0))


def test_who_asks_a_store_that_the_job_made_exchanges_nothing_with_a_rank() -> None:
    """Its keeper is a client of it, too: that tells the store's port from a collective's."""
    asks = {"local": "10.0.0.1:53794", "remote": "10.0.0.1:52265", "peer_rank": 0, "silent_s": 0.0}
    reduces = {"local": "10.0.0.1:41", "remote": "10.0.0.1:42", "peer_rank": 0, "silent_s": 60.0}
    own = {"pid": 51, "local": "10.0.0.1:53792", "remote": "10.0.0.1:52265", "peer_rank": 0}

    assert still(gloo(), connections(asks, reduces))[1] == pytest.approx(0.0)
    assert still(gloo(), connections(asks, reduces, own))[1] == pytest.approx(60.0)
