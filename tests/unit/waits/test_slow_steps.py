"""Jobs whose ranks are all slow alike."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.waits.live_rows import SITE, facts_of, job, own, rank, site, view
from tests.unit.waits.live_rows import scene_of as scene
from trainprobe.causes.data_loading import data_starvation
from trainprobe.causes.software import rank_compiling, remote_service_wait
from trainprobe.facts import Output, PrintedPace, Samples, SourceSite, Spell, Thread
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame
from trainprobe.waits.slow_steps import slow_steps

AT_THE_BUFFER = own("ReplayBuffer.sample", 36)
RESULT = (
    *own("RemoteReward.call", 29),
    Frame("Future.result", "/env/lib/python3.11/concurrent/futures/_base.py", 451),
)
COMPILES = (*own("step", 43), Frame("_compile", SITE + "torch/_dynamo/convert_frame.py", 900))
FORWARD = (*own("step", 44), Frame("_call_impl", SITE + "torch/nn/modules/module.py", 1700))
STEP_S = 0.5


def samples(number: int, stack: tuple[Frame, ...], share: float, steps: int = 8) -> Samples:
    """A rank that is at `stack` for this share of each step, and in torch for the rest."""
    spells = []
    for step in range(steps):
        began, until = step * STEP_S, (step + share) * STEP_S
        spells.append(Spell(began, until, stack, "python-run"))
        spells.append(Spell(until, (step + 1) * STEP_S, FORWARD, "native-run"))
    return Samples(("E8",), "job", number, pid=100 + number, host="node7", spells=tuple(spells))


def slow_job(stack: tuple[Frame, ...], *shares: float, **more: object) -> list[Fact]:
    facts: list[Fact] = [job(len(shares)), site(36, "rows = self.rows[:n].copy()")]
    facts.append(site(29, "rewards.extend(future.result())"))
    for number, share in enumerate(shares):
        facts += rank(number, stack, own("step", 44), **more)
        facts.append(samples(number, stack, share))
    return facts


def test_a_line_outside_of_torch_that_takes_half_of_each_step_is_slow() -> None:
    facts = slow_job(AT_THE_BUFFER, 0.6, 0.62)

    found = view(facts)

    assert found.verdict == "slow"
    assert "at train.py:36 in ReplayBuffer.sample, outside of torch" in found.says
    assert sum(one.points for one in data_starvation.CAUSE.weigh(scene(facts))) > 10


WAITS = (*own("step", 45), Frame("_engine_run_backward", SITE + "torch/autograd/graph.py", 979))


def by_turns(number: int, of: int, stack: tuple[Frame, ...], share: float) -> Samples:
    """A rank that is at `stack` in its own part of each step, and waits for the others' parts."""
    part_s, spells = STEP_S * share / of, []
    for step in range(12):
        began = step * STEP_S
        mine, ends = began + number * part_s, began + STEP_S * share
        spells.append(Spell(began, mine, WAITS, "comm-wait"))
        spells.append(Spell(mine, mine + part_s, stack, "python-run"))
        spells.append(Spell(mine + part_s, ends, WAITS, "comm-wait"))
        spells.append(Spell(ends, began + STEP_S, FORWARD, "native-run"))
    kept = tuple(one for one in spells if one.end > one.start)
    return Samples(("E8",), "job", number, pid=100 + number, host="node7", spells=kept)


def test_a_line_that_ranks_come_to_in_turn_takes_the_time_of_all() -> None:
    def taking(share: float) -> list[Fact]:
        facts = [one for one in slow_job(AT_THE_BUFFER, 0.3, 0.3, 0.3) if type(one) is not Samples]
        return [*facts, *(by_turns(number, 3, AT_THE_BUFFER, share) for number in range(3))]

    found = slow_steps(facts_of(taking(0.9)), "job", [0, 1, 2])

    assert found is not None
    assert found.says.startswith("in 90% of the time some rank is at train.py:36")
    assert slow_steps(facts_of(taking(0.5)), "job", [0, 1, 2]) is None


