"""The chain from a rank over its children to what they wait for."""

from __future__ import annotations

import pytest

from tests.unit.waits.live_rows import CELL, STD, job, own, process, rank, site, view
from trainprobe.facts import Connection, PipeEnd
from trainprobe.model.facts import Fact
from trainprobe.stacks.blocked_calls import BlockedCall
from trainprobe.stacks.frames import Frame

RUN = (*own("fetch", 40), Frame("Popen.wait", STD + "subprocess.py", 1264))


def chain_of(*facts: Fact | list[Fact]) -> list[str]:
    found = view(*facts)
    assert found.verdict == "hung", found.says
    return [f"{link.waiter} {link.how} {link.awaited}" for link in found.groups[0].chain]


def waits_for_a_child(**more: object) -> list[Fact]:
    return rank(1, RUN, RUN, wchan="do_wait", call=BlockedCall("wait4", child=700), **more)


def child(pid: int = 700, **more: object) -> list[Fact]:
    return process(pid, rank=1, role="child", **{"ppid": 101, "cmdline": "curl x", **more})  # type: ignore[arg-type]


def test_a_download_leads_to_the_server_that_says_nothing() -> None:
    curl = child(wchan="do_poll", call=BlockedCall("poll", (5,)))
    socket = Connection(
        ("E6",),
        CELL,
        pid=700,
        fd=5,
        kind="tcp",
        state="ESTAB",
        remote="10.0.0.3:443",
        silent_s=40.0,
    )

    chain = chain_of(job(2), rank(0), waits_for_a_child(), curl, socket)

    assert chain[-2:] == [
        "rank 1 waits for its child pid 700 (child of rank 1, curl x)",
        (
            "pid 700 (child of rank 1, curl x) waits for an answer over a socket (10.0.0.3:443),"
            " silent for 40 s, from 10.0.0.3:443"
        ),
    ]


def test_a_child_that_fills_a_pipe_and_its_parent_wait_for_each_other() -> None:
    helper = child(wchan="anon_pipe_write", call=BlockedCall("write", (), (2,)))
    pipe = PipeEnd(("E6",), CELL, 1, pid=700, fd=2, path="pipe:[7]", mode="w", other_pids=(101,))

    found = view(job(2), rank(0), waits_for_a_child(), helper, pipe)

    assert (found.verdict, found.groups[0].ranks) == ("hung", (1,))
    last = found.groups[0].chain[-1]
    assert (last.waiter, last.awaited.partition(",")[0]) == (
        "pid 700 (child of rank 1, curl x)",
        "rank 1",
    )
    assert last.how == "waits to write to its stderr, a pipe, which is full and not read by"


@pytest.mark.parametrize(
    ("named", "names"), [(700, "pid 700"), (701, "pid 701"), (None, "pid 700")]
)
def test_of_several_children_the_one_that_the_call_names_is_waited_for(
    named: int | None, names: str
) -> None:
    waits = rank(1, RUN, RUN, wchan="do_wait", call=BlockedCall("wait4", child=named))
    asleep = {"wchan": "hrtimer_nanosleep"}

    chain = chain_of(job(2), rank(0), waits, child(700, **asleep), child(701, **asleep))

    assert names in chain[-1]


def test_a_loop_that_asks_after_a_child_waits_for_it() -> None:
    loop = own("fetch", 41)
    asks = rank(1, loop, loop, wchan="hrtimer_nanosleep", asleep_s=0.2, switches=20)
    source = site(41, "time.sleep(0.5)", ("while", "while child.poll() is None:"))

    chain = chain_of(job(2), rank(0, asleep_s=9.0), asks, source, child(wchan="futex_wait"))

    assert "rank 1 asks again and again after its child pid 700" in chain[-1]


def test_a_command_that_receives_data_goes_on() -> None:
    curl = child(wchan="do_poll", call=BlockedCall("poll", (5,)), age_s=0.1)
    socket = Connection(
        ("E6",), CELL, pid=700, fd=5, kind="tcp", state="ESTAB", remote="10.0.0.3:443", silent_s=0.1
    )

    assert view(job(2), rank(0), waits_for_a_child(), curl, socket).verdict == "healthy"


def test_who_reads_a_pipe_waits_for_who_has_its_other_end_and_not_for_any_child() -> None:
    reads = rank(1, RUN, RUN, wchan="anon_pipe_read", call=BlockedCall("read", (20,)))
    server = child(701, ppid=1, cmdline="python server.py", wchan="do_poll")
    pipe = PipeEnd(("E6",), CELL, 1, pid=101, fd=20, path="pipe:[7]", mode="r", other_pids=(701,))

    chain = chain_of(job(2), rank(0), reads, child(700), server, pipe)

    assert chain[-1].startswith(
        "rank 1 waits to read from a pipe (descriptor 20), which is written by pid 701"
    )
