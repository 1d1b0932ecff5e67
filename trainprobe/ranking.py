"""From suspect groups to ranked causes: evidence points per family, a confidence, and an explicit
unknown.

points(cause) = prior + Σ over families (strongest positive + strongest negative, clipped to ±13; decisive evidence ±26 instead)
confidence    = softmax over the group's candidates of ln(10)/10 · points / T
"""  # noqa: E501

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trainprobe.causes.awaited import awaited
from trainprobe.causes.calibration import calibrated
from trainprobe.causes.cause import Cause
from trainprobe.causes.classes import classes, everybody_meets
from trainprobe.causes.commands import again, is_command
from trainprobe.causes.component_told import trouble_told
from trainprobe.causes.deep_looks import deep_look
from trainprobe.causes.fitting_fixes import fitting
from trainprobe.causes.healing import healing, hinted
from trainprobe.causes.hearsay import Hearsay
from trainprobe.causes.last_printed import printed_sentence
from trainprobe.causes.linted import Linted, linted, with_lint
from trainprobe.causes.neighbours import LISTED, POINTS, neighbours
from trainprobe.causes.phase_told import phase_told, phase_weighings
from trainprobe.causes.phrases import sentence
from trainprobe.causes.priors import Priors
from trainprobe.causes.readiness_signs import steps_of
from trainprobe.causes.scene import Scene
from trainprobe.facts import Facts, LogJob
from trainprobe.model.diagnosis import (
    CauseClass,
    Fix,
    PlacedCause,
    RuledOut,
    Undecided,
    Weighing,
)
from trainprobe.model.ranks import name_ranks
from trainprobe.waits import SuspectGroup
from trainprobe.waits.dump_hangs import only_dumps
from trainprobe.waits.model_stress import seen_by

CLIP = 13
DECISIVE = 26
NAMED_CONFIDENCE = 0.6
NAMED_MARGIN_POINTS = 6
_MENDS_CAP = 3
_SEPARATED = 3  # so many candidates are told apart by what is to be done first
_FILES_CAP = 3
STRONG = 13
HOLDS_POINTS = (
    10  # a refining cause with this much evidence of its own stands for the one that it refines
)


@dataclass(frozen=True)
class Candidate:
    """A cause that has something to say for itself about one group. `own_points` leaves the
    prior out; `linted` is what lint says of it. `merely`: it is only what usually stops
    a job there.
    """

    cause: Cause
    weighings: tuple[Weighing, ...]
    own_points: int
    points: float
    linted: tuple[Linted, ...] = ()
    merely: bool = False


@dataclass(frozen=True)
class RankedGroup:
    """One group's answer: `placed` in order, the first named or `unknown`; where a log
    simply stops, the first may be likelier than `unknown` and yet not named. `deep` is the look
    inside the ranks that would tell more.
    """

    group: SuspectGroup
    placed: tuple[PlacedCause, ...]
    ruled_out: tuple[RuledOut, ...]
    undecided: tuple[Undecided, ...]
    deep: Fix | None = None

    @property
    def named(self) -> bool:
        return bool(self.placed) and self.placed[0].named


def rank_group(
    facts: Facts, group: SuspectGroup, causes: Iterable[Cause], priors: Priors
) -> RankedGroup:
    """Weigh every cause that competes in this group's mode.

    What lint read in the source comes last: where what was measured names a cause, it can speak for
    that one alone.
    """
    facts = seen_by(facts, group)
    hearsay = Hearsay(facts, group)
    scene = hearsay.scene
    speaking: list[tuple[Cause, tuple[Weighing, ...]]] = []
    ruled_out: list[RuledOut] = []
    silent: dict[str, tuple[Cause, int]] = {}
    tried = healing(scene)
    for cause in causes:
        if group.mode not in cause.modes:
            continue
        shown = hearsay.weigh(cause)
        against = next((weighing for weighing in shown if weighing.points == -DECISIVE), None)
        speaks = any(
            weighing.points > 0 for weighing in shown
        )  # a knob strengthens what shows itself
        weighings = (*shown, *tried.get(cause.id, ()))
        if against is not None:
            if speaks:
                ruled_out.append(RuledOut(cause.id, against.says))
        elif (
            speaks and points_of(weighings) > 0
        ):  # what speaks against it outweighs the rest: no candidate
            speaking.append((cause, weighings))
        else:
            silent[cause.id] = (cause, points_of(weighings))
    candidates = _candidates(speaking, {}, group, priors)
    read = linted(scene)
    if read:
        sure = _leader(candidates, priors)
        read = (
            read
            if sure is None
            else {
                id_: said
                for id_, said in read.items()
                if id_ == sure.cause.id or _may_decide(sure, id_, said)
            }
        )
        candidates = _candidates(speaking, read, group, priors)
    if _leader(candidates, priors) is None:
        candidates += [
            Candidate(
                silent[id_][0],
                (one,),
                one.points,
                priors.prior(id_, group.mode) + one.points,
                merely=True,
            )
            for id_, one in phase_weighings(scene).items()
            if id_ in silent and silent[id_][1] >= 0
        ]
    possible = _possible(scene, silent, read, LISTED - len(candidates))
    placed, undecided = _placed(scene, candidates, possible, priors)
    return RankedGroup(group, placed, tuple(ruled_out), undecided, deep_look(scene))


