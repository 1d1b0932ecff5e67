"""What samples over some seconds say of a job that moves: slow, healthy, or not to be told yet."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.unit.waits.live_rows import (
    ALL_REDUCE,
    LOADER,
    MAIN,
    SITE,
    facts_of,
    job,
    own,
    process,
    rank,
    scene_of,
    site,
    view,
)
from trainprobe.causes.data_loading import data_starvation
from trainprobe.facts import (
    AwaitedValue,
    Connection,
    MainThread,
    ProcessState,
    Samples,
    Spell,
    Thread,
)
from trainprobe.model.facts import Fact
from trainprobe.stacks.blocked_calls import BlockedCall
from trainprobe.stacks.frames import Frame
from trainprobe.waits import situation_of
from trainprobe.waits.situation import Situation

LOADS = (MAIN, Frame("__next__", LOADER, 700))
FORWARD = (*own("forward", 8), Frame("linear", SITE + "torch/nn/functional.py", 9))
STEP = 0.4


def sampled(number: int, *works_s: float, loads: bool = False) -> Samples:
    """A rank that works for so long in each step and waits in a collective for the rest of it."""
    spells = []
    for step, took_s in enumerate(works_s):
        began, met = step * STEP, step * STEP + took_s
        frames = LOADS if loads else FORWARD
        spells.append(Spell(began, met, frames, "dataloader" if loads else "python-run"))
        spells.append(Spell(met, began + STEP, ALL_REDUCE, "comm-wait"))
    return Samples(("E8",), "job", number, pid=100 + number, host="node7", spells=tuple(spells))


def moving(world: int) -> list[Fact]:
    return [
        fact for number in range(world) for fact in rank(number, own("step", 5), own("step", 7))
    ]


def test_the_rank_that_is_last_in_each_round_is_slow() -> None:
    late = [sampled(number, *[0.39 if number == 1 else 0.25] * 12) for number in range(3)]

    found = view(job(3), moving(3), *late)

    assert (found.verdict, found.groups[0].ranks, found.groups[0].victims) == ("slow", (1,), (0, 2))
    assert "comes last to 12 of 12 rounds" in found.says
    assert "train.py:8 in forward" in found.says


def on_hosts(*works_s: float, steps: int = 6) -> list[Samples]:
    """Two ranks on each host, that work for so long in each step; each host has its own clock."""
    found = []
    for place, took_s in enumerate(works_s):
        for number in (2 * place, 2 * place + 1):
            one = sampled(number, *[took_s] * steps)
            spells = tuple(
                replace(spell, start=spell.start + 50 * place, end=spell.end + 50 * place)
                for spell in one.spells
            )
            found.append(replace(one, host=f"node{place + 1}", spells=spells))
    return found


def test_a_host_for_which_all_others_wait_is_slow() -> None:
    found = view(job(6), moving(6), *on_hosts(0.04, 0.36, 0.05))

    assert found.verdict == "slow"
    assert (found.groups[0].ranks, found.groups[0].hosts) == ((2, 3), ("node2",))
    assert "train.py:8 in forward" in found.says


def test_ranks_of_several_hosts_that_do_nothing_but_meet_may_have_a_slow_network() -> None:
    found = view(job(4), moving(4), *on_hosts(0.02, 0.02))

    assert found.verdict == "undetermined"
    assert "in collectives for at least 95% of the sampled time" in found.says
    assert view(job(2), moving(2), *on_hosts(0.02)).verdict == "healthy"


@pytest.mark.parametrize(
    "hosts",
    [on_hosts(0.2, 0.3, 0.2), on_hosts(0.04, 0.36, 0.36), on_hosts(0.04, 0.36, steps=1)],
    ids=["a little later", "most hosts", "a pause"],
)
def test_hosts_that_wait_for_each_other_are_not_blamed(hosts: list[Samples]) -> None:
    assert not view(job(len(hosts)), moving(len(hosts)), *hosts).groups


def test_ranks_that_are_last_by_turns_are_healthy() -> None:
    turns = [
        sampled(number, *(0.39 if step % 2 == number else 0.2 for step in range(12)))
        for number in range(2)
    ]
    assert view(job(2), moving(2), *turns).verdict == "healthy"


@pytest.mark.parametrize(
    ("stack", "works_s", "verdict", "says"),
    [
        (
            own("decode", 8),
            0.18,
            "healthy",
            (
                "the main threads were at train.py:8 in decode, outside of torch, for 45% of the 5 s sampled",
            ),
        ),
        (own("decode", 8), 0.3, "slow", ()),
        (FORWARD, 0.3, "healthy", ()),
        (
            (Frame("_call_impl", SITE + "torch/nn/modules/module.py", 1), *own("f", 8)),
            0.3,
            "healthy",
            (),
        ),
    ],
    ids=["a line of its own", "for most of the time", "torch at work below it", "in a module"],
)
def test_where_all_ranks_spend_their_time_alike_is_said_of_a_job_that_nobody_holds_up(
    stack: tuple[Frame, ...], works_s: float, verdict: str, says: tuple[str, ...]
) -> None:
    alike = [
        replace(
            one,
            spells=tuple(
                replace(spell, frames=stack if spell.frames == FORWARD else spell.frames)
                for spell in one.spells
            ),
        )
        for one in (sampled(number, *[works_s] * 12) for number in range(2))
    ]

    read = site(8, "rows = [decode(row) for row in rows]")
    found = view(job(2), moving(2), read, *alike)

    assert (found.verdict, found.remarks) == (verdict, says)
    facts = facts_of(job(2), moving(2), read, *alike)
    assert (situation_of(facts).remarks) == says


@pytest.mark.parametrize("works_s", [0.39, 0.3], ids=["nearly alone", "for most of the time"])
def test_too_few_rounds_leave_it_open_and_say_what_to_type(works_s: float) -> None:
    late = [sampled(number, *[works_s if number == 1 else 0.05] * 3) for number in range(2)]

    found = view(job(2), moving(2), *late)

    assert found.verdict == "undetermined"
    assert "in too few rounds" in found.says
    assert "--watch" in found.next_look


def test_ranks_that_are_in_their_loaders_most_of_the_time_starve() -> None:
    starved = [sampled(number, *[0.36] * 6, loads=True) for number in range(2)]

    found = view(job(2), moving(2), *starved)

    assert (found.verdict, found.groups[0].ranks) == ("slow", ())
    assert "data loaders" in found.says


def test_that_a_rank_loads_its_own_samples_is_told_by_samples_however_alike_the_looks() -> None:
    still = [fact for number in range(2) for fact in rank(number, LOADS, LOADS)]
    starved = [sampled(number, *[0.36] * 6, loads=True) for number in range(2)]

    scene = scene_of(job(2), still, *starved)

    assert "There are no workers" in " ".join(
        one.says for one in data_starvation.CAUSE.weigh(scene)
    )


BACKWARD = (
    MAIN,
    Frame("step", "/job/train.py", 49),
    Frame("_engine_run_backward", SITE + "torch/autograd/graph.py", 979),
)


@pytest.mark.parametrize("computes", [True, False])
def test_a_rank_that_computes_in_its_backward_is_not_waiting_there(computes: bool) -> None:
    """All stand in backward all the time; what each ran there tells who is waited for."""
    samples = []
    for number in range(3):
        took_s = 0.35 if number == 2 else 0.1
        spells, busy = [], []
        for step in range(12):
            began = step * STEP
            spells.append(Spell(began, began + 0.02, FORWARD, "python-run"))
            spells.append(Spell(began + 0.02, began + STEP, BACKWARD, "comm-wait"))
            busy.append((began, began + took_s))
        samples.append(
            Samples(
                ("E8",),
                "job",
                number,
                pid=100 + number,
                host="node7",
                spells=tuple(spells),
                busy=tuple(busy) if computes else (),
            )
        )
    found = view(job(3), moving(3), *samples)
    assert found.verdict == ("slow" if computes else "healthy")
    assert not computes or found.groups[0].ranks == (2,)


SERVES = own("serve", 33)


@pytest.mark.parametrize(("woke", "verdict"), [(1, "healthy"), (12, "slow")])
def test_who_sleeps_while_others_go_through_their_rounds_is_no_part_of_these(
    woke: int, verdict: str
) -> None:
    slept = Samples(
        ("E8",),
        "job",
        0,
        pid=100,
        host="node7",
        spells=(Spell(0.0, 4.8, SERVES, "sleep"),),
        woke=woke,
    )
    others = [sampled(number, *[0.3] * 12) for number in (1, 2)]
    ranks = [rank(0, SERVES, SERVES, age_s=0.2), moving(3)[3:]]
    assert view(job(3), *ranks, slept, *others).verdict == verdict


SPINS = (MAIN, Frame("run", "/job/replay.py", 16))


@pytest.mark.parametrize(("took_s", "verdict"), [(7.6, "slow"), (0.8, "undetermined")])
def test_a_thread_that_takes_the_interpreter_lock_makes_its_rank_slow_however_few_the_rounds(
    took_s: float, verdict: str
) -> None:
    late = rank(
        0,
        own("step", 5),
        own("step", 7),
        cpu_s=0.3,
        all_cpu_s=took_s,
        looked_s=8.0,
        thread_cpu_s=((7, took_s),),
    )
    spinning = [
        Thread(
            ("E9",),
            "job",
            0,
            pid=100,
            os_thread_id=7,
            name="reader",
            look=look,
            frames=SPINS,
            owns_gil=look == 1,
        )
        for look in (1, 2)
    ]
    own_time = Spell(0.0, 4.0, own("step", 5), "python-run")
    waits = (
        Spell(0.0, 2.0, ALL_REDUCE, "comm-wait"),
        Spell(2.0, 2.02, own("step", 7), ""),
        Spell(2.02, 4.0, ALL_REDUCE, "comm-wait"),
    )
    samples = [
        Samples(("E8",), "job", number, pid=100 + number, host="node7", spells=spells, woke=50)
        for number, spells in enumerate([(own_time,), waits])
    ]
    facts: list[Fact | list[Fact]] = [job(2), late, [*spinning], rank(1), *samples]

    found = view(*facts)

    assert found.verdict == verdict
    assert ("its thread reader, at replay.py:16 in run" in found.says) is (verdict == "slow")


@pytest.mark.parametrize(
    ("names", "verdict"),
    [(("upload_0", "upload_1"), "slow"), (("upload_0", "telemetry"), "undetermined")],
)
def test_threads_of_a_pool_take_the_interpreter_lock_by_turns(
    names: tuple[str, str], verdict: str
) -> None:
    late = rank(
        0,
        own("step", 5),
        own("step", 7),
        cpu_s=0.3,
        all_cpu_s=6.0,
        looked_s=8.0,
        thread_cpu_s=((7, 3.0), (8, 2.7)),
    )
    pool = [
        Thread(
            ("E9",),
            "job",
            0,
            pid=100,
            os_thread_id=tid,
            name=name,
            look=look,
            frames=SPINS,
            owns_gil=tid == 7,
        )
        for look in (1, 2)
        for tid, name in zip((7, 8), names, strict=True)
    ]
    waits = (Spell(0.0, 2.0, ALL_REDUCE, "comm-wait"), Spell(2.0, 4.0, own("step", 5), ""))
    samples = [
        Samples(("E8",), "job", number, pid=100 + number, host="node7", spells=spells, woke=50)
        for number, spells in enumerate([(Spell(0.0, 4.0, own("step", 5), "python-run"),), waits])
    ]
    facts: list[Fact | list[Fact]] = [job(2), late, [*pool], rank(1), *samples]

    found = view(*facts)

    assert found.verdict == verdict
    assert ("2 threads, upload_0 among them" in found.says) is (verdict == "slow")


def waited_for(number: int, *, rounds: int, breaks: bool = True) -> Samples:
    """Rank 0 of a job with rounds of 2.4 s, in which the others work for less than a sample; with
    `breaks`, samples met them twice all the same.
    """
    if number == 0:
        spells = [Spell(0.0, 2.4 * rounds, own("log_metric", 15), "net-io")]
    else:
        waits = (0.0, 4.8, 7.2, 2.4 * rounds) if breaks else (0.0, 2.4 * rounds)
        spells = []
        for began, ends in pairwise(waits):
            spells.append(Spell(began, ends - 0.02, ALL_REDUCE, "comm-wait"))
            spells.append(Spell(ends - 0.02, ends, FORWARD, "python-run"))
        if not breaks:
            spells.pop()
    return Samples(("E8",), "job", number, pid=100 + number, host="node7", spells=tuple(spells))


def asking(world: int, **waiting: object) -> list[Fact]:
    return [
        *rank(0, own("log_metric", 15), own("log_metrics", 20), age_s=0.2),
        *(
            fact
            for number in range(1, world)
            for fact in rank(number, age_s=2.1, looked_s=13.2, switches=6, **waiting)
        ),
    ]


def test_rounds_too_short_for_samples_show_by_how_often_the_others_woke() -> None:
    rows = [waited_for(number, rounds=4) for number in range(3)]

    found = view(job(3), asking(3), *rows)

    assert (found.verdict, found.groups[0].ranks, found.groups[0].victims) == ("slow", (0,), (1, 2))
    assert "in some 6 rounds" in found.says


def test_one_long_pause_is_no_lag_however_often_the_others_woke_before_it() -> None:
    rows = [waited_for(number, rounds=4, breaks=False) for number in range(3)]

    assert view(job(3), asking(3), *rows).verdict == "healthy"


def test_others_that_woke_in_each_span_waited_several_times_though_no_sample_met_them() -> None:
    spans = [
        replace(
            one,
            woke=woke,
            spells=tuple(
                replace(spell, start=spell.start + later, end=spell.end + later)
                for spell in one.spells
            ),
        )
        for later, woke in ((0.0, 2), (10.0, 2))
        for number in range(3)
        for one in (waited_for(number, rounds=4, breaks=False),)
    ]
    asleep = [replace(one, woke=0) if one.spells[0].start else one for one in spans]

    assert view(job(3), asking(3), *spans).verdict == "slow"
    assert view(job(3), asking(3), *asleep).verdict == "healthy"


def after_a_pause(number: int, *, loads_s: float) -> Samples:
    """A rank whose workers begin anew for four seconds, and whose steps then load for so long."""
    found = sampled(number, *[loads_s] * 15, loads=True)
    pause = Spell(-4.0, 0.0, LOADS, "dataloader")
    begun = Spell(-4.1, -4.0, FORWARD, "python-run")
    return replace(found, spells=(begun, pause, *found.spells))


def test_workers_that_begin_anew_at_an_epoch_are_no_lack_of_input() -> None:
    calm = [after_a_pause(number, loads_s=0.04) for number in range(2)]
    assert view(job(2), moving(2), *calm).verdict == "healthy"

    starved = [after_a_pause(number, loads_s=0.36) for number in range(2)]
    assert view(job(2), moving(2), *starved).verdict == "slow"


@pytest.mark.parametrize(
    ("used_s", "ended_s", "verdict"),
    [(5.0, 60.0, "slow"), (5.0, 4.0, "undetermined"), (50.0, 60.0, "undetermined")],
    ids=["workers start anew", "one start", "a job that works"],
)
def test_a_pause_of_a_rank_that_did_little_but_start_workers_is_no_single_one(
    used_s: float, ended_s: float, verdict: str
) -> None:
    waits = [
        Samples(
            ("E8",),
            "job",
            number,
            pid=100 + number,
            host="node7",
            spells=(Spell(0.0, 5.0, LOADS, "dataloader"),),
        )
        for number in range(2)
    ]
    lives = [
        replace(fact, age_s=93.0, used_s=used_s, ended_children_s=ended_s)
        if isinstance(fact, ProcessState)
        else fact
        for fact in moving(2)
    ]
    assert view(job(2), lives, *waits).verdict == verdict


def test_samples_that_show_nothing_but_one_pause_leave_it_open() -> None:
    paused = [
        Samples(
            ("E8",),
            "job",
            number,
            pid=100 + number,
            host="node7",
            spells=(Spell(0.0, 1.9, LOADS, "dataloader"), Spell(1.9, 2.0, ALL_REDUCE, "comm-wait")),
        )
        for number in range(2)
    ]

    found = view(job(2), moving(2), *paused)

    assert found.verdict == "undetermined"
    assert "one pause or every step" in found.says


def test_one_rank_that_shows_the_steps_speaks_for_all() -> None:
    starved = sampled(0, *[0.36] * 12, loads=True)
    unbroken = replace(sampled(1, 0.1), spells=(Spell(0.0, 12 * STEP, LOADS, "dataloader"),))

    assert view(job(2), moving(2), starved, unbroken).verdict == "slow"
    assert view(job(2), moving(2), unbroken, replace(unbroken, rank=0)).verdict == "undetermined"


DYNAMO = SITE + "torch/_dynamo/convert_frame.py"
COMPILES = (*own("step", 24), Frame("_compile", DYNAMO, 2102), Frame("trace_frame", DYNAMO, 954))
RUNS_COMPILED = (
    *own("step", 24),
    Frame("runtime_wrapper", SITE + "torch/_functorch/_aot_autograd/runtime_wrappers.py", 357),
    Frame("CompiledFxGraph.__call__", SITE + "torch/_inductor/output_code.py", 656),
)


def compiled(number: int, *, compile_s: float) -> Samples:
    """Two steps of 5 s, each of which begins with so long a compilation."""
    spells = []
    for began in (0.0, 5.0):
        spells.append(Spell(began, began + compile_s, COMPILES, "compile"))
        spells.append(Spell(began + compile_s, began + 5.0, RUNS_COMPILED, "native-run"))
    return Samples(("E8",), "job", number, pid=100 + number, host="node7", spells=tuple(spells))


def compiling_job(reason: str, *, compile_s: float, age_s: float) -> Situation:
    ranks = [
        replace(fact, age_s=age_s) if isinstance(fact, ProcessState) else fact
        for number in range(2)
        for fact in rank(number, own("step", 24), own("step", 25))
    ]
    told = AwaitedValue(("E9",), "job", 0, 100, DYNAMO, 2102, "recompile_reason", reason)
    seen = [compiled(number, compile_s=compile_s) for number in range(2)]
    return view(job(2), ranks, told, *seen)


@pytest.mark.parametrize(
    ("reason", "compile_s", "age_s", "verdict"),
    [
        pytest.param("'0/8: size mismatch'", 4.0, 95.0, "slow", id="for each shape"),
        pytest.param("None", 4.0, 95.0, "healthy", id="for the first time"),
        pytest.param("'0/1: size mismatch'", 4.0, 30.0, "healthy", id="once more"),
        pytest.param("'0/8: size mismatch'", 4.0, 3600.0, "healthy", id="now and then in an hour"),
        pytest.param("'0/99: size mismatch'", 1.0, 95.0, "healthy", id="for a fifth of each step"),
    ],
)
def test_compiling_most_of_the_time_and_many_times_before_is_slow(
    reason: str, compile_s: float, age_s: float, verdict: str
) -> None:
    assert compiling_job(reason, compile_s=compile_s, age_s=age_s).verdict == verdict


def test_who_went_through_rounds_while_it_was_sampled_goes_on_wherever_it_was_met() -> None:
    """Its main thread was met at the interpreter lock while a helper thread burns the processor."""
    lock = (*own("step", 40), Frame("acquire", SITE + "threading.py", 300))
    waits = [
        replace(fact, leaf="lock") if isinstance(fact, MainThread) else fact
        for fact in rank(
            0, own("step", 40), own("step", 40), wchan="futex_wait_queue", all_cpu_s=0.9
        )
    ]
    helper = Thread(("E9",), "job", 0, pid=100, role="rank", look=1, os_thread_id=901, frames=lock)
    others = rank(1)
    rounds = [sampled(number, *[0.39 if number == 0 else 0.1] * 4) for number in range(2)]

    unclear = view(job(2), waits, helper, others)
    assert "nothing tells whether it waits for one of these" in unclear.says
    found = view(job(2), waits, helper, others, *rounds)
    assert "nothing tells" not in found.says
    assert found.verdict in ("slow", "undetermined", "healthy")


def test_workers_that_have_just_started_once_more_tell_a_short_epoch_without_samples() -> None:
    def life(number: int, *, ended_s: float, worker_s: float) -> list[Fact]:
        lives = {"used_s": 4.0, "ended_children_s": ended_s, "state": "S"}
        worker = process(
            200 + number, rank=number, role="loader-worker", state="R", ppid=100 + number
        )
        young = [
            replace(one, age_s=worker_s) if isinstance(one, ProcessState) else one for one in worker
        ]
        mine = [
            replace(one, age_s=65.0) if isinstance(one, ProcessState) else one
            for one in rank(number, own("step", 7), LOADS, **lives)
        ]
        return [*mine, *young]

    def job_of(**life_of: float) -> Situation:
        return view(job(2), *(life(number, **life_of) for number in range(2)))

    found = job_of(ended_s=53.0, worker_s=3.6)

    assert (found.verdict, found.groups[0].ranks) == ("slow", ())
    assert "start loader workers again and again" in found.says
    assert job_of(ended_s=2.0, worker_s=3.6).verdict != "slow", "they started once"
    assert job_of(ended_s=53.0, worker_s=60.0).verdict != "slow", "a download of before"


def test_who_waits_for_a_service_in_each_step_is_slow_however_young_the_wait_of_now() -> None:
    asks = own("ask", 24)
    waits = [fact for number in (0, 2) for fact in rank(number, age_s=1.0)]
    waits += rank(1, asks, asks, age_s=1.0, wchan="wait_woken", call=BlockedCall("recvfrom", (9,)))
    service = Connection(
        ("E6",), "job", pid=101, fd=9, kind="tcp", state="ESTAB", remote="10.0.0.3:9", silent_s=1.0
    )
    late = [sampled(number, *[0.39 if number == 1 else 0.02] * 12) for number in range(3)]

    assert view(job(3), waits, service).verdict in ("healthy", "undetermined")
    found = view(job(3), waits, service, late)  # type: ignore[arg-type] # facts in a list

    assert (found.verdict, found.groups[0].ranks) == ("slow", (1,))
