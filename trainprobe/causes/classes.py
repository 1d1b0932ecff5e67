"""What is sure of a group of suspects before its cause is: its classes, from general to special.

A class says where the trouble sits and what kind it is; it follows from the graph and from where
the suspects stand, not from evidence for any cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainprobe.causes.awaited import awaited, lock_is_seen
from trainprobe.causes.component_told import trouble_told, words_told
from trainprobe.causes.lone_workers import may_go_round
from trainprobe.causes.phase_told import phase_told
from trainprobe.causes.phrases import ranks_say, subject, verb
from trainprobe.causes.scene import Scene, waits_for_ranks
from trainprobe.facts import MainThread, ProcessState
from trainprobe.model.ranks import and_list
from trainprobe.stacks.progress import is_before
from trainprobe.stacks.rules import RPC
from trainprobe.waits.dump_hangs import only_dumps
from trainprobe.waits.far_ends import far_ends
from trainprobe.waits.standings import AT_THE_STORE

# How often a class is right, by hand: judged without the causes of one family after the other
# (tests/gallery/live/families.py), the right ranks were found in 172 of 174 live runs in which a
# rank did not join, in 86 of 98 in which the calls part, and in all 55 others; all of these are
# taken down, since those who wrote the graph knew these programs.
TRUST: Mapping[str, float] = {
    "rank-held-up": 0.95,
    "calls-part": 0.9,
    "collective-stalls": 0.85,
    "rank-gone": 0.95,
    "rank-unseen": 0.9,
    "meeting-incomplete": 0.9,
    "slow-rank": 0.9,
    "slow-job": 0.85,
    "first-failure": 0.9,
    "ended-by-hand": 0.9,
    "says-it-waits": 0.9,
    "one-look": 0.7,
}
# A rank that has passed the rendezvous was counted there: others that still wait in it may belong
# to another world, and then it holds up nobody.
PASSED_THE_RENDEZVOUS = 0.6
# What a rank does is read off one thread; a narrower class is right that often where the wider is.
NARROWER = 0.95
TITLES: Mapping[str, str] = {
    "rank-held-up": "A rank does not get on, and the others wait for it",
    "calls-part": "The ranks' calls part",
    "collective-stalls": "A collective does not end, with its ranks inside it",
    "rank-gone": "A rank is gone, and the others wait for it",
    "rank-unseen": "Ranks are missing here, and the others wait for them",
    "meeting-incomplete": "Not all ranks come to the rendezvous",
    "slow-rank": "One rank is slower than the others",
    "slow-job": "All ranks are slow",
    "first-failure": "One failure came first",
    "ended-by-hand": "Somebody ended it by hand",
    "one-look": "One look at one process is all there is",
    "says-it-waits": "It waits, by its own words or those of whoever watched it",
    "rank-stopped": "A rank is stopped from outside",
    "waits-outside": "A rank waits for something outside of the job",
    "waits-for-child": "A rank waits for a process that it started",
    "waits-within": "A rank waits for something within its own process",
    "call-does-not-return": "A rank is inside a call that does not return",
    "asks-again": "A rank asks again and again for what does not come",
    "waits-in-store": "A rank waits for a key in the store that nobody sets",
    "works-alone": "A rank works alone",
    "unanswered": "A rank's call of another one is not answered",
}
_OUTSIDE = frozenset({"net-io", "file-io"})
WAITS_FOR_SOMEBODY = {
    "debugger": "a person at the prompt of a debugger",
    "terminal": "input from a terminal",
    "accept": "somebody to connect",
}
_AT_THE_START = frozenset({"init_process_group", "rendezvous", "store_based_barrier"})
_PLURALS = {"is": "are", "waits": "wait", "works": "work", "asks": "ask", "sleeps": "sleep"}
_CHILD = frozenset({"dataloader", "child-wait"})


# How often the component of a line is right, by what told: by hand, a little below what is found
# where the examples of all wordings are cut (tests/unit/logtext/test_components.py).
TOLD_BY: Mapping[str, float] = {
    "wording": 0.97,
    "form": 0.9,
    "cut": 0.85,
    "frame": 0.85,
    "type": 0.85,
    "word": 0.7,
}


@dataclass(frozen=True)
class Class:
    """`trust` is the probability that it is right where no cause is known, `says` one sentence.
    `named` is the component of a class that is one, or when it is where the log stops.
    """

    id: str
    trust: float
    says: str
    named: str = ""

    @property
    def title(self) -> str:
        if self.id.startswith(STOPS_IN):
            return f"The log stops {self.named}"
        return f"The trouble shows in {self.named}" if self.named else TITLES[self.id]


IN_COMPONENT = "in-"
STOPS_IN = "stops-in-"
# How often the last known line tells the phase, by hand: the next may begin without a word.
STOPS_TRUST = 0.85


def is_component(class_id: str) -> bool:
    """Whether a class says in which component the trouble shows."""
    return class_id.startswith(IN_COMPONENT)


def classes(scene: Scene) -> tuple[Class, ...]:
    """The classes that hold this group, the widest first; none where the trouble is not located."""
    group = scene.group
    if group.unready or group.foreseen is not None or group.stressed is not None:
        return ()
    phase = phase_told(scene)
    if phase is not None:
        name = f"{STOPS_IN}{phase.id}"
        return (Class(name, STOPS_TRUST, group.says, phase.when),)
    found = tuple(_of_hang(scene) if group.mode == "hang" else _of_others(scene))
    if not found and group.mode == "hang" and scene.live is not None and only_dumps(scene.live):
        found = (Class("one-look", TRUST["one-look"], group.says),)
    return found or tuple(_of_component(scene, TRUST["first-failure"]))


def _of_others(scene: Scene) -> Iterator[Class]:
    group = scene.group
    if group.mode == "slow":
        name = "slow-rank" if group.ranks else "slow-job"
        yield Class(name, TRUST[name], group.says)
        if may_go_round(scene) is not None:
            yield Class("works-alone", TRUST[name] * NARROWER, group.says)
    elif group.how == "failed-first" and (group.ranks or scene.origin or scene.first_failure):
        yield Class("first-failure", TRUST["first-failure"], group.says)
        if scene.origin is not None and scene.origin.interrupted:
            says = "Somebody pressed Ctrl-C, and the traceback only shows where it stood"
            yield Class("ended-by-hand", TRUST["ended-by-hand"], f"{says}: {group.says}")
        yield from _of_component(scene, TRUST["first-failure"])


def _of_component(scene: Scene, trust: float) -> Iterator[Class]:
    """The component in which a failure or a wait of a log shows."""
    told = trouble_told(scene)
    if told is not None and scene.group.mode != "slow":
        says = f"{told.says[:1].upper()}{told.says[1:]}: {words_told(scene, told)}"
        name = f"{IN_COMPONENT}{told.component.id}"
        yield Class(name, trust * TOLD_BY[told.by], says, told.component.named)


def _of_hang(scene: Scene) -> Iterator[Class]:
    group = scene.group
    threads = scene.threads(scene.suspects)
    if group.how == "cycle" or group.divergence is not None:
        yield Class("calls-part", TRUST["calls-part"], _camps(scene) or group.says)
    elif group.how == "left":
        yield Class("rank-gone", TRUST["rank-gone"], group.says)
    elif group.how == "not-visible" or everybody_meets(scene):
        name = "rank-unseen" if group.ranks and not everybody_meets(scene) else "meeting-incomplete"
        yield Class(name, TRUST[name], group.says)
    elif group.how == "stuck-inside" and threads and not any(map(waits_for_ranks, threads)):
        does = what_it_does(scene, group.ranks[0]) if group.ranks else None
        if does is not None:
            yield Class(does[0], TRUST["rank-held-up"] * NARROWER, f"{subject(scene)} {does[1]}")
    elif group.how == "stuck-inside" and threads:
        yield Class("collective-stalls", TRUST["collective-stalls"], _camps(scene) or group.says)
    elif group.waits:
        yield Class("says-it-waits", TRUST["says-it-waits"], group.says)
        yield from _of_component(scene, TRUST["says-it-waits"])
    elif group.how == "never-joined" and group.ranks:
        passed = passed_the_rendezvous(scene)
        trust = PASSED_THE_RENDEZVOUS if passed else TRUST["rank-held-up"]
        yield Class("rank-held-up", trust, group.says)
        does = what_it_does(scene, group.ranks[0])
        if does is not None:
            yield Class(does[0], trust * NARROWER, f"{subject(scene)} {does[1]}")


def passed_the_rendezvous(scene: Scene) -> bool:
    """Whether the suspects are past the rendezvous at which all others still wait, and not on a
    line before it.
    """
    suspects, waiting = scene.threads(scene.ranks), scene.threads(scene.others)
    return (
        bool(suspects and waiting)
        and not any(_meets(thread) for thread in suspects)
        and all(_meets(thread) for thread in waiting)
        and not any(is_before(one.frames, other.frames) for one in suspects for other in waiting)
    )


def _meets(thread: MainThread) -> bool:
    return thread.leaf == AT_THE_STORE and thread.op in _AT_THE_START


def everybody_meets(scene: Scene) -> bool:
    """Whether all ranks that are seen wait at the rendezvous, so that none of them holds it up."""
    threads = scene.threads(scene.world)
    return bool(threads) and all(_meets(thread) for thread in threads)


def what_it_does(scene: Scene, rank: int) -> tuple[str, str] | None:
    """The narrower class of a rank that does not join the others, and what it does, without a
    subject; None where that is not seen.
    """
    thread, process = scene.thread(rank), scene.process(rank)
    if process is not None and process.state in ("T", "t"):
        return "rank-stopped", f"is stopped (state {process.state})"
    if thread is None:
        return None
    many = len(scene.group.ranks) > 1
    at = f" at {thread.where}" if thread.where else ""
    wait = awaited(scene, rank)
    name, does = _class_of(scene, thread, process)
    if name in ("works-alone", "call-does-not-return", "waits-in-store") or wait is None:
        return name, _plural(f"{does}{at}") if many else f"{does}{at}"
    what = f"waits{at} for {wait.says}"
    return name, _plural(
        what.replace(" for its child", ", each for a child of its own, such as")
    ) if many else what


def _plural(does: str) -> str:
    word, _, rest = does.partition(" ")
    return f"{_PLURALS.get(word, word)} {rest}"


def _class_of(scene: Scene, thread: MainThread, process: ProcessState | None) -> tuple[str, str]:
    if process is not None and process.state == "D" and process.wchan:
        return "waits-outside", f"sleeps in the kernel's {process.wchan} (state D)"
    activity = scene.watch.activity(thread.pid) if scene.live is not None else None
    if activity is not None and activity.goes_on:
        return "works-alone", "works"
    if thread.leaf == AT_THE_STORE:
        return "waits-in-store", "waits in the store"
    asks_below = thread.leaf == "net-io" and _answers_from_below(scene, process)
    if asks_below or (thread.leaf in _CHILD and thread.op not in WAITS_FOR_SOMEBODY):
        whom = "its loader workers" if thread.leaf == "dataloader" else "a process that it started"
        return "waits-for-child", f"waits for {whom}"
    if thread.leaf in _OUTSIDE or thread.op in WAITS_FOR_SOMEBODY:
        what = "a file" if thread.leaf == "file-io" else "an answer from the network"
        return "waits-outside", f"waits for {WAITS_FOR_SOMEBODY.get(thread.op, what)}"
    if thread.leaf in ("import-lock", "teardown") or (
        thread.leaf == "lock" and lock_is_seen(scene, thread)
    ):
        return "waits-within", "waits within its own process"
    if (
        thread.leaf == "sleep"
        or (activity is not None and activity.kind == "polls")
        or (thread.leaf == "python-run" and thread.moved is False)
    ):
        return "asks-again", "asks again and again"
    if thread.op == RPC:
        return (
            "unanswered",
            "waits for the answer to a remote call, at which nobody is seen to work,",
        )
    return "call-does-not-return", "is inside a call that does not return"


def _answers_from_below(scene: Scene, process: ProcessState | None) -> bool:
    """Is a process below it at the other end of what it waits on?"""
    if process is None or scene.live is None:
        return False
    below = {child.pid for child in scene.watch.children(process.pid)}
    ends = far_ends(scene.facts, scene.cell, process) if below else ()
    return any(pid in below for end in ends for pid in end.pids)


def _camps(scene: Scene) -> str:
    """`Rank 1 waits in barrier (train.py:28 in main), ranks 0 and 2 in backward (…)`; empty where
    not everybody's call is seen.
    """
    calls: dict[tuple[str, str], list[int]] = {}
    threads = scene.threads(scene.world)
    if not threads or len(threads) < len(scene.world):
        return ""
    for thread in threads:
        if not thread.op or not thread.where:
            return ""
        calls.setdefault((thread.op, thread.where), []).append(thread.rank or 0)
    if len(calls) > _MOST_CALLS:
        return ""
    if len(calls) == 1:
        op, where = next(iter(calls))
        return (
            f"All ranks are inside {op} at {where}, and it does not end; in which groups they"
            " stand, and at which of their calls, no stack shows"
        )
    first = sorted(calls.items(), key=lambda item: (len(item[1]), item[1]))
    parts = [
        f"{ranks_say(ranks, capital=not number)}"
        f"{'' if number else ' ' + verb(ranks, 'waits', 'wait')} in {op} ({where})"
        for number, ((op, where), ranks) in enumerate(first)
    ]
    return f"{and_list(parts)}; none of these calls can end without the others"


_MOST_CALLS = 4
