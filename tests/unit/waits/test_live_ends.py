"""Ends of live graphs that are easily misread: circles, halves of an exchange, calls that sleep
in C.
"""

from __future__ import annotations

import pytest

from tests.unit.waits.live_rows import (
    C10D,
    CELL,
    LOADER,
    MAIN,
    SITE,
    STD,
    facts_of,
    job,
    own,
    process,
    rank,
    site,
    view,
)
from trainprobe.facts import CollectiveCall, Connection, Deadline, LockWait
from trainprobe.stacks.blocked_calls import BlockedCall
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.stillness import Stillness
from trainprobe.waits.deadlines import expiries
from trainprobe.waits.live import live_views

GET = (*own("train", 20), Frame("__next__", LOADER, 725), Frame("_get_data", LOADER, 1464))


def calls(op: str, line: int) -> tuple[Frame, ...]:
    return (MAIN, Frame("shift", "/job/train.py", line), Frame(op, C10D, 2700))


def test_a_lock_that_a_rank_holds_and_a_worker_of_another_wants_is_a_circle_of_both_ranks() -> None:
    at_lock = own("__getitem__", 9)
    worker = process(
        700, at_lock, at_lock, rank=1, role="loader-worker", ppid=101, wchan="locks_lock_inode_wait"
    )
    lock = LockWait(("E7",), CELL, pid=700, holder_pid=100, path="/cache/ds.lock")

    found = view(job(3), rank(0), rank(2), rank(1, GET, GET), worker, lock)

    assert (found.groups[0].how, found.groups[0].ranks) == ("cycle", (0, 1))
    assert found.groups[0].says.startswith(
        "ranks 0 and 1 wait for each other, by the lock on /cache/ds.lock"
    )


def test_a_ring_in_which_all_receive_first_is_one_circle() -> None:
    recv = calls("recv", 60)

    found = view(
        job(3),
        *(rank(number, recv, recv) for number in range(3)),
        site(60, "dist.recv(x, src=left)"),
    )

    assert (found.groups[0].how, found.groups[0].ranks) == ("cycle", (0, 1, 2))
    assert found.says == "ranks 0-2 wait for each other in recv"


def test_halves_that_do_not_match_are_a_circle_of_those_two_only() -> None:
    recv, send, other = calls("recv", 61), calls("send", 62), calls("recv", 63)

    found = view(
        job(3),
        rank(0, other, other),
        rank(1, send, send),
        rank(2, recv, recv),
        site(61, "dist.recv(t, rank - 1, tag=7)"),
        site(62, "dist.send(t, rank + 1)"),
        site(63, "dist.recv(t, world_size - 1)"),
    )

    assert (found.groups[0].ranks, found.groups[0].victims) == ((1, 2), (0,))
    assert found.says == "ranks 1 and 2 wait for each other in recv and send"


def test_the_first_call_of_a_line_says_nothing_of_the_peer_of_another() -> None:
    recv, send = calls("recv", 61), calls("send", 62)

    found = view(
        job(2),
        rank(0, recv, recv),
        rank(1, send, send),
        site(61, "dist.send(t, 1)"),
        site(62, "dist.recv(t, 0)"),
    )

    assert found.groups[0].ranks == (0, 1)
    assert all("perhaps" in link.how for link in found.groups[0].chain)


NAP = {
    "age_s": 0.1,
    "wchan": "hrtimer_nanosleep",
    "read_moved": True,
    "read_bytes": 300,
    "switches": 4,
}
HUB = (*own("fetch", 16), Frame("http_backoff", SITE + "huggingface_hub/utils/_http.py", 637))
TRAINS = ("for", "for i in range(100):")


def test_a_call_that_sleeps_in_c_and_asks_again_stands_still() -> None:
    line = own("write", 12)

    found = view(
        job(3),
        rank(0),
        rank(2),
        rank(1, line, line, **NAP),
        site(12, 'db.execute("insert into t values(2)")', TRAINS),
    )

    assert (found.verdict, found.groups[0].ranks) == ("hung", (1,))
    assert found.ranks[1].state == "waiting"