def test_less_than_half_or_one_rank_alone_is_not() -> None:
    assert slow_steps(facts_of(slow_job(AT_THE_BUFFER, 0.4, 0.45)), "job", [0, 1]) is None
    assert slow_steps(facts_of(slow_job(AT_THE_BUFFER, 0.9, 0.1)), "job", [0, 1]) is None


def test_a_line_that_computes_with_torch_or_keeps_a_pace_or_was_not_read_is_none() -> None:
    facts = slow_job(AT_THE_BUFFER, 0.8, 0.8)

    paces = ("time.sleep(0.02)", "threading.Event().wait(0.35)")
    for text in ("scores = (query @ keys.T).softmax(-1)", *paces):
        assert slow_steps(facts_of([*facts, site(36, text)]), "job", [0, 1]) is None
    unread = [fact for fact in facts if not isinstance(fact, SourceSite)]
    assert slow_steps(facts_of(unread), "job", [0, 1]) is None


def test_a_wait_for_games_that_others_play_may_be_the_job_itself() -> None:
    recv = Frame("Connection.recv", "/env/lib/python3.11/multiprocessing/connection.py", 250)
    plays, fetches = (*own("Rollouts.collect", 36), recv), (*own("Prefetcher.batch", 36), recv)

    assert slow_steps(facts_of(slow_job(plays, 0.8, 0.8)), "job", [0, 1]) is None
    assert slow_steps(facts_of(slow_job(fetches, 0.8, 0.8)), "job", [0, 1]) is not None


def test_one_long_stay_is_no_step() -> None:
    once = [samples(number, AT_THE_BUFFER, 0.95, steps=1) for number in range(2)]

    assert slow_steps(facts_of([job(2), *once]), "job", [0, 1]) is None


def test_threads_that_ask_a_service_are_what_the_main_ones_wait_for() -> None:
    asks = (
        Frame("_worker", "/env/lib/python3.11/concurrent/futures/thread.py", 58),
        Frame("post", "/job/train.py", 12),
        Frame("HTTPConnection.getresponse", "/env/lib/python3.11/http/client.py", 1386),
        Frame("SocketIO.readinto", "/env/lib/python3.11/socket.py", 706),
    )
    facts = slow_job(RESULT, 0.7, 0.7)
    alone = scene(facts)
    threads = [
        replace(one, main=False, os_thread_id=5, frames=asks)
        for one in facts
        if isinstance(one, Thread) and one.look == 1
    ]

    told = scene([*facts, *threads])

    assert not list(remote_service_wait.CAUSE.weigh(alone))
    assert sum(one.points for one in remote_service_wait.CAUSE.weigh(told)) > 10


def test_ranks_that_compile_in_each_step_of_a_job_that_steps() -> None:
    facts = slow_job(COMPILES, 0.9, 0.9)
    steps = Output(("E9",), "job", None, tail="step 50 | loss 4.47 | 2934 ms", silent_s=1.0)

    assert slow_steps(facts_of(facts), "job", [0, 1]) is None  # its first compilation, perhaps
    found = slow_steps(facts_of([*facts, steps]), "job", [0, 1])

    assert found is not None
    assert "compile for 90%" in found.says
    assert sum(one.points for one in rank_compiling.CAUSE.weigh(scene([*facts, steps]))) > 10


def test_a_pace_that_the_job_itself_prints_makes_it_slow() -> None:
    works: list[Fact] = [
        job(2),
        *rank(0, own("a", 5), own("a", 7)),
        *rank(1, own("a", 5), own("a", 7)),
    ]

    def told(times: float) -> PrintedPace:
        return PrintedPace(("E9",), "job", None, times, "79 ms", "3025 ms")

    assert view([*works, told(1.4)]).verdict == "healthy"
    found = view([*works, told(38.3)])

    assert found.verdict == "slow"
    assert "38.3 times as long as at the beginning" in found.says
