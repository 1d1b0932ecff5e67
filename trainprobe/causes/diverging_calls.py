"""Where each rank stands or broke when the ranks disagree on a collective, and their camps."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from trainprobe.causes.linted import same_file
from trainprobe.causes.phrases import Fixes, file_line, fixes, short
from trainprobe.causes.scene import WAITS_FOR_RANKS, Scene, Weighings, first_found, weighing
from trainprobe.causes.statements import Statement
from trainprobe.facts import Block, LintFinding
from trainprobe.facts.collectives import POINT_TO_POINT
from trainprobe.model.facts import Fact
from trainprobe.signatures.messages import message
from trainprobe.stacks.classify import classify
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user
from trainprobe.stacks.rank_conditions import ASKS_FOR_RANK, asks_by_a_name, asks_for_rank
from trainprobe.stacks.rules import RPC
from trainprobe.waits.peers import P2P_OPS
from trainprobe.waits.standings import behind_main

DISAGREE = message("parting.disagree")


SLEPT_S = 5.0
BEHIND = "behind"  # the branch of a call that stands below a way out
_OF_A_MODULE = re.compile(r"torch/nn/modules/module\.py$")
_BYTES = re.compile(r"op\.nbytes\. (\d+) vs (\d+)")


def disagreement(found: Statement) -> str:
    """What the backend said, in numbers where it gave them."""
    sizes = _BYTES.search(found.text)
    if sizes:
        return f"{sizes.group(1)} bytes arrived where {sizes.group(2)} were expected"
    return short(found.match.group(0), 100)


def of_stopped(scene: Scene) -> Weighings:
    """A suspect that is stopped comes to no call: where it stands is no call of its choice."""
    for rank in scene.ranks:
        process = scene.process(rank)
        if process is not None and process.state in ("T", "t"):
            says = f"Rank {rank} is stopped (state {process.state}), wherever it stands"
            yield weighing(-13, "process-state-and-locks", says, process)


DDP_FORWARD = "ddp-sync"
OF_EACH_STEP = frozenset({DDP_FORWARD, "backward"})
"""Operations to which all ranks come in each step, so that it is the other call that was missed."""


@dataclass(frozen=True)
class Place:
    """The operation in which a rank waits or broke, and the calling line (0 if unknown). `inside`
    is the library's function by which its way parts from the others', where they have one line.
    """

    rank: int
    op: str
    file: str
    line: int
    frames: tuple[Frame, ...]
    fact: Fact
    inside: str = ""

    @property
    def key(self) -> tuple[str, str, int]:
        return (self.op, self.file.rsplit("/", 1)[-1], self.line)

    def __str__(self) -> str:
        where = file_line(self.file, self.line)
        inside = f", in {self.inside}" if self.inside else ""
        op = "DDP's forward pass" if self.op == DDP_FORWARD else self.op
        return f"{op} at {where}{inside}" if where else op


def places(scene: Scene) -> dict[int, Place]:
    """The place of each rank that is inside a collective, or was when it died; found once for a
    scene, since a dozen causes ask for it.
    """
    if places not in scene.found:
        each = {rank: next(_places_of(scene, rank), None) for rank in scene.world}
        found = {rank: place for rank, place in each.items() if place is not None}
        # Who asks another process and who waits for such an answer, by `wait`, need not meet.
        asked = {RPC, "wait"} if any(place.op == RPC for place in found.values()) else set()
        scene.found[places] = _by_caller(
            {rank: place for rank, place in found.items() if place.op not in asked}
        )
    known: dict[int, Place] = scene.found[places]
    return known


def _by_caller(found: dict[int, Place]) -> dict[int, Place]:
    """Where all stand in one line of a function that they called from different lines, the place
    of each is the line from which it called: these are two calls.
    """
    if len({place.key for place in found.values()}) != 1:
        return _by_library(found)
    callers = {
        rank: [frame for frame in reversed(place.frames) if is_user(frame)]
        for rank, place in found.items()
    }
    for level in zip(*callers.values(), strict=False):
        if len({(frame.base, frame.line) for frame in level}) > 1:
            return {
                rank: replace(place, file=frame.file, line=frame.line)
                for (rank, place), frame in zip(found.items(), level, strict=True)
            }
    return found


def _by_library(found: dict[int, Place]) -> dict[int, Place]:
    """Several calls below one line of the user, such as `trainer.fit()`: where in the library."""
    if len({(place.file, place.line) for place in found.values()}) != 1:
        return found
    depth = _parting_depth(found)
    same = len({place.frames[depth].name for place in found.values() if place.frames}) == 1
    named = {}
    for rank, place in found.items():
        below = place.frames[depth : depth + 2]
        frame = below[-1 if same else 0] if below else None
        inside = "" if frame is None or is_user(frame) else frame.name
        named[rank] = replace(place, inside=inside)
    return named


def _parting_depth(found: dict[int, Place]) -> int:
    """How many of the outermost frames all have in common; less than the shortest stack has."""
    stacks = [place.frames for place in found.values()]
    shared = 0
    for level in zip(*stacks, strict=False):
        if len(set(level)) > 1:
            break
        shared += 1
    return max(0, min(shared, min(map(len, stacks), default=0) - 1))


def parted_first(found: dict[int, Place]) -> tuple[tuple[int, ...], ...]:
    """Ranks by where their whole stacks, libraries' frames among them, first differ; the smallest
    group first. Who is in another loop of a trainer is further off than who is a call ahead in it.
    """
    depth = _parting_depth(found)
    groups: dict[tuple[Frame, ...], list[int]] = defaultdict(list)
    for rank, place in found.items():
        groups[place.frames[depth : depth + 1]].append(rank)
    each = (tuple(sorted(ranks)) for ranks in groups.values())
    return tuple(sorted(each, key=lambda group: (len(group), group)))


def camps(found: dict[int, Place]) -> tuple[tuple[int, ...], ...]:
    """Ranks by place, the smallest camp first."""
    by_key: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for rank, place in found.items():
        by_key[place.key].append(rank)
    return tuple(
        sorted(
            (tuple(sorted(ranks)) for ranks in by_key.values()), key=lambda camp: (len(camp), camp)
        )
    )


def all_asleep(scene: Scene, found: dict[int, Place]) -> Weighings:
    """Have all ranks of a live job slept at their places for seconds?"""
    processes = [process for rank in found if (process := scene.process(rank)) is not None]
    slept = [process.asleep_s for process in processes if process.asleep_s is not None]
    still = all(thread.moved is False for thread in scene.threads(found))
    if (
        scene.live is not None
        and len(scene.world) == len(found) == len(slept)
        and still
        and min(slept) >= SLEPT_S
    ):
        says = f"Each has slept in its call for at least {min(slept):.0f} s: nobody was only late"
        yield weighing(6, "process-state-and-locks", says, *processes)


def before_the_model(found: dict[int, Place]) -> dict[int, Place]:
    """The places with only the frames that lead to a module of the model, or to `backward()`."""
    before = {}
    for rank, place in found.items():
        depth = next(
            (
                n
                for n, frame in enumerate(place.frames)
                if _OF_A_MODULE.search(frame.file) or frame.name == "_engine_run_backward"
            ),
            None,
        )
        before[rank] = replace(place, frames=place.frames[:depth])
    return before


def own_blocks(scene: Scene, found: dict[int, Place], camp: Sequence[int]) -> tuple[Block, ...]:
    """The `if` branches around this camp's calls alone, outermost first."""
    return _own(scene, found, camp, _branches)


