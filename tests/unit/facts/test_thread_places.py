"""Where a main thread waits that stands in a C function of torch, below a line of the user's."""

from __future__ import annotations

import pytest

from trainprobe.facts import Connection, Job, MainThread, ProcessState, Thread
from trainprobe.facts.thread_places import join_threads
from trainprobe.stacks.blocked_calls import BlockedCall
from trainprobe.stacks.frames import Frame

FETCH = (
    Frame("main", "/job/node.py", 54),
    Frame("Courier.fetch", "/job/courier.py", 19, text="return load(self.kv.get(key))"),
)


@pytest.mark.parametrize(
    ("port", "leaf"), [("29500", ("store-wait", "key")), ("8080", ("net-io", "poll"))]
)
def test_who_waits_on_the_port_of_the_store_waits_in_the_store(
    port: str, leaf: tuple[str, str]
) -> None:
    (found,) = [
        fact
        for fact in join_threads(
            [
                Job((), "job", None, environment={"job": {"MASTER_PORT": "29500"}}),
                Thread((), "job", 2, pid=12, main=True, look=1, frames=FETCH),
                ProcessState(
                    (),
                    "job",
                    2,
                    pid=12,
                    state="S",
                    wchan="do_sys_poll",
                    syscall="7 0x1 0x1 0x3e8",
                    call=BlockedCall("poll", reads=(11,)),
                ),
                Connection((), "job", 2, pid=12, fd=11, remote=f"127.0.0.1:{port}"),
            ]
        )
        if isinstance(fact, MainThread)
    ]
    assert (found.leaf, found.op) == leaf


@pytest.mark.parametrize(
    ("text", "op"),
    [
        ("self.store.wait([f'shard/{r}' for r in range(self.world)], timeout)", "store.wait"),
        ("self.store.wait(['shard/0'], timeout)", "key"),
    ],
)
def test_who_waits_for_a_key_of_every_rank_makes_a_call_that_all_must_make(
    text: str, op: str
) -> None:
    frames = (Frame("main", "/job/node.py", 54), Frame("leave", "/job/saver.py", 13, text=text))
    state = ProcessState((), "job", 2, pid=12, state="S", wchan="do_sys_poll", syscall="7 0x1 0x1")
    facts = join_threads([Thread((), "job", 2, pid=12, main=True, frames=frames), state])

    (found,) = [fact for fact in facts if isinstance(fact, MainThread)]

    assert (found.leaf, found.op, found.at_a_key) == ("store-wait", op, True)