@pytest.mark.parametrize(
    "text",
    ["time.sleep(0.1)", "limiter.acquire()", "self.clock.tick(50)", "throttle(requests_per_s=5)"],
)
def test_a_loop_that_keeps_its_own_pace_goes_on(text: str) -> None:
    line = own("crawl", 12)

    assert (
        view(
            job(2), rank(0), rank(1, line, line, **NAP), site(12, text, ("for", "for url in urls:"))
        ).verdict
        == "healthy"
    )


def test_a_request_that_sleeps_between_its_tries_has_been_turned_away_wherever_its_library_stands() -> (
    None
):
    other = (*HUB, Frame("_http_backoff_base", SITE + "huggingface_hub/utils/_http.py", 566))

    found = view(
        job(2),
        rank(0),
        rank(1, HUB, other, **NAP),
        site(16, "return hf_hub_download(name)", ("while", "while True:")),
    )

    assert (found.verdict, found.groups[0].ranks) == ("hung", (1,))


@pytest.mark.parametrize(("silent_s", "verdict"), [(0.02, "healthy"), (9.0, "hung")])
def test_a_download_into_memory_is_work_while_something_comes(
    silent_s: float, verdict: str
) -> None:
    reads = (*own("load", 20), Frame("SocketIO.readinto", STD + "socket.py", 718))
    source = Connection(
        ("E6",),
        CELL,
        pid=101,
        fd=7,
        kind="tcp",
        state="ESTAB",
        remote="93.184.216.34:443",
        silent_s=silent_s,
    )

    assert (
        view(job(2), rank(0), rank(1, reads, reads, age_s=0.03, wchan="wait_woken"), source).verdict
        == verdict
    )


@pytest.mark.parametrize(("asleep_s", "verdict"), [(2.4, "undetermined"), (8.0, "hung")])
def test_a_request_is_as_old_as_its_own_sleep_however_long_others_wait(
    asleep_s: float, verdict: str
) -> None:
    reads = (*own("load", 20), Frame("SocketIO.readinto", STD + "socket.py", 718))
    found = view(job(2), rank(0, age_s=6.0), rank(1, reads, reads, age_s=asleep_s))
    assert found.verdict == verdict


def test_a_server_that_wakes_to_look_for_the_next_request_does_not_make_a_wait_young() -> None:
    asks = (*own("score", 29), Frame("SocketIO.readinto", STD + "socket.py", 718))
    serves = (
        Frame("<module>", "/job/scorer.py", 40),
        Frame("BaseServer.serve_forever", STD + "socketserver.py", 233),
    )
    found = view(
        job(2),
        rank(0, asks, asks, age_s=58.0, call=BlockedCall("poll", reads=(11,))),
        rank(1, asks, asks, age_s=58.0, call=BlockedCall("poll", reads=(11,))),
        *(
            Connection((), CELL, one, pid=100 + one, fd=11, peer_pid=700, state="ESTAB")
            for one in (0, 1)
        ),
        process(700, serves, serves, rank=0, role="child", ppid=100, age_s=0.4),
    )
    assert found.verdict == "hung"


@pytest.mark.parametrize(
    ("text", "more", "verdict"),
    [
        ("index = pickle.load(file)", {}, "healthy"),
        ("gc.collect()", {}, "healthy"),
        ("rows.sort(key=by_length)", {}, "healthy"),
        ("table = ext.parse(blob)", {"grew_bytes": 40 << 20}, "healthy"),
        ("table = ext.parse(blob)", {"read_bytes": 9 << 20}, "healthy"),
        ("table = ext.parse(blob)", {}, "hung"),
        ("return REPEATED.match(line) is None", {}, "hung"),
    ],
)
def test_a_native_call_that_keeps_the_interpreter_lock(
    text: str, more: dict[str, object], verdict: str
) -> None:
    line = own("load", 39)

    assert (
        view(
            job(2),
            rank(0),
            rank(1, line, line, state="R", age_s=0.0, gil=True, **more),
            site(39, text),
        ).verdict
        == verdict
    )