def ways_out(scene: Scene, found: dict[int, Place], camp: Sequence[int]) -> tuple[Block, ...]:
    """The branches above this camp's calls alone by which they can be missed, outermost first."""
    return tuple(block for block in _own(scene, found, camp, _gates) if block.branch == BEHIND)


def _own(
    scene: Scene,
    found: dict[int, Place],
    camp: Sequence[int],
    read: Callable[[Scene, Iterable[Frame]], Iterator[Block]],
) -> tuple[Block, ...]:
    mine = [
        block for rank in camp[:1] if rank in found for block in read(scene, found[rank].frames)
    ]
    inside = frozenset(camp)
    theirs = {
        _branch_key(block)
        for rank, place in found.items()
        if rank not in inside
        for block in read(scene, place.frames)
    }
    return tuple(block for block in mine if _branch_key(block) not in theirs)


def rank_block(scene: Scene, found: dict[int, Place], camp: Sequence[int]) -> Block | None:
    """The condition on a rank that only this camp's calls stand under: an `if`, a way out above the
    call (`if rank != 0: return`), or a decorator of a function that leads there.
    """
    if found_if := first_found(
        block for block in own_blocks(scene, found, camp) if asks_for_rank(block)
    ):
        return found_if
    return first_found(block for block in _own(scene, found, camp, _gates) if asks_for_rank(block))


def under(block: Block, at: str = "") -> str:
    """Where a call stands by such a condition: ``under `if rank == 0:` (line 3)``; `at` says the
    place in other words.
    """
    at = at or f"line {block.line}"
    if asks_by_a_name(block):
        at = f"{at}, by `{short(block.made, 60)}`"
    if block.branch == BEHIND:
        return f"below the way out at `{short(block.text, 80)}` ({at})"
    branch = "the `else` of " if block.branch == "orelse" else ""
    return f"under {branch}`{short(block.text, 80)}` ({at})"


