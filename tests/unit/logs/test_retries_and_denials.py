"""What has not failed: tries that go on, what is denied, strangers at a port, and logs that begin in
the middle. And what has: a fork that is refused, a lock that the file system does not know.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.facts.log_mixtures import _mixes
from trainprobe.logtext.attempts import Attempts
from trainprobe.logtext.levels import denied
from trainprobe.logtext.phases import says_it_waits
from trainprobe.logtext.retries import copes, tries_again
from trainprobe.model.diagnosis import Report
from trainprobe.pipelines import explain


def explained(folder: Path, text: str) -> Report:
    path = folder / "a.log"
    path.write_text(text, encoding="utf-8")
    return explain([str(path)])


TRY = "node-a:7:9 [0] NCCL INFO socketPollConnect: connect returned No route to host, retrying ({0}/34) after sleep for 100 msec\n"
GAI = "[W socket.cpp:558] [c10d] The IPv6 network addresses of (boss-0.svc, 3389) cannot be retrieved (gai error: -2 - Name or service not known).\n"


def test_tries_in_vain_are_a_hang_and_no_crash(tmp_path: Path) -> None:
    report = explained(tmp_path, "".join(map(TRY.format, range(5))))

    assert (report.verdict, report.causes[0].id) == ("hung", "firewall-or-route")


def test_a_name_that_was_sought_once_is_no_crash(tmp_path: Path) -> None:
    once = explained(tmp_path, f"start\n{GAI}")
    watched = explained(tmp_path, f"The pods do not connect:\n{GAI}")

    assert (once.verdict, watched.verdict) == ("undetermined", "hung")
    assert once.causes[0].id == watched.causes[0].id == "hostname-resolution"
    assert once.causes[0].confidence < watched.causes[0].confidence


@pytest.mark.parametrize(
    ("line", "tries"),
    [
        ("Call to connect returned Connection refused, retrying", True),
        (GAI, True),
        ("[W1] [c10d] The client socket has failed to connect to [a]:1 (errno: 111)", True),
        ("The client socket has failed to connect to any network address of (a, 1)", False),
        ("RuntimeError: The IPv6 network addresses of (a, 1) cannot be retrieved", False),
        ("Connect to 10.2.0.7<21724> failed : Connection refused", False),
    ],
)
def test_who_tries_again(line: str, tries: bool) -> None:
    assert tries_again(line) is tries


@pytest.mark.parametrize(
    ("line", "does"),
    [
        ("Using the latest cached version of it since it couldn't be found on the Hub", True),
        ("ibverbs could not be opened, falling back to sockets", True),
        ("Couldn't reach the Hugging Face Hub", False),
        ("ValueError: using a mask, use none instead", False),
    ],
)
def test_who_does_something_else_instead(line: str, does: bool) -> None:
    assert copes(line) is does


@pytest.mark.parametrize(
    ("before", "is_denied"),
    [
        ("Kernel log: no ", True),
        ('no AER errors, no "GPU has ', True),
        ("without any ", True),
        ("no memory: ", False),
        ("kernel: NVRM: ", False),
        ('no "quotes" here, ', False),
    ],
)
def test_a_word_before_it_denies_it(before: str, is_denied: bool) -> None:
    assert denied(before) is is_denied


def test_what_was_looked_for_in_vain_is_no_cause(tmp_path: Path) -> None:
    said = 'The first all_reduce (2 cards) never comes back.\nKernel log: {0} "GPU has fallen off the bus".\n'
    found = explained(tmp_path, said.format("it says"))
    denied_ = explained(tmp_path, said.format("no Xid, no"))

    assert found.causes[0].id == "gpu-fell-off-bus"
    assert (denied_.verdict, denied_.causes[0].id) == ("hung", "unknown")


@pytest.mark.parametrize(
    ("line", "waits"),
    [
        ("The task hangs with this line until a timeout is thrown.", True),
        ("It trains well. Only at its end the process never returns", True),
        ("Each later run stalls like this, with every model.", True),
        ("It no longer hangs with the new driver", False),
        ("This can cause a hang if the mapping is wrong", False),
        ("The run never hangs", False),
    ],
)
def test_whoever_watched_it_says_that_it_waits(line: str, waits: bool) -> None:
    assert says_it_waits(line) is waits


def test_a_stranger_at_a_port_of_nccl_ends_nothing(tmp_path: Path) -> None:
    lost = "node-a:7:9 [2] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer 10.0.0.9<46494>\n"
    door = "{0} [2] proxy.cc:1494 NCCL WARN [Service thread] Accept failed Success\n"

    assert explained(tmp_path, lost + door.format("node-a:7:9")).verdict == "undetermined"
    assert not explained(tmp_path, lost + door.format("node-a:7:9")).causes
    assert explained(tmp_path, lost + door.format("node-b:7:9")).verdict == "crashed"


def test_a_log_that_begins_in_the_middle_does_not_begin_again(tmp_path: Path) -> None:
    bar = " 93%|#########3| {0}/20000 [5:43:21<25:20,  0.90it/s, loss=3.400]\n"
    end = "slurmstepd: error: *** STEP 61.0 ON n1 CANCELLED AT 2031-01-16T17:27:25 DUE TO TIME LIMIT ***\n"
    text = bar.format(18625) + bar.format(18626) + end + bar.format(18626) + bar.format(18627)
    report = explained(tmp_path, text)

    assert (report.verdict, report.causes[0].id) == ("crashed", "preempted-or-hangup")


def test_steps_that_go_back_begin_again() -> None:
    def last(*steps: int) -> int:
        attempts = Attempts()
        before = [f"step {step} loss 0.5 and more" for step in (3, 4, 5)]
        lost = "failed (exitcode: 1) local_rank: 1 (pid: 12791) of binary"
        return [
            attempts.feed(line)
            for line in (*before, lost, *(f"step {step} loss 0.5 and more" for step in steps))
        ][-1]

    assert (last(3), last(4, 5), last(6, 7)) == (1, 1, 0)


def test_a_fork_that_libfabric_refuses(tmp_path: Path) -> None:
    text = (
        "A process has executed an operation involving a call\nto the fork() system call.\n"
        "As a result, the libfabric EFA provider is operating in\na condition that could result in"
        " memory corruption\nYour job will now abort.\n"
    )
    report = explained(tmp_path, text)

    assert (report.verdict, report.causes[0].id) == ("crashed", "net-plugin-fork-failure")


def test_a_signal_told_with_its_place_in_the_code(tmp_path: Path) -> None:
    text = "python:4711 terminated with signal 11 at PC=7f1c2ab96a7c SP=7fff31d25f50.  Backtrace:\n"

    assert explained(tmp_path, text).verdict == "crashed"


@pytest.mark.parametrize(
    ("number", "call", "cause"),
    [
        (38, "fcntl.flock(fd, fcntl.LOCK_EX)", "file-lock-held"),
        (38, "os.memfd_create(name)", "user-exception"),
        (13, "fcntl.flock(fd, fcntl.LOCK_EX)", ""),
    ],
)
def test_a_lock_that_the_file_system_does_not_know(
    number: int, call: str, cause: str, tmp_path: Path
) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/w/train.py", line 9, in load\n    take(path)\n'
        f'  File "/w/cache.py", line 43, in take\n    {call}\n'
        f"OSError: [Errno {number}] Not so\n"
    )
    ids = [one.id for one in explained(tmp_path, text).causes[:1]]

    assert ids == [cause] if cause else ids != ["file-lock-held"]


def test_work_that_was_announced_one_limit_before(tmp_path: Path) -> None:
    text = (
        "2031-03-11 12:{0}:25,496 - root - INFO - Saving latest checkpoint of a model trained for a while\n"
        "2031-03-11 12:48:25,681 - root - ERROR - [Rank 7] Watchdog caught collective operation timeout:"
        " WorkNCCL(SeqNum=1510, OpType=ALLREDUCE, NumelIn=3061, NumelOut=3061, Timeout(ms)=1200000) ran"
        " for 1200027 milliseconds before timing out.\n"
    )

    def points(minute: int) -> int:
        causes = explained(tmp_path, text.format(minute)).causes
        found = [one for one in causes if one.id == "rank0-long-task"]
        return found[0].points if found else 0

    assert points(28) >= points(40) + 10


@pytest.mark.parametrize(
    ("text", "mixes"),
    [
        ("I train on video and image sets together", True),
        ("It freezes when text-only rows and image rows are in one set", True),
        ("I train on image sets and more image sets", False),
        ("loading images and videos from /data/set", False),
    ],
)
def test_rows_of_several_kinds(text: str, mixes: bool) -> None:
    assert _mixes(text) is mixes


def test_rows_of_several_kinds_take_other_layers(tmp_path: Path) -> None:
    text = (
        "{0}\n[rank7]:[E827 23:40:45.2 ProcessGroupNCCL.cpp:632] [Rank 7] Watchdog caught collective"
        " operation timeout: WorkNCCL(SeqNum=56, OpType=_ALLGATHER_BASE, NumelIn=6288, NumelOut=50304,"
        " Timeout(ms)=1800000) ran for 1800006 milliseconds before timing out.\n"
    )
    told = explained(
        tmp_path, text.format("It freezes when text-only and image rows are in one set.")
    )
    untold = explained(tmp_path, text.format("It freezes after a while."))

    assert told.causes[0].id == "rank-divergent-forward"
    assert untold.causes[0].id != "rank-divergent-forward"


LINES = "".join(f"2031-01-02 10:00:{n:02d} INFO reading shard {n} of the set\n" for n in range(30))


def test_a_pool_in_a_pasted_native_stack(tmp_path: Path) -> None:
    text = (
        LINES + "(gdb) bt\n#0  {0} () at ../sysdeps/unix/sysv/linux/x86_64/lowlevellock.S:135\n"
        "#1  0x00007fc73a873dbd in {1} (mutex=0x5606dd44d080) at ../nptl/x.c:80\n"
        "#2  0x00007fc733b1b7b1 in __kmp_lock_suspend_mx () from /env/lib/libiomp5.so\n"
        "#3  0x00007fc733acd435 in __kmp_free_thread () from /env/lib/libiomp5.so\n"
    )
    held = explained(tmp_path, text.format("__lll_lock_wait", "__GI___pthread_mutex_lock"))
    idle = explained(tmp_path, text.format("pthread_cond_wait@@GLIBC_2.3.2", "__kmp_suspend_64"))

    assert held.causes[0].id == "fork-thread-pool"
    assert "fork-thread-pool" not in [one.id for one in idle.causes[:1]]


def test_several_ranks_that_prepare_data_are_no_long_task_of_one(tmp_path: Path) -> None:
    text = "".join(f"Rank {rank}, Worker 0: Caching shard...\n" for rank in (3, 7, 2))

    assert explained(tmp_path, text).causes[0].id != "rank0-long-task"


def test_a_wait_that_says_how_long_it_lasts(tmp_path: Path) -> None:
    line = (
        "INFO [x.py:4] Waiting for creating a placement group of specs for {0} seconds. Check it.\n"
    )
    status = "\n# ray status\n======== Autoscaler status: 2031-06-20 ========\n(no pending nodes)\n"

    assert explained(tmp_path, line.format(150) + status).verdict == "hung"
    assert explained(tmp_path, line.format(10) + status).verdict == "undetermined"
