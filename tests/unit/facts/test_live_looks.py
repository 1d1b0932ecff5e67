"""What the looks at a live job tell, from records by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.facts.records import Records
from trainprobe.facts import MemoryLimit, PortCounters, Pressure, ProcessState, RasCommunicator


def look(number: int, **more: Any) -> dict[str, Any]:
    thread = {
        "tid": 101,
        "state": "S",
        "cpu_ticks": 10 * number,
        "cpu_allowed": 2,
        "kernel_stack": ["futex_do_wait"],
    }
    return {
        "look": number,
        "pid": 101,
        "role": "rank",
        "state": "S",
        "threads": [thread],
        "cpu_ticks": 100 * number,
        "clock_hz": 100,
        **more,
    }


def test_what_a_process_did_between_two_looks() -> None:
    records = Records("job")
    io = {"rchar": 5, "wchar": 1000, "read_bytes": 0, "write_bytes": 0}
    records.add("process", look(1, io=io, majflt=3), rank=1, pid=101, began=1000.0)
    records.add(
        "process",
        look(2, io={**io, "wchar": 1800, "write_bytes": 8192}, majflt=5, age_s=60.5, uid=7),
        rank=1,
        pid=101,
        began=1000.5,
    )
    (process,) = records.facts().of(ProcessState)
    assert (process.read_moved, process.wrote_bytes, process.major_faults) == (False, 8192, 2)
    assert (process.cpu_s, process.all_cpu_s, process.looked_s) == (0.1, 1.0, 0.5)
    assert (process.age_s, process.uid, process.cpu_allowed, process.kernel_stack) == (
        60.5,
        7,
        2,
        ("futex_do_wait",),
    )


@pytest.mark.parametrize("looks", [[look(1)], [look(1), look(2, cpu_ticks=None, io=None)]])
def test_what_was_not_measured_is_none(looks: list[dict[str, Any]]) -> None:
    records = Records("job")
    for one in looks:
        records.add("process", one, rank=1, pid=101)
    (process,) = records.facts().of(ProcessState)
    assert (
        process.read_moved,
        process.wrote_bytes,
        process.major_faults,
        process.all_cpu_s,
        process.looked_s,
    ) == (None,) * 5


@pytest.mark.parametrize(("counted", "rise"), [(0, 0), (3, None)])
def test_a_kill_before_anybody_watched_is_not_ruled_out(counted: int, rise: int | None) -> None:
    records = Records("job")
    for _ in range(2):
        records.add(
            "cgroup", {"version": 2, "limit_bytes": 100, "oom_kill": counted, "oom_kill_rise": 0}
        )
    (limit,) = records.facts().of(MemoryLimit)
    assert limit.oom_kill_rise == rise


def pressure(number: int, throttled: int, runnable: int) -> dict[str, Any]:
    group = {
        "path": "/sys/fs/cgroup/cpu/job",
        "version": 1,
        "quota": 1.5,
        "cpu_stat": {"periods": 90, "throttled": throttled, "throttled_s": throttled / 10},
    }
    stalls = {"memory": {"some_avg10": 61.0, "full_avg10": 40.0}, "cpu": {"some_avg10": 3.5}}
    return {
        "look": number,
        "host": stalls,
        "cgroups": [group],
        "load": [7.5, 3, 1],
        "runnable": runnable,
        "usable_cpus": 1.5,
        "smallest_affinity": 2,
    }


def test_pressure_is_the_last_look_and_the_rise_of_its_counters() -> None:
    records = Records("job")
    records.add("pressure", pressure(1, 70, 4), began=1000.0).add(
        "pressure", pressure(2, 78, 8), began=1000.5
    )
    host, group = records.facts().of(Pressure)
    assert (host.scope, host.memory, host.memory_full, host.cpu, host.io, host.load) == (
        "host",
        61.0,
        40.0,
        3.5,
        None,
        7.5,
    )
    assert (
        host.runnable,
        host.usable_cpus,
        host.smallest_affinity,
        host.throttled,
        host.looked_s,
    ) == (6, 1.5, 2, None, 0.5)
    assert (group.scope, group.throttled, group.throttled_s, group.quota_cpus, group.memory) == (
        "cgroup",
        8,
        0.8,
        1.5,
        None,
    )
    assert host.evidence == ("E1", "E2")


def test_one_look_at_pressure_tells_no_rise() -> None:
    _, group = Records("job").add("pressure", pressure(1, 70, 4)).facts().of(Pressure)
    assert (group.throttled, group.throttled_s, group.looked_s) == (None, None, None)


def port(number: int, sent: int, symbols: int, retransmits: int) -> dict[str, Any]:
    counters = {"sent_bytes": sent, "received_bytes": 5, "port_xmit_wait": 4 * number}
    fabric = {
        "port": "mlx5_0/1",
        "kind": "infiniband",
        "state": "ACTIVE",
        "counters": counters,
        "errors": {"symbol_error": symbols, "link_downed": 1},
    }
    tcp = {
        "port": "tcp",
        "kind": "tcp",
        "counters": {"RetransSegs": retransmits, "OutSegs": 9, "TCPTimeouts": 2},
        "errors": {},
    }
    return {"look": number, "ports": [fabric, tcp]}


def test_ports_count_from_look_to_look() -> None:
    records = Records("job")
    records.add("ports", port(1, 4000, 7, 100), began=1000.0).add(
        "ports", port(2, 4800, 9, 30), began=1002.0
    )
    fabric, tcp = records.facts().of(PortCounters)
    assert (
        fabric.port,
        fabric.state,
        fabric.sent_bytes,
        fabric.received_bytes,
        fabric.looked_s,
    ) == ("mlx5_0/1", "ACTIVE", 800, 0, 2.0)
    assert (fabric.errors, fabric.totals, fabric.waits) == (
        {"symbol_error": 2},
        {"symbol_error": 9, "link_downed": 1},
        {"port_xmit_wait": 4},
    )
    assert (tcp.retransmits, tcp.sent_bytes) == (30, None)  # reset in between
    once, _ = Records("job").add("ports", port(1, 4000, 7, 100)).facts().of(PortCounters)
    assert (once.sent_bytes, once.errors, once.totals) == (
        None,
        {},
        {"symbol_error": 7, "link_downed": 1},
    )


@pytest.mark.parametrize("value", ["9" * 5000, "²", "RUNNING", ""])
def test_a_count_of_ras_that_is_no_number_is_a_status(value: str) -> None:
    row = {
        "hash": "ab",
        "ranks": [{"rank": 3, "value": value, "what": "status"}],
        "camps": [{"value": value, "what": "x"}, 7],
    }
    (communicator,) = (
        Records("job").add("ras", {"communicators": [row]}).facts().of(RasCommunicator)
    )
    assert (communicator.ranks[0].status, communicator.ranks[0].counts, communicator.lagging) == (
        value,
        {},
        (),
    )


def test_looks_that_a_long_watch_left_out_count_as_looks() -> None:
    """Each costs a thread two switches, whether its record was kept or not."""
    records = Records("job")
    for number in (1, 2, 500):
        thread = {**look(number)["threads"][0], "voluntary": 2 * number, "cpu_ticks": 0}
        more = {"threads": [thread], "cpu_ticks": 0}
        records.add("process", look(number, **more), rank=1, pid=101, began=1000.0 + number)
    (process,) = records.facts().of(ProcessState)
    assert (process.looks, process.switches) == (500, 998)