def test_a_frozen_cgroup_stops_its_rank() -> None:
    found = view(job(2), rank(0), rank(1, own("step", 3), own("step", 4), frozen=True))

    assert (found.verdict, found.groups[0].ranks, found.ranks[1].state) == ("hung", (1,), "stopped")


def test_one_operation_called_at_two_lines_is_no_meeting_of_all() -> None:
    here, there = calls("all_reduce", 12), calls("all_reduce", 9)

    found = view(job(3), rank(0, here, here), rank(1, there, there), rank(2, here, here))

    assert (found.groups[0].how, found.groups[0].ranks, found.groups[0].camps) == (
        "cycle",
        (1,),
        ((1,), (0, 2)),
    )
    assert found.says == "rank 1 stands in all_reduce at another line than the rest"


@pytest.mark.parametrize(("cpu_s", "verdict"), [(0.9, "slow"), (0.2, "healthy")])
def test_few_looks_show_a_straggler_only_with_the_processor_time_to_match(
    cpu_s: float, verdict: str
) -> None:
    late = own("augment", 12)
    wait = calls("all_reduce", 9)

    found = view(
        job(2),
        rank(0, late, late, late, age_s=0.01, cpu_s=cpu_s, looked_s=4.4),
        rank(1, wait, wait, late, age_s=0.1, cpu_s=0.1, looked_s=4.4),
        site(12, "time.sleep(0.002)", ("for", "for _ in range(rounds):")),
    )

    assert found.verdict == verdict


def test_looks_that_fall_into_one_pause_show_one_round() -> None:
    late, wait = own("collect", 73), calls("all_reduce", 9)

    def job_with(slept_through: int) -> str:
        return view(
            job(2),
            rank(0, late, late, late, age_s=0.01, cpu_s=2.0, looked_s=6.0),
            rank(1, wait, wait, late, age_s=0.1, cpu_s=0.1, slept_through=slept_through),
        ).verdict

    assert (job_with(0), job_with(1)) == ("slow", "healthy")


def test_many_looks_into_one_pause_are_not_many_rounds() -> None:
    late, wait = own("run_tool", 16), calls("all_reduce", 9)
    looks = 11

    def verdict(slept_through: int) -> str:
        return view(
            job(2),
            rank(0, late, own("step", 5), *[late] * (looks - 2), age_s=0.1),
            rank(1, late, *[wait] * (looks - 1), age_s=0.1, slept_through=slept_through),
        ).verdict

    assert (verdict(0), verdict(8)) == ("slow", "healthy")


def test_all_that_go_round_in_one_loop_are_suspects_whichever_of_them_was_met_asleep() -> None:
    here = own("claim", 18)

    found = view(
        job(2),
        rank(0, here, here, state="R", age_s=0.0, cpu_s=0.02),
        rank(1, here, here, age_s=0.01),
        site(18, "time.sleep(0.01)", ("while", "while True:")),
    )

    assert (found.verdict, found.groups[0].ranks) == ("hung", (0, 1))


@pytest.mark.parametrize(("looks", "verdict"), [(3, "healthy"), (8, "slow")])
def test_steps_that_differ_at_random_put_one_rank_last_in_three_looks_by_chance(
    looks: int, verdict: str
) -> None:
    wait = calls("all_reduce", 9)
    late = [own("augment", 12 + number % 2) for number in range(looks)]

    found = view(
        job(2),
        rank(0, *[wait] * looks, age_s=0.1, cpu_s=0.09),
        rank(1, *late, age_s=0.01, cpu_s=0.1),
    )

    assert found.verdict == verdict


@pytest.mark.parametrize(("wrote_bytes", "verdict"), [(0, "healthy"), (55_198, "slow")])
def test_a_first_batch_that_takes_long_is_no_slow_loader(wrote_bytes: int, verdict: str) -> None:
    fetch = (
        MAIN,
        Frame("_worker_loop", SITE + "torch/utils/data/_utils/worker.py", 374),
        Frame("fetch", SITE + "torch/utils/data/_utils/fetch.py", 54),
    )
    steps = [(*fetch, Frame("read_index", "/job/train.py", 20 + number)) for number in range(3)]

    found = view(
        job(2),
        *(rank(number, GET, GET, GET, age_s=0.4, wrote_bytes=wrote_bytes) for number in (0, 1)),
        *(
            process(
                700 + number,
                *steps,
                rank=number,
                role="loader-worker",
                ppid=100 + number,
                state="R",
                age_s=0.0,
            )
            for number in (0, 1)
        ),
    )

    assert found.verdict == verdict


