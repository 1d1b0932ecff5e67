"""What a rank that stands still waits for, in words."""

from __future__ import annotations

from tests.unit.waits import live_rows
from tests.unit.waits.live_rows import CELL, STD, job, own, process, rank, site
from trainprobe.causes.awaited import awaited
from trainprobe.causes.child_processes import started_afresh
from trainprobe.causes.classes import what_it_does
from trainprobe.causes.processes.queue_deadlock import CAUSE as QUEUE_DEADLOCK
from trainprobe.causes.scene import Scene
from trainprobe.collect.collectors.awaited import AwaitedPath, AwaitedValue
from trainprobe.facts import Connection, PipeEnd, Thread
from trainprobe.model.facts import Fact
from trainprobe.stacks.blocked_calls import BlockedCall
from trainprobe.stacks.frames import Frame

LOGS = (*own("step", 50), Frame("Handler.acquire", STD + "logging/__init__.py", 927))
FLUSHES = (
    Frame("report", "/job/train.py", 9),
    Frame("StreamHandler.flush", STD + "logging/__init__.py", 1094),
)
GET = (*own("next_batch", 20), Frame("Queue.get", STD + "queue.py", 171))
WAIT = own("take", 31)


def scene_of(*facts: Fact | list[Fact]) -> Scene:
    return live_rows.scene_of(job(2), rank(0), *facts)


def says(*facts: Fact | list[Fact]) -> str:
    found = awaited(scene_of(*facts), 1)
    return found.says if found is not None else ""


def other_thread(frames: tuple[Frame, ...], name: str) -> Thread:
    return Thread(("E9",), CELL, 1, pid=101, look=2, name=name, os_thread_id=105, frames=frames)


def test_the_port_at_which_it_listens_is_said_with_who_may_come() -> None:
    waits = (*WAIT, Frame("socket.accept", STD + "socket.py", 294))
    stuck = rank(1, waits, waits, call=BlockedCall("accept4", reads=(9,)))
    ports: list[Fact] = [
        Connection(("E7",), CELL, 1, pid=101, fd=fd, kind="tcp", state="LISTEN", local=local)
        for fd, local in ((7, "127.0.0.1:4001"), (9, "127.0.0.1:4444"))
    ]

    scene = scene_of(stuck, ports)

    assert says(stuck, ports) == "somebody to connect to 127.0.0.1:4444"
    assert what_it_does(scene, 1) == (
        "waits-outside",
        "waits at train.py:31 in take for somebody to connect to 127.0.0.1:4444",
    )


def test_who_asks_a_person_waits_for_nothing_that_the_job_started() -> None:
    asks = (*WAIT, Frame("Pdb.interaction", STD + "pdb.py", 400))

    does = what_it_does(scene_of(rank(1, asks, asks)), 1)

    assert does is not None
    assert does[0] == "waits-outside"


def test_the_file_of_a_poll_is_said() -> None:
    path = AwaitedPath(("E8",), CELL, 1, pid=101, path="/data/step-12", exists=False)
    loop = site(31, "time.sleep(0.1)", ("while", "while not os.path.exists(path):"))

    assert says(rank(1, WAIT, WAIT), loop, path) == "the file /data/step-12, which does not exist"


def test_the_values_of_a_condition_are_said() -> None:
    value = AwaitedValue(("E8",), CELL, 1, pid=101, name="filled", value="3")
    loop = site(31, "time.sleep(0.1)", ("while", "while filled < wanted:"))

    text = says(rank(1, WAIT, WAIT, wchan="hrtimer_nanosleep"), loop, value)

    assert text.endswith("the end of `while filled < wanted` (line 30), with filled = 3")


def test_the_lock_of_logging_is_held_by_the_thread_that_writes_to_a_full_pipe() -> None:
    waits = rank(
        1,
        LOGS,
        LOGS,
        wchan="futex_do_wait",
        thread_calls=((105, "anon_pipe_write", "1 0x2 0x7f 0x1 0x0 0x0 0x0 0x7f 0x7f"),),
    )
    pipe = PipeEnd(("E6",), CELL, 1, pid=101, fd=2, path="pipe:[7]", mode="w", other_pids=(913,))

    text = says(waits, other_thread(FLUSHES, "reporter"), pipe)

    assert text == (
        "the lock of logging that reporter at train.py:9 in report holds, which waits to write to"
        " its stderr, a pipe, which is full and not read by pid 913"
    )


