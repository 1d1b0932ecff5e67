"""No job is healthy in which a main thread stands and others wait for it, whatever else is busy."""

from __future__ import annotations

import random

import pytest

from tests.unit.waits.live_rows import (
    ALL_REDUCE,
    CELL,
    LOADER,
    MAIN,
    STD,
    facts_of,
    job,
    own,
    process,
    rank,
    site,
    view,
)
from trainprobe.facts import Facts, Thread
from trainprobe.facts.table import Refusal
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.stillness import Stillness
from trainprobe.waits.live import live_views

STANDS = (
    own("sleep_on", 9),
    own("take", 10),
    (MAIN, Frame("acquire", STD + "threading.py", 169)),
    (
        *own("collect", 11),
        Frame("get", STD + "queue.py", 171),
        Frame("wait", STD + "threading.py", 327),
    ),
    (*own("convert", 12), Frame("wait", STD + "subprocess.py", 1264)),
    (*own("answer", 13), Frame("recv_into", STD + "socket.py", 718)),
    (*own("flush", 14), Frame("Event.wait", STD + "threading.py", 629)),
    (
        MAIN,
        Frame("_try_get_data", LOADER, 1291),
        Frame("wait", STD + "multiprocessing/connection.py", 947),
    ),
)
SITES = (
    site(9, "time.sleep(3600)"),
    site(10, "lock.acquire()"),
    site(11, "row = rows.get()"),
    site(12, "child.wait()"),
    site(13, "sock.recv(4)"),
    site(14, "done.wait()"),
)


def situation(draw: random.Random) -> list[Fact | list[Fact]]:
    """A rank whose main thread stands, others in a collective, and noise around it."""
    world, look = draw.randint(2, 4), draw.uniform(0.4, 6.0)
    stuck, stack = draw.randrange(world), draw.choice(STANDS)
    looks = [stack] * draw.randint(2, 4)
    facts: list[Fact | list[Fact]] = [job(world), *SITES]
    facts += [
        rank(number, ALL_REDUCE, ALL_REDUCE, age_s=draw.uniform(2.5, 600.0))
        for number in range(world)
        if number != stuck
    ]
    age_s = draw.uniform(2.5, 600.0)
    noise: dict[str, object] = {
        "all_cpu_s": draw.choice([0.0, 0.5 * look, look]),
        "grew_bytes": draw.choice([0, 1 << 24]),
        "wchan": draw.choice(["", "futex_do_wait"]),
    }
    if stack[-1].base != "train.py":  # where it stands in its own code, it may be what writes
        noise["wrote_bytes"] = draw.choice([0, 80, 10 << 20])
    facts.append(
        rank(stuck, *looks, looked_s=look, age_s=age_s, stillness=Stillness(age_s), **noise)
    )
    pid = 100 + stuck
    if draw.random() < 0.6:  # a thread of telemetry
        facts += [
            Thread(
                ("E7",),
                "job",
                stuck,
                pid=pid,
                look=number + 1,
                os_thread_id=555,
                frames=(
                    Frame("run", STD + "threading.py", 982),
                    Frame("beat", "/job/tele.py", 3 + number),
                ),
            )
            for number in range(2)
        ]
    if draw.random() < 0.6:
        worker = (MAIN, Frame("__getitem__", "/job/data.py", 8))
        facts.append(process(300, worker, worker, role="loader-worker", ppid=pid, wrote_bytes=0))
        facts.append(site(8, "lock.acquire()", file="/job/data.py"))
    if draw.random() < 0.4 and stack[-1].base != "subprocess.py":  # somebody else's work
        facts.append(
            process(301, own("beat", 3), own("beat", 4), role="child", ppid=pid, state="R")
        )
    return facts


@pytest.mark.parametrize("seed", range(400))
def test_nobody_is_healthy_while_a_main_thread_stands_and_others_wait_for_it(seed: int) -> None:
    found = view(*situation(random.Random(seed)))
    assert found.verdict != "healthy", found.says


MANAGERS = STD + "multiprocess/managers.py"


def test_a_servant_that_answers_is_no_progress_of_those_who_ask() -> None:
    """A manager of multiprocessing answers `nothing yet` as often as it is asked."""
    asks = (*own("prepare", 21), Frame("BaseProxy._callmethod", MANAGERS, 822))
    serves = (
        MAIN,
        Frame("Server.serve_forever", MANAGERS, 176),
        Frame("Event.wait", STD + "threading.py", 629),
    )
    found = view(
        job(2),
        rank(0, asks, asks, age_s=0.01, switches=60),
        rank(1),
        process(200, serves, serves, rank=0, role="loader-worker", ppid=100, wrote_bytes=5145),
        process(201, own("embed", 12), own("embed", 12), rank=0, role="loader-worker", ppid=100),
        site(21, "rows = table.map(embed, num_proc=2)"),
        site(12, "x = embed(ids)"),
    )

    assert (found.verdict, found.groups[0].ranks) == ("hung", (0,))
    assert "pid 201" in found.waits_for[0]


