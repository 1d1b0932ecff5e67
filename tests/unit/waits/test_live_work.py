"""Healthy live jobs that look stuck: one rank works for long, and the others wait for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.waits.live_rows import (
    ALL_REDUCE,
    LOADER,
    MAIN,
    SITE,
    STD,
    job,
    own,
    process,
    rank,
    site,
    view,
)
from trainprobe.facts import Thread
from trainprobe.stacks.frames import Frame

BUSY: dict[str, Any] = {"state": "R", "age_s": 0.0}
TRAIN = ("while", "while step < max_steps:")
FOREVER = ("while", "while True:")


def others_wait(
    *looks: tuple[Frame, ...],
    text: str = "",
    blocks: tuple[tuple[str, str], ...] = (),
    **more: object,
) -> str:
    """The verdict on a job whose rank 1 stands at line 50 of its own, or deeper, while ranks 0
    and 2 have waited for a minute.
    """
    return view(job(3), rank(0), rank(2), rank(1, *looks, **more), site(50, text, *blocks)).verdict


def below(*frames: Frame) -> tuple[Frame, ...]:
    return (*own("work", 50), *frames)


@pytest.mark.parametrize("blocks", [(), (TRAIN,), (FOREVER,)])
def test_one_long_operation_of_c_is_work_in_any_loop(blocks: tuple[tuple[str, str], ...]) -> None:
    here = below()

    assert others_wait(here, here, text="u, s, v = a.svd()", blocks=blocks, **BUSY) == "healthy"


@pytest.mark.parametrize(
    ("text", "blocks", "more"),
    [
        ("rows.append(clean(next(lines)))", (("while", "while len(rows) < size:"),), {}),
        ("position += step(position)", (("while", "while position < len(text):"),), {}),
        ("chunks.append(parse(queue.popleft()))", (FOREVER,), {"grew_bytes": 9 << 20}),
    ],
)
def test_a_loop_of_python_with_an_end_in_sight_is_work(
    text: str, blocks: tuple[tuple[str, str], ...], more: dict[str, Any]
) -> None:
    here = below()

    assert others_wait(here, here, text=text, blocks=blocks, gil=True, **BUSY, **more) == "healthy"


@pytest.mark.parametrize(
    "looks",
    [
        pytest.param(
            (
                below(Frame("generate", SITE + "transformers/generation/utils.py", 2200 + 4 * n))
                for n in range(2)
            ),
            id="generates",
        ),
        pytest.param(
            (below(Frame("encode", SITE + "tokenizers/__init__.py", 90)) for _ in range(2)),
            id="tokenises",
        ),
        pytest.param(
            (
                below(
                    Frame("loads", STD + "json/__init__.py", 346),
                    Frame("decode", STD + "json/decoder.py", 337),
                )
                for _ in range(2)
            ),
            id="reads JSON",
        ),
        pytest.param(
            (
                below(Frame("tqdm.__iter__", SITE + "tqdm/std.py", 1181)),
                below(Frame("relu", SITE + "torch/nn/functional.py", 1500)),
            ),
            id="tqdm",
        ),
    ],
)
def test_long_calls_of_libraries_are_work(looks: tuple[tuple[Frame, ...], ...]) -> None:
    assert others_wait(*looks, text="out = run(x)", gil=True, **BUSY) == "healthy"


def test_a_main_thread_that_only_joins_the_thread_that_trains_is_that_thread() -> None:
    joins = below(Frame("Thread.join", STD + "threading.py", 1119))
    steps = [
        (
            Frame("_bootstrap", STD + "threading.py", 1002),
            Frame("fit", "/job/train.py", 70),
            Frame("linear", SITE + "torch/nn/modules/linear.py", 114 + n),
        )
        for n in (0, 2)
    ]
    trains = [
        Thread(("E9",), "job", 1, pid=101, look=number + 1, os_thread_id=555, frames=frames)
        for number, frames in enumerate(steps)
    ]

    found = view(
        job(2),
        rank(0),
        rank(1, joins, joins, wchan="futex_do_wait", all_cpu_s=0.9),
        *trains,
        site(50, "trainer.join()"),
    )

    assert found.verdict == "healthy"


def test_the_same_main_thread_waits_where_that_thread_waits_in_a_collective() -> None:
    joins = below(Frame("Thread.join", STD + "threading.py", 1119))
    waits = [
        Thread(
            ("E9",), "job", number, pid=100 + number, look=look, os_thread_id=555, frames=ALL_REDUCE
        )
        for number in (0, 1)
        for look in (1, 2)
    ]
    facts = [rank(number, joins, joins, wchan="futex_do_wait") for number in (0, 1)]

    found = view(
        job(3),
        *facts,
        *waits,
        rank(2, own("poll", 9), own("poll", 9)),
        site(50, "trainer.join()"),
        site(9, "time.sleep(3600)"),
    )

    assert (found.verdict, found.groups[0].ranks) == ("hung", (2,))


def test_servers_that_wait_for_requests_are_idle() -> None:
    select = (
        *own("serve", 50),
        Frame("run_forever", STD + "asyncio/base_events.py", 603),
        Frame("select", STD + "selectors.py", 468),
    )

    assert (
        view(job(2), *(rank(number, select, select) for number in (0, 1))).verdict == "undetermined"
    ), "idle or stuck: nobody goes on"


def test_followers_of_a_server_that_waits_for_requests_may_be_idle() -> None:
    """Rank 0 of an inference server waits for users, the others for its broadcast: idle, and
    never more than that.
    """
    select = (
        *own("serve", 50),
        Frame("run", SITE + "uvicorn/server.py", 65),
        Frame("run_forever", STD + "asyncio/base_events.py", 603),
        Frame("select", STD + "selectors.py", 468),
    )
    waits = (MAIN, Frame("follow", "/job/train.py", 88), ALL_REDUCE[-1])

    found = view(job(3), rank(0, select, select), rank(1, waits, waits), rank(2, waits, waits))

    assert (found.verdict, found.conclusive) == ("undetermined", False)


RPC_API = SITE + "torch/distributed/rpc/api.py"


def test_a_rank_that_only_answers_others_is_missed_in_their_barrier() -> None:
    """Rank 0 asks rank 1, which waits for rank 2 in a barrier; rank 2 is done and answers only."""
    shutdown = (*own("main", 32), Frame("shutdown", RPC_API, 383))
    barrier = (MAIN, Frame("close", "/job/train.py", 57), ALL_REDUCE[-1])

    found = view(
        job(3), rank(0, barrier, barrier), rank(1, barrier, barrier), rank(2, shutdown, shutdown)
    )

    assert (found.verdict, [group.ranks for group in found.groups]) == ("hung", [(2,)])


def test_one_that_answers_others_is_idle_while_somebody_may_still_ask_it() -> None:
    shutdown = (*own("main", 32), Frame("shutdown", RPC_API, 383))
    barrier = (MAIN, Frame("close", "/job/train.py", 57), ALL_REDUCE[-1])
    works = rank(0, own("work", 20), own("work", 21), **BUSY)

    found = view(job(3), works, rank(1, barrier, barrier), rank(2, shutdown, shutdown))

    assert found.verdict != "hung"


def test_first_batches_of_workers_take_their_time() -> None:
    get = below(Frame("__next__", LOADER, 725), Frame("_get_data", LOADER, 1464))
    worker = process(
        700,
        own("__getitem__", 60),
        own("__getitem__", 61),
        rank=1,
        role="loader-worker",
        ppid=101,
        **BUSY,
    )

    assert view(job(2), rank(0, age_s=4.0), rank(1, get, get), worker).verdict == "healthy"


def test_a_worker_that_goes_round_while_all_wait_for_a_minute_hangs() -> None:
    get = below(Frame("__next__", LOADER, 725), Frame("_get_data", LOADER, 1464))
    loop = ("while", "while produced < size:")
    sites = [site(line, "k = rng.choices(parts)[0]", loop) for line in (60, 61)]

    def found(age_s: float, **more: object) -> str:
        worker = process(
            700,
            own("__iter__", 60),
            own("__iter__", 61),
            rank=1,
            role="loader-worker",
            ppid=101,
            **{**BUSY, **more},
        )
        waits = rank(0, age_s=age_s)
        return view(job(2), waits, rank(1, get, get, age_s=1.0), worker, *sites).verdict

    assert found(4.0) == "healthy"
    assert found(30.0) == "undetermined"
    assert found(90.0) == "hung"
    assert found(90.0, wrote_bytes=200) == "slow"
    assert found(90.0, grew_bytes=8 << 20) == "slow"


def test_a_long_call_of_a_worker_for_which_all_wait_is_undetermined() -> None:
    get = below(Frame("__next__", LOADER, 725), Frame("_get_data", LOADER, 1464))
    item = own("__getitem__", 60)
    worker = process(700, item, item, rank=1, role="loader-worker", ppid=101, **BUSY)
    found = view(job(2), rank(0, age_s=90.0), rank(1, get, get, age_s=1.0), worker)

    assert (found.verdict, found.conclusive) == ("undetermined", False)
    assert "--watch 60" in found.next_look