def test_a_key_of_the_store_is_a_wait_for_whoever_sets_it() -> None:
    get = own("agree", 40)
    line = site(40, 'config = store.get("run/config")')

    text = says(rank(1, get, get, wchan="do_poll"), line)

    assert text.startswith(
        'a key of the store that nobody has set (`config = store.get("run/config'
    )


def test_a_queue_of_threads_is_fed_by_threads() -> None:
    produces = other_thread((Frame("produce", "/job/train.py", 7),), "prefetch")
    asks = rank(1, GET, GET, wchan="futex_do_wait")

    fed = QUEUE_DEADLOCK.summary(scene_of(asks, produces))
    unfed = QUEUE_DEADLOCK.summary(scene_of(asks))

    assert "which thread prefetch at train.py:7 in produce does not fill" in fed
    assert unfed.endswith("of its own process, which no thread feeds any more")


def test_a_child_is_said_with_what_it_waits_for() -> None:
    run = (*own("fetch", 40), Frame("Popen.wait", STD + "subprocess.py", 1264))
    parent = rank(1, run, run, wchan="do_wait", call=BlockedCall("wait4", child=700))
    child = process(
        700,
        rank=1,
        role="child",
        ppid=101,
        cmdline="flock /x gzip",
        wchan="hrtimer_nanosleep",
    )

    assert says(parent, child) == "its child `flock /x gzip` (pid 700), which sleeps"


def test_the_output_of_an_ended_command_is_kept_open_by_what_it_left_behind() -> None:
    run = (*own("fetch", 40), Frame("Popen.communicate", STD + "subprocess.py", 1196))
    parent = rank(1, run, run, wchan="anon_pipe_read", call=BlockedCall("read", (20,)))
    ended = process(700, rank=1, role="child", ppid=101, state="Z", cmdline="[bash]")
    server = process(701, rank=1, role="child", ppid=1, cmdline="/usr/bin/python3 /job/server.py")
    pipe = PipeEnd(("E6",), CELL, 1, pid=101, fd=20, path="pipe:[7]", mode="r", other_pids=(701,))

    said = says(parent, ended, server, pipe)

    assert said.startswith(
        "the end of a pipe, which `python3 server.py` (pid 701) still keeps open"
    )


def test_a_program_that_was_started_is_no_fork_of_its_parent() -> None:
    run = (*own("fetch", 40), Frame("Popen.wait", STD + "subprocess.py", 1264))
    parent = rank(1, run, run, wchan="do_wait", cmdline="python train.py")
    helper = (Frame("<module>", "/job/helper.py", 9),)
    forked = (*own("fetch", 41), *helper)

    def afresh(frames: tuple[Frame, ...], cmdline: str) -> bool:
        child = process(700, frames, frames, rank=1, role="child", ppid=101, cmdline=cmdline)
        scene = scene_of(parent, child)
        (main,) = (one for one in scene.children([1]) if one.pid == 700)
        return started_afresh(scene, main)

    assert afresh(helper, "python helper.py")
    assert not afresh(forked, "python: a forked child of another name")
    assert not afresh(helper, "python train.py")


def test_a_question_through_a_pipe_is_a_wait_for_a_person() -> None:
    asks = rank(1, WAIT, WAIT, wchan="anon_pipe_read", call=BlockedCall("read", (0,)))
    pipe = PipeEnd(("E6",), CELL, 1, pid=101, fd=0, path="pipe:[7]", mode="r", other_pids=(913,))
    scene = scene_of(asks, site(31, 'answer = input("Overwrite? ")'), pipe)
    found = awaited(scene, 1)

    assert found is not None
    assert found.says == "input on its stdin"
    assert not tuple(QUEUE_DEADLOCK.weigh(scene))


def test_a_thread_that_is_joined_is_named_with_its_place() -> None:
    threading = "/env/lib/python3.11/threading.py"
    joins = (*own("wait", 19), Frame("Thread.join", threading, 1119))
    saver = other_thread((Frame("Saver._write", "/job/saver.py", 37),), "save-40")

    assert says(rank(1, joins, joins, wchan="futex_do_wait"), saver) == (
        "its thread save-40 at saver.py:37 in Saver._write, which it joins"
    )