def test_looks_into_one_wait_for_a_batch_are_no_slow_loader() -> None:
    def verdict(slept_through: int, switches: int) -> str:
        about = {"wrote_bytes": 182, "slept_through": slept_through, "switches": switches}
        ranks = (rank(number, GET, GET, GET, age_s=0.4, **about) for number in (0, 1))
        return view(job(2), *ranks).verdict

    assert verdict(0, 40) == "slow"
    assert verdict(1, 40) != "slow"
    assert verdict(0, 2) != "slow"


def test_a_short_wait_says_when_to_look_again() -> None:
    stands = own("ask", 52)

    found = view(
        job(2), rank(0, age_s=3.2), rank(1, stands, stands, age_s=3.2), site(52, "sock.recv(4)")
    )

    assert (found.verdict, found.conclusive) == ("undetermined", False)
    assert (
        found.says
        == "not hung so far: the longest wait is 3.2 s; a hang shows after 5 s, so attach again"
        " in 3 s"
    )


def test_the_timeout_of_the_waiting_call_goes_before_a_default() -> None:
    facts = facts_of(
        job(2),
        rank(0, age_s=60.0),
        rank(1, own("wait", 31), own("wait", 31)),
        site(31, "time.sleep(3600)"),
        Deadline(("E3",), kind="group", seconds=1800.0, source="torch's default"),
        CollectiveCall(
            ("E4",),
            CELL,
            0,
            op="all_reduce",
            source="flight-recorder",
            finished=False,
            timeout_s=90.0,
        ),
    )

    end, _ = expiries(facts, live_views(facts)[0])

    assert (end.source, end.left_s) == ("the flight recorder", 30.0)


def test_ranks_met_at_two_lines_of_one_loop_are_one_group() -> None:
    forever = ("while", "while True:")

    found = view(
        job(3),
        rank(0),
        rank(1, own("claim", 18), own("claim", 18), age_s=0.01),
        rank(2, own("claim", 13), own("claim", 13), age_s=0.01),
        site(18, "time.sleep(0.01)", forever),
        site(13, "time.sleep(0.02)", forever),
    )

    assert [group.ranks for group in found.groups] == [(1, 2)]


def test_a_nap_in_a_loop_is_not_the_age_of_the_wait() -> None:
    here = own("claim", 18)
    naps = Stillness(1.8, wakes=True)

    found = view(
        job(2),
        rank(0, here, here, age_s=1.8, stillness=naps),
        rank(1, age_s=43.0),
        site(18, "time.sleep(2)", ("while", "while not os.path.exists(path):")),
    )

    assert found.verdict == "hung"
    assert [one.since_s for one in found.ranks] == [None, 43.0]


def test_handlers_of_signals_on_top_of_a_wait_for_a_lock_are_no_progress() -> None:
    """Each signal runs its handler in the frame that waits, and that waits on."""
    waits = (*own("append", 21), Frame("flush", "/job/train.py", 32))
    again = (*waits, Frame("on_signal", "/job/train.py", 39), Frame("flush", "/job/train.py", 32))

    found = view(
        job(2),
        rank(0),
        rank(1, waits, waits, again, wchan="futex_do_wait", state="S"),
        site(32, "with self._lock:"),
    )

    assert (found.verdict, [group.ranks for group in found.groups]) == ("hung", [(1,)])


def test_another_line_below_a_lock_is_progress() -> None:
    here, there = own("flush", 32), own("flush", 40)

    found = view(job(2), rank(0), rank(1, here, here, there, wchan="futex_do_wait", state="S"))

    assert found.verdict != "hung"
