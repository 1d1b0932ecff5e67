"""The verdict on live jobs: who holds up the rest, and who only looks like it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.waits.live_rows import (
    ALL_REDUCE,
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
    unreadable,
    view,
)
from trainprobe.causes import built
from trainprobe.causes.priors import load_priors
from trainprobe.facts import Connection, JobRank, LockWait, PipeEnd, SourceSite
from trainprobe.facts.jobs import join_unnumbered
from trainprobe.judge import judge
from trainprobe.model.facts import Fact
from trainprobe.model.unnumbered import by_pid, number_of, pid_of
from trainprobe.stacks.frames import Frame
from trainprobe.waits.situation import Situation

LINEAR = Frame("forward", SITE + "torch/nn/modules/linear.py", 125)
RELU = Frame("relu", SITE + "torch/nn/functional.py", 1500)
SPIN = site(25, "pass", ("while", "while not flag:"))
POLL = site(29, "time.sleep(0.1)", ("while", "while not os.path.exists(path):"))
FOREVER = site(31, "time.sleep(3600)")


def hung(*facts: Fact | list[Fact]) -> tuple[tuple[int, ...], str]:
    found = view(*facts)
    assert found.verdict == "hung", found.says
    return found.groups[0].ranks, " ".join(
        f"{link.waiter} -> {link.awaited}" for link in found.groups[0].chain
    )


def test_a_rank_that_sleeps_in_its_own_code_holds_up_the_others() -> None:
    found = view(job(3), rank(0), rank(1), rank(2, own("wait", 31), own("wait", 31)), FOREVER)

    assert (found.verdict, found.groups[0].ranks, found.groups[0].victims) == ("hung", (2,), (0, 1))
    assert found.says == "rank 2 on node7 holds up the other two"
    assert found.waits_for[0] == "rank 2"


@pytest.mark.parametrize(
    ("stacks", "more", "source"),
    [
        pytest.param(
            (own("spin", 25), own("spin", 25)),
            {"state": "R", "age_s": 0.0, "gil": True},
            SPIN,
            id="spins",
        ),
        pytest.param(
            (own("poll", 29), own("poll", 29)), {"age_s": 0.05}, POLL, id="polls for a file"
        ),
        pytest.param(
            (own("hog", 39), own("hog", 39)),
            {"state": "R", "age_s": 0.0, "gil": True},
            site(39, "ext.crunch(x)"),
            id="keeps the lock in C",
        ),
        pytest.param(
            (own("poll", 29), own("poll", 28)), {"age_s": 0.05}, POLL, id="polls on two lines"
        ),
        pytest.param(
            (own("ask", 52), own("ask", 52)),
            {},
            site(52, "sock.recv(4)"),
            id="waits for the network",
        ),
    ],
)
def test_ways_not_to_get_on(
    stacks: tuple[tuple[Frame, ...], ...], more: dict[str, object], source: SourceSite
) -> None:
    ranks, _ = hung(job(2), rank(0), rank(1, *stacks, **more), source)

    assert ranks == (1,)


@pytest.mark.parametrize(
    ("stacks", "more", "source"),
    [
        pytest.param(
            ((*own("evaluate", 33), LINEAR), (*own("evaluate", 33), RELU)),
            {"state": "R", "age_s": 0.0},
            None,
            id="evaluates",
        ),
        pytest.param(
            (own("save", 70), own("save", 70)),
            {"wrote_bytes": 5 << 20, "age_s": 0.2},
            None,
            id="writes a checkpoint",
        ),
        pytest.param(
            (own("save", 70), own("save", 70)),
            {"state": "D", "wrote_bytes": 5 << 20},
            None,
            id="writes in state D",
        ),
        pytest.param(
            (own("count", 40), own("count", 41)),
            {"state": "R", "gil": True},
            site(40, "n += f(x)", ("for", "for x in rows:")),
            id="plain Python",
        ),
        pytest.param(
            (own("pack", 44), own("pack", 60)), {"age_s": 0.1}, None, id="goes on to other lines"
        ),
        pytest.param(
            ((*own("load", 3), Frame("dumps", STD + "json/encoder.py", 200)),) * 2,
            {"state": "R", "gil": True},
            None,
            id="long JSON",
        ),
    ],
)
def test_work_is_no_hang_however_long_the_others_wait(
    stacks: tuple[tuple[Frame, ...], ...], more: dict[str, object], source: SourceSite | None
) -> None:
    found = view(
        job(3),
        rank(0),
        rank(2),
        rank(1, *stacks, **more),
        *([source] if source is not None else []),
    )

    assert (found.verdict, found.conclusive, found.groups) == ("healthy", True, ())
    assert "rank 1" in found.says
    assert "ranks 0 and 2 wait for it" in found.says


def test_a_wait_of_half_a_second_is_no_hang() -> None:
    found = view(
        job(2),
        rank(0, age_s=0.5),
        rank(1, own("step", 31), own("step", 31), age_s=0.4),
        site(31, "time.sleep(1)"),
    )

    assert found.verdict == "healthy"


def test_all_ranks_asleep_wait_for_nobody_and_nobody_was_seen_to_go_on() -> None:
    found = view(
        job(2), *(rank(number, own("pause", 31), own("pause", 31)) for number in (0, 1)), FOREVER
    )

    assert (found.verdict, found.groups, found.conclusive) == ("undetermined", (), False)
    assert found.next_look.startswith("trainprobe attach 9 --watch")


def test_all_ranks_that_poll_for_the_same_file_are_hung() -> None:
    ranks, _ = hung(
        job(2),
        *(rank(number, own("poll", 29), own("poll", 29), age_s=0.05) for number in (0, 1)),
        POLL,
    )

    assert ranks == (0, 1)


def test_a_running_job_is_healthy_wherever_its_ranks_are() -> None:
    found = view(
        job(2),
        rank(0, age_s=0.01),
        rank(1, (*own("step", 80), LINEAR), ALL_REDUCE, state="R", age_s=0.0),
    )

    assert (found.verdict, found.conclusive) == ("healthy", True)


def test_a_compiler_child_that_works_is_work_of_its_rank() -> None:
    waits = (*own("build", 12), Frame("Popen.wait", STD + "subprocess.py", 1264))
    child = process(555, role="compiler", state="R", rank=1, ppid=101)

    assert view(job(2), rank(0, age_s=2.5), rank(1, waits, waits), child).verdict == "healthy"
    assert view(job(2), rank(0), rank(1, waits, waits), child).verdict == "slow"
    assert hung(
        job(2), rank(0), rank(1, waits, waits), process(555, role="child", rank=1, ppid=101)
    )[0] == (1,)


def test_a_rank_that_works_while_all_others_are_idle_for_long_makes_the_job_slow() -> None:
    def found(*waits_s: float) -> Situation:
        others = [rank(number, age_s=age_s) for number, age_s in enumerate(waits_s, 1)]
        busy = rank(0, (*own("index", 80), LINEAR), (*own("index", 80), RELU), state="R", age_s=0)
        return view(job(1 + len(waits_s)), busy, *others)

    assert found(20.0, 20.0).verdict == "healthy"
    late = found(50.0, 50.0)
    assert (late.verdict, late.groups[0].ranks, late.groups[0].victims) == ("slow", (0,), (1, 2))
    assert late.says.startswith("rank 0 works alone at train.py:80 in index")
    assert "have waited for it for 50 s" in late.says


def test_a_stopped_rank_is_hung_whatever_its_stack_says() -> None:
    found = view(
        job(3), rank(0), rank(2), rank(1, ALL_REDUCE, ALL_REDUCE, state="T", stopped_looks=2)
    )

    assert (found.verdict, found.groups[0].ranks) == ("hung", (1,))
    assert "is stopped" in found.groups[0].says


def test_a_rank_that_is_missing_is_named_with_the_size_of_the_world() -> None:
    found = view(job(3, absent=(2,)), rank(0), rank(1))

    assert (found.groups[0].ranks, found.groups[0].how) == ((2,), "not-visible")
    assert found.groups[0].says == "rank 2 of 3 has no process on this host while the others wait"


def test_ranks_on_other_hosts_are_not_blamed() -> None:
    found = view(job(4, absent=(2, 3), elsewhere=True), rank(0), rank(1))

    assert found.verdict == "hung"
    assert not {2, 3} & set(found.groups[0].ranks)
    assert "other hosts" in found.groups[0].says


def test_without_stacks_a_stopped_rank_is_still_found_and_the_others_are_its_victims() -> None:
    found = view(job(3), unreadable(0), unreadable(1), unreadable(2, state="T"))

    assert (found.verdict, found.groups[0].ranks, found.groups[0].victims) == ("hung", (2,), (0, 1))


def test_without_stacks_and_without_a_sign_nothing_is_claimed() -> None:
    found = view(job(2), unreadable(0), unreadable(1))

    assert (found.verdict, found.conclusive) == ("undetermined", False)


def test_the_chain_goes_through_the_lock_to_its_holder() -> None:
    lock = LockWait(("E7",), CELL, pid=101, holder_pid=911, path="/nfs/cache/ds.lock")

    ranks, chain = hung(job(2), rank(0), rank(1, own("cache", 41), own("cache", 41)), lock)

    assert ranks == (1,)
    assert (
        chain
        == "rank 0 -> all_reduce all_reduce -> rank 1 rank 1 -> the lock on /nfs/cache/ds.lock the"
        " lock on /nfs/cache/ds.lock -> pid 911"
    )


def test_a_lock_held_by_a_rank_in_a_collective_is_a_circle() -> None:
    lock = LockWait(("E7",), CELL, pid=101, holder_pid=100, path="/cache/ds.lock")

    found = view(job(3), rank(0), rank(2), rank(1, own("cache", 41), own("cache", 41)), lock)

    assert (found.groups[0].how, found.groups[0].ranks) == ("cycle", (0, 1))


def test_the_chain_goes_through_a_worker_to_what_the_worker_waits_for() -> None:
    get = (*own("train", 20), Frame("__next__", LOADER, 725), Frame("_get_data", LOADER, 1464))
    stuck = process(
        700,
        own("__getitem__", 9),
        own("__getitem__", 9),
        rank=1,
        role="loader-worker",
        ppid=101,
        syscall="0 0x5 0x7f 0x4",
    )
    pipe = PipeEnd(("E8",), CELL, pid=700, fd=5, path="/tmp/fifo", mode="r", other_pids=(912,))
    named = process(
        700,
        own("__getitem__", 9),
        own("__getitem__", 9),
        rank=1,
        role="loader-worker",
        ppid=101,
        syscall="0 0x5 0x7f 0x4",
        wchan="pipe_read",
    )

    ranks, chain = hung(job(2), rank(0), rank(1, get, get), named, pipe)

    assert (ranks, stuck[0].rank) == ((1,), 1)
    assert "rank 1 -> pid 700 (loader worker of rank 1, at train.py:9 in __getitem__)" in chain
    assert chain.endswith("-> pid 912")


def test_idle_workers_are_not_to_blame() -> None:
    get = (*own("train", 20), Frame("__next__", LOADER, 725), Frame("_get_data", LOADER, 1464))
    idle = (
        MAIN,
        Frame("_worker_loop", SITE + "torch/utils/data/_utils/worker.py", 300),
        Frame("Queue.get", STD + "multiprocessing/queues.py", 113),
    )
    busy = own("__getitem__", 9)

    _, chain = hung(
        job(2),
        rank(0),
        rank(1, get, get),
        process(700, idle, idle, rank=1, role="loader-worker", ppid=101),
        process(701, busy, busy, rank=1, role="loader-worker", ppid=101),
    )

    assert "pid 701" in chain
    assert "pid 700" not in chain


def test_a_slow_loader_whose_worker_works_is_no_hang() -> None:
    get = (*own("train", 20), Frame("__next__", LOADER, 725), Frame("_get_data", LOADER, 1464))
    works = process(
        700,
        (*own("__getitem__", 9), LINEAR),
        (*own("__getitem__", 9), RELU),
        rank=1,
        role="loader-worker",
        ppid=101,
        state="R",
    )

    assert view(job(2), rank(0, age_s=4.0), rank(1, get, get), works).verdict == "healthy"


def test_a_socket_leads_to_the_process_at_its_other_end() -> None:
    recv = own("fetch", 50)
    asks = rank(1, recv, recv, syscall="45 0x7 0x0", wchan="sk_wait_data")
    socket = Connection(
        ("E6",),
        CELL,
        pid=101,
        fd=7,
        kind="tcp",
        state="ESTABLISHED",
        remote="127.0.0.1:8080",
        peer_pid=913,
    )

    _, chain = hung(job(2), rank(0), asks, socket)

    assert chain.endswith("rank 1 -> pid 913")


@pytest.mark.parametrize(
    ("state", "remote", "syscall", "wchan", "last"),
    [
        (
            "LISTEN",
            "0.0.0.0:0",
            "288 0x12 0x7ff",
            "inet_csk_accept",
            "which waits for the network at train.py:9 in __getitem__",
        ),
        ("ESTAB", "93.184.216.34:443", "45 0x12 0x7ff", "sk_wait_data", "93.184.216.34:443"),
    ],
)
def test_a_worker_that_waits_for_somebody_elsewhere_holds_up_its_rank(
    state: str, remote: str, syscall: str, wchan: str, last: str
) -> None:
    """Who listens waits for nobody in particular, and a host outside of the job is none of its
    ranks.
    """
    get = (*own("train", 20), Frame("__next__", LOADER, 725), Frame("_get_data", LOADER, 1464))
    stuck = process(
        700,
        own("__getitem__", 9),
        own("__getitem__", 9),
        rank=1,
        role="loader-worker",
        ppid=101,
        syscall=syscall,
        wchan=wchan,
    )
    socket = Connection(("E6",), CELL, pid=700, fd=0x12, kind="tcp", state=state, remote=remote)

    ranks, chain = hung(job(2), rank(0), rank(1, get, get), stuck, socket)

    assert ranks == (1,)
    assert chain.endswith(last)


def test_a_receive_waits_for_the_rank_that_its_line_names() -> None:
    recv = (MAIN, Frame("pipe", "/job/train.py", 60), Frame("recv", C10D, 2500))
    found = view(
        job(3),
        rank(0, own("wait", 31), own("wait", 31)),
        rank(1, recv, recv),
        rank(2, recv, recv),
        site(60, "dist.recv(x, src=rank - 1)"),
        FOREVER,
    )

    assert (found.groups[0].ranks, found.groups[0].victims) == ((0,), (1, 2))
    assert found.waits_for[2] == "rank 1"


def test_two_ranks_that_receive_from_each_other_are_a_circle() -> None:
    recv = (MAIN, Frame("pipe", "/job/train.py", 60), Frame("recv", C10D, 2500))

    found = view(
        job(2), rank(0, recv, recv), rank(1, recv, recv), site(60, "dist.recv(x, src=1 - rank)")
    )

    assert (found.verdict, found.groups[0].ranks) == ("hung", (0, 1))


def test_two_faults_at_once_are_two_groups() -> None:
    found = view(
        job(4),
        rank(0),
        rank(1),
        rank(2, own("wait", 31), own("wait", 31)),
        rank(3, ALL_REDUCE, ALL_REDUCE, state="T", stopped_looks=2),
        FOREVER,
    )

    assert {group.ranks for group in found.groups} == {(2,), (3,)}


def test_an_idle_kernel_of_a_notebook_is_not_stuck() -> None:
    kernel = (
        Frame("start", SITE + "ipykernel/kernelapp.py", 700),
        Frame("run_forever", STD + "asyncio/base_events.py", 600),
        Frame("select", STD + "selectors.py", 468),
    )

    assert view(job(1), rank(0, kernel, kernel)).verdict == "healthy"


def test_a_lone_process_in_a_lock_is_stuck() -> None:
    lock = (*own("run", 14), Frame("Event.wait", STD + "threading.py", 629))

    assert hung(job(1), rank(0, lock, lock, wchan="futex_do_wait"))[0] == (0,)


def test_all_ranks_in_one_collective_blame_nobody_more_than_another() -> None:
    found = view(job(3), rank(0), rank(1), rank(2))

    assert (found.verdict, found.groups[0].how, found.groups[0].ranks) == (
        "hung",
        "stuck-inside",
        (0, 1, 2),
    )


def test_a_library_that_polls_for_a_lock_file_waits_however_often_it_wakes() -> None:
    baton = (
        *own("build", 12),
        Frame("load", SITE + "torch/utils/cpp_extension.py", 1600),
        Frame("wait", SITE + "torch/utils/file_baton.py", 50),
    )

    assert hung(job(2), rank(0), rank(1, baton, baton, age_s=0.06))[0] == (1,)


def test_drawing_until_something_fits_is_a_loop_without_an_end() -> None:
    draw = [
        (*own("draw", 9), Frame("Random.randint", STD + "random.py", line))
        for line in (328, 344, 362)
    ]

    found = hung(
        job(2),
        rank(0),
        rank(1, *draw, state="R", age_s=0.0, gil=True),
        site(9, "x = random.randint(low, high)", ("while", "while True:")),
    )

    assert found[0] == (1,)


def test_a_worker_that_answers_works_though_it_sleeps_at_one_line_in_both_looks() -> None:
    get = (*own("train", 20), Frame("__next__", LOADER, 725), Frame("_get_data", LOADER, 1464))
    slow = process(
        700,
        own("__getitem__", 9),
        own("__getitem__", 9),
        rank=1,
        role="loader-worker",
        ppid=101,
        age_s=0.5,
        wrote_bytes=29_192,
    )

    assert view(job(2), rank(0), rank(1, get, get), slow).verdict == "healthy"


def test_who_polls_while_a_rank_is_missing_may_wait_for_it() -> None:
    source = site(
        11, "time.sleep(0.2)", ("while", "while sum(map(os.path.exists, files)) < world:")
    )

    ranks, _ = hung(
        job(2, absent=(1,)), rank(0, own("exchange", 11), own("exchange", 11), age_s=0.2), source
    )

    assert ranks == (1,)


@pytest.mark.parametrize(("age_s", "verdict"), [(0.3, "slow"), (9.0, "healthy")])
def test_a_rank_that_is_always_last_is_slow_only_while_the_others_pass_through(
    age_s: float, verdict: str
) -> None:
    late = [(*own("forward", 70 + number), LINEAR) for number in range(3)]
    facts: list[Fact | list[Fact]] = [
        job(3),
        rank(0, *[ALL_REDUCE] * 3, age_s=age_s),
        rank(1, *[ALL_REDUCE] * 3, age_s=age_s),
        rank(2, *late, state="R", age_s=0.0),
    ]

    assert view(*facts).verdict == verdict


def test_a_wait_at_the_store_is_for_the_ranks_that_are_not_there() -> None:
    waits = own("sync", 13)
    facts: list[Fact | list[Fact]] = [
        job(3, absent=(2,)),
        rank(0, waits, waits, wchan="poll_schedule_timeout"),
        rank(1, waits, waits, wchan="poll_schedule_timeout"),
    ]

    assert hung(*facts, site(13, 'store.wait(["ready"])'))[0] == (2,)


def test_a_rank_that_connects_again_and_again_hangs_with_the_one_at_its_line_of_the_rendezvous() -> (
    None
):
    at = (
        MAIN,
        Frame("setup", "/job/train.py", 8),
        Frame("init_process_group", C10D, 1800),
        Frame("_tcp_rendezvous_handler", SITE + "torch/distributed/rendezvous.py", 232),
    )
    other = (MAIN, Frame("again", "/job/train.py", 60), *at[2:])
    serves = {"age_s": 1.0}

    assert hung(job(2), rank(0, at, at, **serves), rank(1, at, at))[0] == (0, 1)
    assert hung(job(2), rank(0, other, other, **serves), rank(1, at, at))[0] == (1,)


def unnumbered(pid: int, *looks: tuple[Frame, ...]) -> list[Fact]:
    return join_unnumbered([JobRank((f"E{pid}",), CELL, None, pid=pid), *process(pid, *looks)])


def test_a_process_whose_rank_nobody_knows_is_judged_like_the_others() -> None:
    found = view(
        job(3),
        rank(0),
        unnumbered(701, ALL_REDUCE, ALL_REDUCE),
        unnumbered(702, own("wait", 31), own("wait", 31)),
        FOREVER,
    )

    assert found.verdict == "hung"
    assert [pid_of(number) for number in found.groups[0].ranks] == [702]
    assert by_pid(found.groups[0].ranks) == ()
    assert by_pid(found.says) == "process 702 on node7 holds up the other two"
    assert by_pid(found.waits_for[0]) == "process 702"


def test_health_is_not_claimed_of_ranks_that_nobody_knows_or_has_looked_at() -> None:
    works = (
        ((*own("evaluate", 33), LINEAR), (*own("evaluate", 33), RELU)),
        {"state": "R", "age_s": 0.0},
    )
    ranks = [rank(0), rank(1, *works[0], **works[1])]
    assert (view(job(2), *ranks).verdict, view(job(2), *ranks).conclusive) == ("healthy", True)

    nobody = [unnumbered(700, *works[0]), unnumbered(702, ALL_REDUCE, ALL_REDUCE)]
    assert view(job(2), *nobody).verdict == "healthy"
    assert view(job(3), *nobody).verdict == "undetermined"

    unknown = view(job(3), *ranks, unnumbered(702, ALL_REDUCE, ALL_REDUCE))
    assert (unknown.verdict, unknown.conclusive) == ("undetermined", False)
    assert by_pid(unknown.says).endswith(
        "; but nobody knows the rank of process 702, so one may be missing"
    )

    part = view(job(4, absent=(2, 3), elsewhere=True), *ranks)
    assert (part.verdict, part.conclusive) == ("undetermined", False)
    assert part.says.endswith(
        "; but ranks 2 and 3 of 4, on other hosts or missing, could not be looked at"
    )

    refused = view(job(3), *ranks, unreadable(2, state="R", age_s=None, cpu_moved=None, cpu_s=0.0))
    assert refused.verdict != "healthy"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Rank {a} on vm", "Process 701 on vm"),
        ("ranks 0,2-3,{a} wait", "ranks 0, 2-3 and process 701 wait"),
        ("Rank 1 and rank {a}", "Rank 1 and process 701"),
        ("ranks {a} and {b}", "processes 701, 702"),
        ("0,{a}", "0,pid 701"),
        ("rank 1 of 1000000 at 1000", "rank 1 of 1000000 at 1000"),
    ],
)
def test_texts_name_such_a_process_by_its_pid(text: str, says: str) -> None:
    assert by_pid(text.format(a=number_of(701), b=number_of(702))) == says


KERNEL = (
    Frame("<module>", SITE + "ipykernel_launcher.py", 18),
    Frame("start", SITE + "ipykernel/kernelapp.py", 768),
    Frame("run_forever", STD + "asyncio/base_events.py", 607),
)
IN_A_CELL = (*KERNEL, Frame("run_cell", SITE + "IPython/core/interactiveshell.py", 3009))
IN_THE_LOADER = (
    Frame("_try_get_data", LOADER, 1291),
    Frame("wait", STD + "multiprocessing/connection.py", 947),
)


@pytest.mark.parametrize("cell", ["/tmp/ipykernel_123/2825403464.py", "<ipython-input-3-1a2b>"])
def test_a_notebook_s_cell_that_stands_in_its_loader_hangs_like_a_script(cell: str) -> None:
    lock = Frame("__getitem__", "/job/data.py", 8)
    stuck = process(300, (MAIN, lock), (MAIN, lock), role="loader-worker", ppid=100, wrote_bytes=0)
    stack = (*IN_A_CELL, Frame("<module>", cell, 10), *IN_THE_LOADER)
    source = site(8, "lock.acquire()", file="/job/data.py")

    found = view(
        job(1), rank(0, stack, stack, wrote_bytes=80), stuck, source
    )  # by the threads of the kernel, among themselves
    assert (found.verdict, found.groups[0].ranks) == ("hung", (0,))
    answers = process(
        300, (MAIN, lock), (MAIN, lock), role="loader-worker", ppid=100, wrote_bytes=200
    )
    assert view(job(1), rank(0, stack, stack, wrote_bytes=80), answers, source).verdict != "hung"


def test_what_another_thread_writes_is_no_progress_of_a_rank_whose_loader_is_silent() -> None:
    lock = Frame("__getitem__", "/job/data.py", 8)
    stuck = process(300, (MAIN, lock), (MAIN, lock), role="loader-worker", ppid=100, wrote_bytes=0)
    stack = (MAIN, *IN_THE_LOADER)
    source = site(8, "lock.acquire()", file="/job/data.py")
    found = view(job(1), rank(0, stack, stack, wrote_bytes=10 << 20), stuck, source)
    assert (found.verdict, found.groups[0].ranks) == ("hung", (0,))
    saves = (MAIN, Frame("write_report", "/job/train.py", 40))
    assert view(job(1), rank(0, saves, saves, wrote_bytes=10 << 20), source).verdict == "healthy"


def test_a_notebook_s_cell_that_stands_in_a_call_of_its_own_hangs() -> None:
    stack = (
        *IN_A_CELL,
        Frame("<module>", "/tmp/ipykernel_123/9.py", 52),
        Frame("accept", STD + "socket.py", 293),
    )

    assert (
        view(
            job(1),
            rank(0, stack, stack),
            site(52, "server.accept()", file="/tmp/ipykernel_123/9.py"),
        ).verdict
        == "hung"
    )


def test_a_notebook_without_work_is_idle() -> None:
    idle = (*KERNEL, Frame("select", STD + "selectors.py", 468))

    assert view(job(1), rank(0, idle, idle)).verdict != "hung"


def test_a_process_without_torch_is_no_healthy_training() -> None:
    asleep = (MAIN, Frame("serve", STD + "socketserver.py", 235))
    plain = replace(job(1), torch=False)

    found = view(plain, rank(0, asleep, asleep, age_s=0.1))
    assert (found.verdict, found.conclusive) == ("undetermined", False)
    assert found.says.startswith(
        "process 100 shows no sign of a training job: it has no torch in memory"
    )
    assert view(replace(plain, torch=None), rank(0, asleep, asleep, age_s=0.1)).verdict == "healthy"
    importing = (
        MAIN,
        Frame("<module>", "/job/data.py", 3),
        Frame("acquire", STD + "threading.py", 9),
    )
    assert (
        view(plain, rank(0, importing, importing)).verdict == "hung"
    )  # a script may hang before it has come to its import of torch


def test_of_several_groups_the_one_that_hangs_speaks_and_the_others_are_named() -> None:
    def of_step(number: int, *facts: Fact | list[Fact]) -> list[Fact]:
        flat = [each for fact in facts for each in (fact if isinstance(fact, list) else [fact])]
        return [replace(fact, cell=f"job#step{number}") for fact in flat]

    works = (
        ((*own("evaluate", 33), LINEAR), (*own("evaluate", 33), RELU)),
        {"state": "R", "age_s": 0.0},
    )
    healthy = of_step(0, job(3), *(rank(number, *works[0], **works[1]) for number in range(3)))
    ill = of_step(1, job(2), rank(0), rank(1, own("wait", 31), own("wait", 31)), replace(FOREVER))

    found = judge(facts_of(healthy, ill), built(), load_priors())
    assert (found.verdict, found.world.size, found.causes[0].ranks) == ("hung", 2, (1,))
    assert (
        "Step 0 (3 ranks) is judged apart from step 1: healthy, not hung: all 3 ranks go on."
        in found.unexplained
    )