def _candidates(
    speaking: Iterable[tuple[Cause, tuple[Weighing, ...]]],
    read: Mapping[str, tuple[Linted, ...]],
    group: SuspectGroup,
    priors: Priors,
) -> list[Candidate]:
    """What was measured of each cause, and what lint says of it."""
    found = []
    for cause, measured in speaking:
        said = read.get(cause.id, ())
        weighings = with_lint(measured, said)
        own = points_of(weighings)
        found.append(
            Candidate(cause, weighings, own, priors.prior(cause.id, group.mode) + own, said)
        )
    return _refined(found)


def _possible(
    scene: Scene,
    silent: Mapping[str, tuple[Cause, int]],
    read: Mapping[str, tuple[Linted, ...]],
    most: int,
) -> list[Candidate]:
    """Causes that show nothing of their own, as far as the symptom may mean them, or source
    where somebody stands, and nothing speaks against them.
    """
    if most <= 0:
        return []
    healed = hinted(scene)
    found = [
        Candidate(silent[id_][0], (one,), one.points, one.points)
        for id_, one in healed.items()
        if id_ in silent and silent[id_][1] >= 0
    ]
    stood = {
        id_: said
        for id_, said in read.items()
        if said[0].near and id_ in silent and silent[id_][1] >= 0 and id_ not in healed
    }
    found += [
        Candidate(
            silent[id_][0],
            (said[0].weighing,),
            said[0].weighing.points,
            said[0].weighing.points,
            said,
        )
        for id_, said in stood.items()
    ]
    near = [
        (id_, one)
        for id_, one in neighbours(scene).items()
        if id_ in silent and silent[id_][1] >= 0 and id_ not in healed and id_ not in stood
    ]
    found += [Candidate(silent[id_][0], (one,), POINTS, POINTS) for id_, one in near]
    return found[:most]


def points_of(weighings: Iterable[Weighing]) -> int:
    """The sum over families; within one only the strongest for and the strongest against count."""
    families: dict[str, list[int]] = defaultdict(list)
    for weighing in weighings:
        families[weighing.family].append(weighing.points)
    total = 0
    for points in families.values():
        best, worst = max(0, *points), min(0, *points)
        total += best + worst if DECISIVE in (best, -worst) else max(-CLIP, min(CLIP, best + worst))
    return total


def confidences(points: Sequence[float], temperature: float) -> list[float]:
    """Softmax of decibans; `temperature` 1 takes them at their word, higher spreads them."""
    scale = math.log(10) / 10 / temperature
    top = max(points)
    weights = [math.exp(scale * (value - top)) for value in points]
    return [weight / sum(weights) for weight in weights]


def _refined(candidates: list[Candidate]) -> list[Candidate]:
    """Where a cause and the less specific one that it refines both hold, the specific one stands
    for both.
    """
    by_id = {candidate.cause.id: candidate for candidate in candidates}
    covered: set[str] = set()
    raised: dict[str, float] = {}
    stands: dict[str, int] = {}
    for candidate in sorted(candidates, key=lambda c: -c.own_points):
        if candidate.own_points < HOLDS_POINTS or candidate.cause.id in covered:
            continue
        for general in (
            by_id[name]
            for name in (candidate.cause.refines, *candidate.cause.accounts_for)
            if name in by_id
        ):
            if _may_decide(candidate, general.cause.id, general.linted):
                raised[general.cause.id] = max(
                    general.points, candidate.points + general.linted[0].weighing.points
                )
                continue
            if _contradicted(candidate) and candidate.own_points < general.own_points:
                continue
            covered.add(general.cause.id)
            # Of several that stand for the same one, only the best shown inherits its points; a
            # mere possibility does not draw level with it.
            if stands.setdefault(general.cause.id, candidate.own_points) == candidate.own_points:
                raised[candidate.cause.id] = max(
                    raised.get(candidate.cause.id, candidate.points), general.points
                )
    return [
        replace(c, points=raised.get(c.cause.id, c.points))
        for c in candidates
        if c.cause.id not in covered
    ]


