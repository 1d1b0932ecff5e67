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


SERVER = (
    Frame("<module>", "/job/scorer.py", 40),
    Frame("BaseServer.serve_forever", "/usr/lib/python3.11/socketserver.py", 233),
    Frame("_PollLikeSelector.select", "/usr/lib/python3.11/selectors.py", 415),
)
ANSWERS = (
    Frame("Thread._bootstrap", "/usr/lib/python3.11/threading.py", 1002),
    Frame("ThreadingMixIn.process_request_thread", "/usr/lib/python3.11/socketserver.py", 691),
    Frame("Handler.reply", "/job/scorer.py", 19),
    Frame("BaseHTTPRequestHandler.log_message", "/usr/lib/python3.11/http/server.py", 596),
)


def thread(tid: int, frames: tuple[Frame, ...], *, main: bool = False) -> Thread:
    return Thread((), "job", 0, pid=12, os_thread_id=tid, main=main, frames=frames)


def test_a_server_stands_where_the_thread_stands_that_answers() -> None:
    state = ProcessState(
        (),
        "job",
        0,
        pid=12,
        state="S",
        wchan="do_sys_poll",
        syscall="7 0x1 0x1 0x1f4",
        call=BlockedCall("poll", reads=(3,)),
        thread_calls=((14, "anon_pipe_write", "1 0x2 0x7f 0x42 0x0 0x0 0x0 0x7f 0x7f"),),
    )
    facts = join_threads([thread(12, SERVER, main=True), thread(14, ANSWERS), state])

    (main,) = [fact for fact in facts if isinstance(fact, MainThread)]
    (process,) = [fact for fact in facts if isinstance(fact, ProcessState)]
    assert (main.where, main.leaf, main.op) == ("scorer.py:19 in Handler.reply", "file-io", "pipe")
    assert (process.wchan, process.blocked.writes) == ("anon_pipe_write", (2,))


def test_a_thread_that_waits_for_the_next_request_does_no_work_of_its_server() -> None:
    idle = (*ANSWERS[:2], Frame("SocketIO.readinto", "/usr/lib/python3.11/socket.py", 706))
    facts = join_threads([thread(12, SERVER, main=True), thread(14, idle)])
    (main,) = [fact for fact in facts if isinstance(fact, MainThread)]
    assert main.frames == SERVER


def test_a_server_of_one_thread_is_where_its_handler_is() -> None:
    inside = (*SERVER[:2], Frame("Handler.do_POST", "/job/scorer.py", 30))
    facts = join_threads([thread(12, inside, main=True), thread(14, ANSWERS)])
    (main,) = [fact for fact in facts if isinstance(fact, MainThread)]
    assert main.where == "scorer.py:30 in Handler.do_POST"