def line_of(scene: Scene, place: Place, block: Block) -> str:
    """Where the block stands, for a reader who knows the place: `line 3`, and in another file
    `train.py:3`.
    """
    for site in scene.sites(place.frames):
        heads = {(one.line, one.text) for one in site.blocks}
        if (block.line, block.text) in heads | {(one.line, one.text) for one in site.skips}:
            if not same_file(site.file, place.file):
                return file_line(site.file, block.line)
            break
    return f"line {block.line}"


def called_alone(scene: Scene, found: dict[int, Place], camp: Sequence[int]) -> LintFinding | None:
    """What lint says of a way to the call in which this camp alone waits: one that only some ranks
    take. Who took it is one call ahead of the others from there on, wherever it waits now.
    """
    theirs = {
        (frame.file, frame.line)
        for rank, place in found.items()
        if rank not in frozenset(camp)
        for frame in place.frames
    }
    mine = [
        frame
        for rank in camp[:1]
        if rank in found
        for frame in found[rank].frames
        if (frame.file, frame.line) not in theirs
    ]
    return first_found(
        finding
        for finding in scene.of(LintFinding)
        if finding.rule == "rank-conditional-collective"
        and finding.line != finding.reaches[1]
        and any(
            frame.line == finding.reaches[1] and same_file(frame.file, finding.reaches[0])
            for frame in mine
        )
    )


def called(scene: Scene, place: Place) -> str:
    """The operation and where it was called; where the program's own line calls a function that
    makes it, that call: ``trainer.evaluate()` at train.py:35, which calls all_gather`.
    """
    site = scene.site(place.file, place.line)
    text = site.text.strip() if site is not None else ""
    words = set(re.findall(r"\w+", text))
    own = re.search(r"[\w.]+\(", text) is not None and not any(place.op in word for word in words)
    named = place.op.isidentifier() and place.op != "backward"
    if not own or not named or text.startswith(("for ", "while ", "with ", "if ")):
        return str(place)
    inside = f", in {place.inside}" if place.inside else ""
    where = file_line(place.file, place.line)
    return f"`{short(text, 60)}` at {where}, which calls {place.op}{inside}"


def stands_at(place: Place, finding: LintFinding) -> bool:
    """Did the rank come to its call by the line of the finding?"""
    return any(
        frame.line == finding.line and same_file(frame.file, finding.file) for frame in place.frames
    )


def exchange(scene: Scene) -> dict[int, Place]:
    """Places of suspects that wait for each other in sends and receives; else empty."""
    found = places(scene)
    mine = {
        rank: found[rank] for rank in scene.ranks if rank in found and found[rank].op in P2P_OPS
    }
    return mine if scene.group.how == "cycle" and len(mine) == len(scene.ranks) > 1 else {}


def counted_exchanges(scene: Scene) -> tuple[str, ...]:
    """Who waits in a send or receive in a `for` loop that is not around all others' calls, so that
    it may go round more often than its partner: ``rank 1's recv at t.py:9 goes round with `for i
    in range(n):` (line 7)``, once for each line.
    """
    found = places(scene)
    around = {
        rank: {_branch_key(block) for site in scene.sites(place.frames) for block in site.blocks}
        for rank, place in found.items()
    }
    says: dict[tuple[str, str, int], str] = {}
    for rank, place in found.items():
        site = scene.site(place.file, place.line) if place.op in P2P_OPS else None
        loops = [block for block in site.blocks if block.kind == "for"] if site is not None else []
        if loops and any(_branch_key(loops[-1]) not in blocks for blocks in around.values()):
            where = f"`{short(loops[-1].text, 80)}` (line {loops[-1].line})"
            says.setdefault(place.key, f"rank {rank}'s {place} goes round with {where}")
    return tuple(says.values())


COUNTED = """
Send as often as is received
    {first}
    {second}
    a short last batch may make one side go round less often: take both numbers from one place, or
        send the number first
"""


def fixes_of_counts(scene: Scene) -> Fixes:
    """What to change where a loop of sends and one of receives may differ in length."""
    first, *others = counted_exchanges(scene) or ("",)
    return fixes(COUNTED, first=first, second="".join(others[:1])) if first else ()