@pytest.mark.parametrize(
    ("switches", "cpu_s", "verdict"),
    [
        pytest.param(1700, 0.05, "hung", id="asks in vain"),
        pytest.param(1700, 6.0, "healthy", id="works as well"),
        pytest.param(20, 0.05, "undetermined", id="waits for something else"),
    ],
)
def test_who_asks_in_vain_for_the_interpreter_lock_does_not_go_on(
    switches: int, cpu_s: float, verdict: str
) -> None:
    """However it is met: such a thread runs for a moment 200 times a second."""
    thread = (MAIN, Frame("fill", "/job/train.py", 31))
    keeps = [
        Thread(
            ("E7",), "job", 1, 101, look=look, name="prefetch", os_thread_id=7, owns_gil=True,
            frames=thread,
        )
        for look in (1, 2, 3)
    ]  # fmt: skip
    state = "R" if cpu_s < 1 < switches / 100 else "S"
    waits = (*own("take", 10), Frame("get", STD + "queue.py", 171)) if switches < 100 else None
    looks = [waits or own("take", 10)] * 3
    found = view(
        job(2),
        rank(0),
        rank(
            1, *looks, state=state, age_s=0.0, looked_s=10.0, switches=switches, cpu_s=cpu_s,
            all_cpu_s=9.9, queued_s=0.1,
        ),
        *keeps,
        site(10, "batch = next(batches)"),
        site(31, "if ACRONYM.fullmatch(name):"),
    )  # fmt: skip

    assert found.verdict == verdict


@pytest.mark.parametrize(("waits_s", "verdict"), [(20.0, "undetermined"), (70.0, "hung")])
def test_a_call_that_keeps_the_lock_for_a_minute_hangs_whatever_memory_it_takes(
    waits_s: float, verdict: str
) -> None:
    power = (MAIN, Frame("evaluate", "/job/train.py", 19))
    keeps = [
        Thread(
            ("E7",), "job", 1, 101, look=look, name="verify_0", os_thread_id=7, owns_gil=True,
            frames=power,
        )
        for look in (1, 2, 3)
    ]  # fmt: skip
    asks = (*own("score", 38), Frame("Condition.wait", STD + "threading.py", 331))
    found = view(
        job(2),
        rank(0, age_s=waits_s),
        rank(
            1, asks, asks, asks, age_s=0.005, looked_s=10.3, switches=2025, cpu_s=0.1,
            all_cpu_s=10.2, grew_bytes=1 << 30,
        ),
        *keeps,
        site(38, "return future.result(timeout=5)"),
        site(19, "return OPS[type(node.op)](left, right)"),
    )  # fmt: skip

    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("own_bytes", "verdict"),
    [
        pytest.param(0, "undetermined", id="a thread of telemetry, or what it waits for"),
        pytest.param(1 << 20, "healthy", id="it writes itself"),
        pytest.param(None, "healthy", id="a case of before that was read"),
    ],
)
def test_what_another_thread_writes_does_not_make_a_rank_go_on(
    own_bytes: int | None, verdict: str
) -> None:
    polls = own("fetch_shard", 9)
    found = view(
        job(2),
        rank(0),
        rank(
            1, polls, polls, age_s=0.1, switches=8,
            stillness=Stillness(0.1, wakes=True), wrote_bytes=400_000, main_wrote_bytes=own_bytes,
        ),
        site(9, "time.sleep(0.2)", ("while", "while not os.path.exists(flag):")),
    )  # fmt: skip

    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("answered_bytes", "verdict"), [(5145, "healthy"), (0, "undetermined")], ids=["fed", "silent"]
)
def test_who_hands_out_work_writes_by_a_thread_of_its_own(
    answered_bytes: int, verdict: str
) -> None:
    steps, collates = own("train_step", 9), own("collate", 20)
    found = view(
        job(2),
        rank(0),
        rank(
            1, steps, steps, age_s=0.1, switches=8, stillness=Stillness(0.1, wakes=True),
            wrote_bytes=400_000, main_wrote_bytes=0,
        ),
        process(
            300, collates, collates, rank=1, role="loader-worker", ppid=101, wrote_bytes=answered_bytes
        ),
        site(9, "time.sleep(0.2)", ("while", "while not os.path.exists(flag):")),
    )  # fmt: skip

    assert found.verdict == verdict


def test_a_look_for_which_no_time_was_left_leaves_open_whether_the_job_is_slow() -> None:
    ranks = facts_of(job(2), rank(0, state="R", age_s=0), rank(1, state="R", age_s=0)).all
    late = Refusal("time", "timed_out", "over before samples of the ranks", cell=CELL)

    (whole,), (cut,) = live_views(Facts(ranks)), live_views(Facts(ranks, refused=(late,)))

    assert (whole.verdict, cut.verdict) == ("healthy", "undetermined")
    assert cut.says.endswith("but over before samples of the ranks")