def _contradicted(candidate: Candidate) -> bool:
    """Does something strong speak against it, so that what shows the general one is not for it?"""
    return any(row.points <= -STRONG for row in candidate.weighings)


def _may_decide(special: Candidate, general: str, said: Sequence[Linted]) -> bool:
    """Whether what was observed fits a cause and the one that stands for it alike, and the
    source speaks for the first: around all ranks, and not for the second.
    """
    stands_for = general in (special.cause.refines, *special.cause.accounts_for)
    return (
        stands_for
        and any(one.holds_all for one in said)
        and not any(row.family == "source" and row.points > 0 for row in special.weighings)
    )


def _ordered(candidates: Iterable[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda candidate: (-candidate.points, candidate.cause.id))


def _shares(ordered: Sequence[Candidate], priors: Priors) -> list[float]:
    """The confidence of each candidate, and last that of `unknown`."""
    return confidences(
        [*(candidate.points for candidate in ordered), priors.unknown], priors.temperature
    )


def _leader(candidates: Iterable[Candidate], priors: Priors) -> Candidate | None:
    """The candidate that can be named: with enough confidence, and clearly ahead of the next and
    of `unknown`.
    """
    ordered = _ordered(candidates)
    if not ordered or ordered[0].merely or _shares(ordered, priors)[0] < NAMED_CONFIDENCE:
        return None
    runner_up = max([priors.unknown, *(candidate.points for candidate in ordered[1:])])
    return ordered[0] if ordered[0].points - runner_up >= NAMED_MARGIN_POINTS else None


def _placed(
    scene: Scene,
    candidates: list[Candidate],
    possible: Sequence[Candidate],
    priors: Priors,
) -> tuple[tuple[PlacedCause, ...], tuple[Undecided, ...]]:
    ordered = _ordered(candidates)
    shares = _shares(ordered, priors)
    named = _leader(candidates, priors) is not None
    if named or (phase_told(scene) is not None and len(shares) > 1 and shares[0] > shares[-1]):
        shares = calibrated(scene, ordered[0].cause.id, shares)
    placed = [
        _mere(scene, candidate, share)
        if candidate.merely
        else _place(scene, candidate, share, named and index == 0, first=index == 0)
        for index, (candidate, share) in enumerate(zip(ordered, shares, strict=False))
    ]
    # What is merely possible is part of what is not known: it has at most half of the confidence of
    # `unknown`, and takes none from the others.
    part = shares[-1] / (2 * LISTED)
    placed += [_mere(scene, one, part) for one in possible]
    left = shares[-1] - part * len(possible)
    held = _classes(scene, ordered, shares)
    if named:
        own = placed[0].ranks in ((), scene.group.ranks)  # else it is not what the class speaks of
        return (replace(placed[0], classes=held if own else ()), *placed[1:]), ()
    unknown = _unknown(scene, left, priors, ordered, held)
    against = left if phase_told(scene) is not None else unknown.confidence
    leads = bool(ordered) and shares[0] > against  # `unknown` never stands above a likelier one
    if leads:
        unknown = _unknown(scene, left, priors, ordered, ())
    undecided = tuple(
        Undecided(candidate.cause.id, _settles(scene, candidate.cause)) for candidate in ordered[:3]
    )
    if leads:
        return (replace(placed[0], classes=held), *placed[1:], unknown), undecided
    return (unknown, *placed), undecided


def _classes(
    scene: Scene, ordered: Sequence[Candidate], shares: Sequence[float]
) -> tuple[CauseClass, ...]:
    """The classes that hold the group. A candidate that blames nobody else speaks for them, and
    what no candidate explains does as often as such a class is right.
    """
    own = sum(
        share
        for candidate, share in zip(ordered, shares, strict=False)
        if tuple(sorted(candidate.cause.ranks(scene))) in ((), scene.group.ranks)
    )
    found = classes(scene)
    return tuple(
        CauseClass(
            one.id,
            one.title,
            round((own + shares[-1] * found[0].trust) * one.trust / found[0].trust, 4),
            sentence(one.says[:1].upper() + one.says[1:]),
        )
        for one in found
    )


def _place(
    scene: Scene, candidate: Candidate, share: float, named: bool, *, first: bool
) -> PlacedCause:
    cause = candidate.cause
    printed = printed_sentence(scene, scene.group.ranks) if first and named else ""
    return PlacedCause(
        id=cause.id,
        title=cause.title,
        confidence=round(share, 4),
        points=round(candidate.points),
        named=named,
        ranks=tuple(sorted(cause.ranks(scene))),
        hosts=scene.group.hosts,
        # stacks in logs belong to no process
        pids=tuple(pid for pid in cause.pids(scene) if pid > 0),
        summary=" ".join(filter(None, (sentence(cause.summary(scene)), printed))),
        chain=scene.group.chain,
        because=tuple(sorted(_shown(candidate.weighings), key=lambda weighing: -weighing.points)),
        fixes=(
            *_mends(candidate, near=True),
            *(
                _verified(scene, one, candidate)
                for one in fitting(scene, cause.fixes_for(scene))
                if not _is_mended(one, candidate)
            ),
            *_mends(candidate, near=False),
        ),
        docs=f"docs/causes/{cause.id}.md",
    )


def _is_mended(fix: Fix, candidate: Candidate) -> bool:
    """Whether lint's rewrite of a line where somebody stands is all that `fix` could say of it."""
    places = [one.finding.where for one in candidate.linted if one.near and one.fix is not None]
    first = fix.steps[0] if fix.steps else ""
    return any(re.search(rf"{re.escape(place)}(?!\d)", first) for place in places)


def _verified(scene: Scene, fix: Fix, candidate: Candidate) -> Fix:
    """The default check of a fix: repeat the rungs in which the cause was found."""
    if fix.verify and fix.verify != again(scene, steps=fix.steps):
        return fix
    return replace(fix, verify=again(scene, candidate.weighings, fix.steps))


def _mere(scene: Scene, candidate: Candidate, share: float) -> PlacedCause:
    """A cause without evidence of its own: its summary and fixes would describe what nobody saw."""
    cause, reason = candidate.cause, candidate.weighings[0]
    return PlacedCause(
        id=cause.id,
        title=cause.title,
        confidence=round(share, 4),
        points=round(candidate.points),
        named=False,
        ranks=tuple(sorted(cause.ranks(scene))),
        hosts=scene.group.hosts,
        summary=f"{reason.says}.",
        because=candidate.weighings,
        fixes=(
            Fix("Look whether it is so", (cause.would_settle,), verify=again(scene)),
            *_mends(candidate, near=True),
            *_mends(candidate, near=False),
        ),
        docs=f"docs/causes/{cause.id}.md",
    )


def _mends(candidate: Candidate, *, near: bool) -> tuple[Fix, ...]:
    """How lint would write the lines that it found, each rewrite once: those where somebody
    stands, or the others.
    """
    return tuple(
        dict.fromkeys(
            one.fix for one in candidate.linted if one.fix is not None and one.near is near
        )
    )[:_MENDS_CAP]


def _shown(weighings: Iterable[Weighing]) -> list[Weighing]:
    """The weighings that counted: the strongest for and against of each family."""
    best: dict[tuple[str, bool], Weighing] = {}
    for weighing in weighings:
        key = (weighing.family, weighing.points > 0)
        if key not in best or abs(weighing.points) > abs(best[key].points):
            best[key] = weighing
    return list(best.values())


def _settles(scene: Scene, cause: Cause) -> str:
    """The step that separates the cause from its neighbours, for the first suspect's process."""
    process = scene.process(scene.group.ranks[0]) if scene.group.ranks else None
    if process is None or scene.live is None:
        return cause.would_settle
    return cause.would_settle.replace("<PID>", str(process.pid))


def _next_steps(scene: Scene, ordered: Sequence[Candidate]) -> tuple[str, ...]:
    """What would settle it: what separates the nearest causes, commands first, else what the kernel
    and the output say. Pids are those of the first suspect.
    """
    if scene.group.unready:
        return steps_of(scene) or ("trainprobe ready --standard",)
    nearest = [_settles(scene, candidate.cause) for candidate in ordered[:_SEPARATED]]
    nearest = list(dict.fromkeys(sorted(nearest, key=lambda step: not is_command(step))))
    if scene.group.mode == "hang" and scene.facts.one(LogJob, cell=scene.cell) is not None:
        phase = phase_told(scene)
        record = (
            (
                "let the next run record its collectives: TORCH_NCCL_TRACE_BUFFER_SIZE=2000"
                " TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_NCCL_DEBUG_INFO_TEMP_FILE=DIR/nccl_trace_rank_"
            ),
            "when it has hung: trainprobe explain <LOGS> DIR/nccl_trace_rank_*",
            "or while it hangs, on each node: trainprobe attach",
        )
        return (*((phase.separates,) if phase is not None else record), *nearest)
    if scene.live is not None and only_dumps(scene.live):
        return (
            "read the job's own output beside the dumps: trainprobe explain <DUMPS> <LOGS>",
            "or while it hangs, on each node: trainprobe attach",
        )
    told = trouble_told(scene) if scene.one(LogJob) is not None else None
    if told is not None:
        nearest = [told.component.separates, *nearest]
    wait = None
    if scene.live is not None and scene.group.mode == "hang" and scene.group.ranks:
        wait = awaited(scene, scene.group.ranks[0])
    if nearest or wait is not None:
        return tuple(dict.fromkeys((*(wait.look if wait is not None else ()), *nearest)))
    if scene.live is not None and scene.group.mode == "crash":  # nobody is left to look at
        return (
            (
                "trainprobe explain <LOG>, with the job's own log: what it printed last says why it"
                " ended"
            ),
        )
    process = scene.process(scene.group.ranks[0]) if scene.group.ranks else None
    if scene.live is not None and process is not None and process.state == "D":
        # whoever traces it waits with it
        return (
            f"cat /proc/{process.pid}/wchan; sudo cat /proc/{process.pid}/stack",
            f"cat /proc/{process.pid}/cgroup; sudo dmesg | tail -30",
            again(scene),
        )
    if scene.live is not None and process is not None:
        return (
            f"py-spy dump --native --pid {process.pid}",
            f"cat /proc/{process.pid}/wchan; sudo cat /proc/{process.pid}/stack",
        )
    if scene.live is not None:
        return (again(scene),)
    return (_what_to_read(scene), again(scene))


def _what_to_read(scene: Scene) -> str:
    log = scene.one(LogJob)
    if log is None or not log.files:
        return f"read what {scene.cell} printed: it is in the case folder"
    who = name_ranks(scene.group.ranks, "the job")
    before = "before it ended" if len(scene.group.ranks) < 2 else "before they ended"
    return f"read what {who} printed {before}: {_files(log.files)}"


def _files(paths: Sequence[str]) -> str:
    """A few of them by name."""
    more = len(paths) - _FILES_CAP
    return f"{', '.join(paths[:_FILES_CAP])}{f' and {more} more' if more > 0 else ''}"


def _unknown(
    scene: Scene,
    share: float,
    priors: Priors,
    ordered: Sequence[Candidate],
    held: tuple[CauseClass, ...],
) -> PlacedCause:
    """What stands first where no cause is named: the narrowest class, or that nothing fits."""
    group = scene.group
    near = ", ".join(candidate.cause.id for candidate in ordered[:3])
    says = (
        held[-1].says.rstrip(".") if held else group.says[:1].upper() + group.says[1:].rstrip(".")
    )
    nearest = (
        f" The nearest cause{'s are' if ', ' in near else ' is'} {near}, but the evidence does not"
        " decide."
        if near
        else " Nothing that was seen names its cause."
    )
    wait = awaited(scene, group.ranks[0]) if group.ranks and len(held) < 2 else None
    says += f". It waits for {wait.says}" if wait is not None and group.mode == "hang" else ""
    process = scene.process(group.ranks[0]) if group.ranks else None
    asleep = process is not None and process.state == "D" and bool(process.wchan)
    says += (
        f". It sleeps in the kernel's {process.wchan}, state D"
        if process is not None and asleep and len(held) < 2
        else ""
    )
    deep = deep_look(scene)
    steps = _next_steps(scene, ordered)
    many = len(ordered) > 1 and len(steps) > 1
    settle = Fix(
        "See which of them it is" if many else "Settle it",
        steps,
        verify=again(scene) if ordered else "",
    )
    return PlacedCause(
        id="unknown",
        title=held[-1].title if held else "The cause is not known",
        confidence=held[-1].confidence if held else round(share, 4),
        points=round(priors.unknown),
        named=False,
        ranks=() if everybody_meets(scene) and group.mode == "hang" else group.ranks,
        hosts=group.hosts,
        summary=" ".join(filter(None, (f"{says}.{nearest}", printed_sentence(scene, group.ranks)))),
        chain=group.chain,
        fixes=(deep, settle) if deep is not None else (settle,),
        docs="docs/causes/index.md",
        classes=held,
    )