# A condition that holds for all ranks but one, or for a half of them, singles nobody out.
# `not rank` holds for the first alone, as `rank` does for all others.
_NOT = r"\bnot\b(?! ?(?:\w+\.)*(?!is_)\w*(?:rank|procid|process_index)\b)"
_HOLDS_FOR_MOST = re.compile(rf"!=|{_NOT}|[<>]|^if [\w.]*rank:")
# What holds for all ranks but one: who is not met by it is the one.
_HOLDS_FOR_REST = re.compile(rf"!= ?0\b|{_NOT}|\brank ?> ?0\b|^if [\w.]*rank:")


_CLAUSES = re.compile(r"\b(?:and|or)\b")
_DENIES = re.compile(r"\bnot\b")
_DENIES_ALL = re.compile(r"\bnot\s*\(")


def holds_for_few(block: Block) -> bool:
    """Does the part of the condition that asks for the rank hold for one or few of them?"""
    text = block.text
    if asks_by_a_name(block):
        text = f"{'not ' if _DENIES.search(text) else ''}{block.made}"
    asked = [part for part in _CLAUSES.split(text) if ASKS_FOR_RANK.search(part)]
    whole = not asked or _DENIES_ALL.search(text)
    text = text if whole else " and ".join(asked)
    if block.branch == "body":
        return not _HOLDS_FOR_MOST.search(text)
    return _HOLDS_FOR_REST.search(text) is not None


def singled_out(scene: Scene, found: dict[int, Place]) -> tuple[int, ...]:
    """The camp that must act differently: the one for which an `if` on the rank holds, unless
    most ranks are in it, else who went another way first, else the smallest; of two equal camps
    the one whose call stands under a condition on the rank, else both.
    """
    sides = camps(found)
    under = [
        (side, block) for side in sides if (block := rank_block(scene, found, side)) is not None
    ]
    bodies = [side for side, block in under if holds_for_few(block)]
    if len(bodies) == 1 and 2 * len(bodies[0]) <= len(found):
        return bodies[0]
    if len(sides) == 2 and len(sides[0]) == len(sides[1]) and len(under) == 1:
        return under[0][0]
    first = parted_first(found) if len(sides) > 2 else ()
    if len(first) == 2 and len(first[0]) < len(first[1]):
        return first[0]
    return tuple(sorted(rank for side in sides if len(side) == len(sides[0]) for rank in side))


def _places_of(scene: Scene, rank: int) -> Iterator[Place]:
    thread = scene.thread(rank)
    # a look at a dying process may show no frame
    if thread is not None and thread.source == "py-spy" and thread.frames:
        # a key of the store is a wait for whoever sets it, and no call that all must make
        if (thread.leaf in WAITS_FOR_RANKS and thread.op != "key") or thread.in_backward:
            op = thread.op or ("backward" if thread.in_backward else "a collective")
            yield Place(rank, op, thread.user_file, thread.user_line, thread.frames, thread)
        elif found := behind_main(scene.watch.threads.get(thread.pid, ()), thread.leaf):
            other, place, line = found
            frames = (*thread.frames, *other.frames)
            yield Place(rank, place.op or "a collective", line.file, line.line, frames, other)
        return
    for fatal in scene.fatals([rank]):
        yield from _from_frames(rank, fatal.frames, fatal)
    for exception in (*scene.exceptions([rank]), *scene.exceptions([rank], echo=True)):
        yield from _from_frames(rank, exception.frames, exception)
    for call in reversed(scene.calls(rank)):
        # a log's collectives have no line: the divergence compares them
        if not call.finished and (not call.partial or call.op in POINT_TO_POINT):
            yield Place(
                rank,
                call.op,
                call.file,
                call.line,
                (Frame(call.function, call.file, call.line),),
                call,
            )


def _from_frames(rank: int, frames: tuple[Frame, ...], fact: Fact) -> Iterator[Place]:
    """A traceback or fatal stack that ends in a collective, or in DDP's backward pass."""
    place = classify(frames)
    if place.user is not None and place.leaf in WAITS_FOR_RANKS:
        yield Place(
            rank, place.op or "a collective", place.user.file, place.user.line, frames, fact
        )


def _branches(scene: Scene, frames: Iterable[Frame]) -> Iterator[Block]:
    for site in scene.sites(frames):
        yield from (block for block in site.blocks if block.kind == "if")


def _gates(scene: Scene, frames: Iterable[Frame]) -> Iterator[Block]:
    """The ways out above these lines, and the decorators of their functions."""
    for site in scene.sites(frames):
        yield from (block for block in site.blocks if block.kind == "decorator")
        for skip in site.skips:
            branch = BEHIND if skip.branch == "body" else "body"
            yield Block("if", skip.line, skip.text, branch, skip.made)


def _branch_key(block: Block) -> tuple[int, str, str]:
    return (block.line, block.text, block.branch)
