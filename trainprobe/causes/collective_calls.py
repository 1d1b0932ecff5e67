"""What logs alone weigh for and against each cause of a collective that never ended."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from trainprobe.causes.collective_timeouts import SHARDED, Timeouts
from trainprobe.causes.diverging_calls import camps, places
from trainprobe.causes.phrases import ranks_say, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import quote
from trainprobe.facts import (
    CollectiveCall,
    LogEvent,
    LogFailure,
    LogProgress,
    LogWork,
    RankException,
)
from trainprobe.facts.compared_calls import compared_text, has_no_tensor, is_length
from trainprobe.facts.counts_by_rank import RankCount, counts_apart
from trainprobe.facts.log_mixtures import MIXED_ROWS
from trainprobe.model.facts import Fact
from trainprobe.waits.bars_apart import bars_of_other_lengths
from trainprobe.waits.divergence import MANY, SAME_SIZE, call_says, camps_say

# torch's defaults are 600 s for NCCL and 1800 s for gloo (torch/distributed/constants.py)
SHORT_S = 300.0
# Batches of other length, told from layers by their sizes.
_MOST_ROWS, _NARROWEST_ROW, _LARGEST = 256, 16, 1 << 20
_FINGERPRINT = re.compile(
    r"OpType=(\w{1,40}?)(?:,|\)|$)(?: ?TensorShape=(\[[\d, ]{0,80}\]))?(?:,"
    r" ?TensorDtypes=(\w{1,20}))?"
)
_NUMBERED = re.compile(r"SequenceNumber=(\d{1,18})")
CUT = "what was cut off"
# Lines of who waited in a collective for as long as is allowed.
GAVE_UP = ("barrier-timeout", "collective-timeout")


def _fingerprints(scene: Scene) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """(line, (number, operation, shape) of each fingerprint in it), the longest line first."""
    texts = [
        compared_text(event) for event in scene.of(LogEvent) if event.event == "collective-mismatch"
    ]
    texts += [
        fact.message for fact in scene.of(RankException) if "CollectiveFingerPrint" in fact.message
    ]
    return [(text, _prints(text)) for text in sorted(texts, key=len, reverse=True)]


def _prints(text: str) -> list[tuple[str, str, str]]:
    """Those of a line whose operation it shows."""
    parts = text.split("CollectiveFingerPrint(")[1:3]
    if len(parts) > 1 and is_length(*parts):
        parts = parts[:1]
    return [
        (number.group(1) if (number := _NUMBERED.search(part)) else "", *_op_of(part))
        for part in parts
    ]


def _length_shown(scene: Scene) -> str:
    """The other rank's finger print where torch shows only how long it is, else empty."""
    for text, _ in _fingerprints(scene):
        pair = text.split("CollectiveFingerPrint(")[1:3]
        if len(pair) > 1 and is_length(*pair):
            return pair[1]
    for event in scene.of(LogEvent):
        if event.event == "fingerprint-diff" and {"seq", "op"} <= event.captured.keys():
            mine, other = (
                f"SequenceNumber={event.captured[number]}OpType={event.captured[op]})"
                for number, op in (("seq", "op"), ("seq_other", "op_other"))
            )
            shape = " TensorShape" * ("aspect" in event.captured)
            if is_length(mine + shape, other):
                return other
    return ""


def _cut_alike(scene: Scene) -> bool:
    """Whether the other's operation begins as this one's and is cut off within its name: then it
    is the same, and what differs are the tensors.
    """
    for text, prints in _fingerprints(scene):
        cut = re.search(r"OpType=(\w{4,40})\W{0,3}$", text)
        if cut and len(prints) == 2 and prints[0][1] != cut[1] and prints[0][1].startswith(cut[1]):
            return True
    return False


def lone_print(scene: Scene) -> tuple[str, str, str] | None:
    """(number, operation, shape) of the only fingerprint that a message which was cut off still
    shows; None where there are two to compare, or none.
    """
    if said_sizes(scene) is not None or _aspect(scene):
        return None
    shown = [one for _, prints in _fingerprints(scene) for one in prints if one[1]]
    return shown[0] if shown else None


def is_scalar(shape: str) -> bool:
    """Is it the shape of one element, as of a flag or a size? Such a call cannot differ in size."""
    return shape.startswith(("[1]", "[]"))


def said_sizes(scene: Scene) -> tuple[str, tuple[str, str, str], tuple[str, str, str]] | None:
    """(line, both ranks' (number, operation, shape)) of fingerprints that differ, else None."""
    alone: list[tuple[str, tuple[str, str, str]]] = []
    for text, prints in _fingerprints(scene):
        if len(prints) == 2 and prints[0][1] and prints[1][1]:
            return text, prints[0], prints[1]
        alone += [(text, one) for one in prints if one[1]]
    # up to torch 1.11 each rank printed its own only
    other = next((one for _, one in alone if one != alone[0][1]), None)
    return (alone[0][0], alone[0][1], other) if other is not None else None


def _op_of(part: str) -> tuple[str, str]:
    match = _FINGERPRINT.search(part)
    if match is not None:
        return (match.group(1), f"{match.group(2) or ''}{match.group(3) or ''}")
    return ("", "")


def differs(scene: Scene) -> str:
    """What differs in two fingerprints: number, operation or shape; empty if unknown, and where the
    calls themselves show the shape.
    """
    what = _aspect(scene)
    return "" if what == "shape" and scene.parted is not None else what


def _aspect(scene: Scene) -> str:
    if _cut_alike(scene):
        return "shape"
    found = said_sizes(scene)
    if found is None:
        if shown := _length_shown(scene):
            return "operation" if has_no_tensor(shown) else ""
        reported = [event for event in scene.of(LogEvent) if event.event == "fingerprint-diff"]
        for event in reported:
            if "seq" in event.captured:
                return "number"
            if "op" in event.captured:
                return "operation"
            if "aspect" in event.captured:
                return "shape"
            return ""
        return ""
    _, mine, theirs = found
    if mine[1] != theirs[1]:
        return "number" if mine[0] != theirs[0] else "operation"
    return "shape" if mine[2] != theirs[2] else "number" if mine[0] != theirs[0] else ""


def culprits(scene: Scene, *whats: str) -> tuple[LogEvent, ...]:
    """Lines of a recorder's analysis that name a culprit with one of these errors."""
    return tuple(
        event
        for event in scene.of(LogEvent)
        if event.event == "recorder-culprit" and event.captured.get("what") in whats
    )


def weigh_culprits(scene: Scene, points: int, *whats: str) -> Weighings:
    """The recorder's analysis names a culprit with one of these errors."""
    if found := culprits(scene, *whats):
        says = f"The recorder's analysis says so: {short(found[0].line, 120)}"
        yield weighing(points, "flight-recorder", says, *found)


def _compared(timeouts: Timeouts) -> list[LogEvent]:
    """Lines in which the backend compared the ranks' calls."""
    return timeouts.events("collective-mismatch", "fingerprint-diff")


def _of_compared(scene: Scene, timeouts: Timeouts) -> Weighings:
    """What the backend found when it compared the calls."""
    parted, what = scene.parted, differs(scene)
    found = said_sizes(scene)
    bare = has_no_tensor(_length_shown(scene))
    if what == "number" or (what == "operation" and (parted is None or bare)):
        calls = f": {found[1][1]} against {found[2][1]}" if found is not None else ""
        if bare:
            calls = ": the other's has no tensor, as a barrier has none"
        # with one number for both, two orders of the same calls are nearer; where both make the
        # same call, what is not compared has counted too, such as a send
        same = found is not None and found[1][1:] == found[2][1:]
        points = 13 if bare or (what == "number" and not same) else 6
        says = f"The backend compared the calls, and they differ{calls}"
        yield weighing(points, "suspects-log", says, *_compared(timeouts))
        if what == "number" and not same:
            says = "The ranks have made a different number of calls"
            yield weighing(10, "other-stacks", says, *_compared(timeouts))
    elif what == "shape" and len(camps(places(scene))) > 1:
        says = "The backend compared the calls: one operation, from different lines"
        yield weighing(13, "suspects-log", says, *timeouts.events("collective-mismatch"))
    elif what == "shape":
        says = "The ranks made the same call; only its tensors differ"
        yield weighing(-13, "suspects-log", says, *_compared(timeouts))
    if (lone := lone_print(scene)) is not None and parted is None:
        of_one = f", a {lone[1]} of one element, which cannot differ in size" * is_scalar(lone[2])
        says = f"The backend compared the calls, and another rank's is not this{of_one}"
        shown = _compared(timeouts) or scene.of(RankException)
        yield weighing(13 if of_one else 6, "suspects-log", says, *shown[:3])


def of_conditional(scene: Scene, timeouts: Timeouts) -> Weighings:
    """Only some ranks reach a collective."""
    parted, what = scene.parted, differs(scene)
    yield from _of_compared(scene, timeouts)
    if timeouts.saved_together and timeouts.task is not None:
        says = (
            f"The others waited {(timeouts.timeout_s or 0) / 60:.0f} min in"
            f" {call_says(timeouts.calls[0])} while a sharded model was saved, in which all ranks"
            f" take part: «{short(timeouts.task.line, 80)}»"
        )
        yield weighing(10, "other-stacks", says, timeouts.task, timeouts.calls[0])
    yield from _apart(scene, timeouts)
    yield from _stalled(timeouts)
    stood = places(scene)
    if timeouts.calls and len(camps(stood)) > 1 and set(stood) & set(timeouts.first):
        says = "They waited their whole limit in these calls: nobody was only late"
        yield weighing(6, "process-state-and-locks", says, *call_lines(timeouts))
    yield from weigh_culprits(scene, 13, "COLLECTIVE_TYPE_MISMATCH")
    over = timeouts.over
    if over is not None and list(timeouts.first) == [0] and timeouts.world != 1:
        says = (
            f"Rank 0 alone gave up in {call_says(timeouts.calls[0])} after the training was over"
            f" («{short(over.line, 60)}»): the others had left or made no such call"
        )
        yield weighing(13, "suspects-log", says, over)
    missing, frames = timeouts.missing, _camps_of_frames(timeouts)
    if len(frames) > 1:
        says = "; ".join(
            f"{ranks_say(ranks)} at {place}" for place, ranks in list(frames.items())[:3]
        )
        says = f"The calls that timed out stand at different lines: {says}"
        yield weighing(10, "other-stacks", says, *timeouts.events("recorder-frame"))
    if timeouts.behind:
        yield weighing(
            _of_one_behind(timeouts), "flight-recorder", timeouts.behind, *call_lines(timeouts)
        )
    if missing is not None and missing.sure:
        yield weighing(3, "suspects-log", missing.says, *missing.facts)
    elif (
        parted is None
        and timeouts.calls
        and not timeouts.together
        and not what
        and (timeouts.timeout_s or SHORT_S) >= SHORT_S
    ):
        alone = list(timeouts.first) == [0] and timeouts.world != 1
        says = (
            f"{'Only rank 0' if alone else 'Not every rank'} gave up in"
            f" {call_says(timeouts.calls[0])},"
            " and nobody says who was elsewhere"
        )
        yield weighing(3, "suspects-log", says, timeouts.calls[0])


def _stalled(timeouts: Timeouts) -> Weighings:
    """Horovod says that some ranks have submitted what others have not, and lists what."""
    stalls, lacking = timeouts.events("horovod-stall"), timeouts.events("horovod-missing")
    names = {event.captured["tensors"] for event in lacking}
    if stalls and len(names) == 1:
        says = "Ranks lack a tensor that others have submitted, and all the same one"
        yield weighing(6, "suspects-log", says, *lacking[:4])
    if stalls and len(names) > 1:
        says = "Ranks lack tensors that others have submitted, and not the same ones: "
        says += "; ".join(short(name, 40) for name in sorted(names)[:3])
        yield weighing(13, "suspects-log", says, *lacking[:4])


def _apart(scene: Scene, timeouts: Timeouts) -> Weighings:
    """Bars of one training that stand at other steps: a rank has left steps out."""
    if not timeouts.calls:
        return
    for work in scene.of(LogWork):
        if work.ahead is not None and work.kind not in ("data", "load"):
            says = (
                f"A bar stands at {work.step} of {work.of}, and another rank's stood at"
                f" {work.ahead[0]} before: the ranks are not at one step"
            )
            yield weighing(13, "probe-outcome", says, work)
            return


def of_order(scene: Scene, timeouts: Timeouts) -> Weighings:
    """The same calls in another order."""
    what = differs(scene)
    if what == "operation":
        bare = has_no_tensor(_length_shown(scene))
        says = "The backend compared the calls: same number, other operation"
        yield weighing(6 if bare else 13, "suspects-log", says, *_compared(timeouts))
        if (
            (prints := said_sizes(scene)) is not None
            and prints[1][0]
            and not bare
            and len(camps(places(scene))) < 2
        ):
            says = f"All had made as many calls before (#{prints[1][0]})"
            yield weighing(6, "other-stacks", says, *timeouts.events("collective-mismatch"))
    elif scene.parted is None and lone_print(scene) is not None:
        says = "The backend compared the calls, and they differ; what the other is was cut off"
        yield weighing(6, "suspects-log", says, *_compared(timeouts)[:3])
    elif not what and (
        checked := [
            event
            for event in timeouts.events("collective-mismatch")
            if event.signature == "mismatched-collective"
        ]
    ):
        yield quote(13, "The backend compared the calls, and they differ", checked[0])
    elif what == "shape":
        says = "The ranks made the same call; only its tensors differ"
        yield weighing(-6, "suspects-log", says, *_compared(timeouts))
    elif timeouts.behind and _other_operations(timeouts):
        says = f"They waited in different operations: {timeouts.behind}"
        yield weighing(6, "flight-recorder", says, *call_lines(timeouts))
    elif (unlike := _over_for_one(timeouts)) is not None:
        ahead, late = unlike
        says = (
            f"{ranks_say([ahead.rank or 0])} is through with #{late.number}, in which"
            f" {ranks_say([late.rank or 0], capital=False)} still waits: one call of both would"
            " have ended for both"
        )
        yield weighing(13, "flight-recorder", says, *unlike)
    yield from weigh_culprits(scene, 6, "COLLECTIVE_TYPE_MISMATCH")


def of_shape(scene: Scene, timeouts: Timeouts) -> Weighings:
    """One call with tensors of other size."""
    what, found = differs(scene), said_sizes(scene)
    if what == "shape":
        sizes = f": {found[1][2]} against {found[2][2] or CUT}" if found is not None else ""
        op = f" of {found[1][1]}" if found is not None else ""
        # one operation, but from different lines: then it is not one call
        apart, cut = len(camps(places(scene))) > 1, _cut_alike(scene)
        says = f"The backend compared the tensors{op}, and they differ{sizes}"
        yield weighing(
            6 if apart else 13 if cut else 26, "suspects-log", says, *_compared(timeouts)
        )
    elif what:
        says = "The backend says that the calls themselves differ"
        yield weighing(-13, "suspects-log", says, *_compared(timeouts))
    truncated = [
        event
        for event in timeouts.events("collective-mismatch")
        if "received" in event.captured or event.signature == "nccl-size-mismatch"
    ]
    if truncated:
        yield quote(13, "NCCL got another size than it expected", truncated[0])
    yield from weigh_culprits(scene, 13, "SIZE_OR_SYNTAX_MISMATCH", "COLLECTIVE_DTYPE_MISMATCH")


def rows_of_one_width(scene: Scene) -> tuple[int, ...]:
    """How many rows each rank passed where the calls part, the width last: sizes that are small,
    near multiples of one number, such as 8 and 9 rows of 3072, are batches and no layers. Empty
    where they are not.
    """
    parted = scene.parted
    if parted is None or parted.kind != "shape" or len(set(parted.ops)) > 1:
        return ()
    sizes = {
        call.numel_in
        for call in scene.of(CollectiveCall)
        if call.number == parted.position and call.numel_in
    }
    width = math.gcd(*sizes) if len(sizes) > 1 else 0
    rows = tuple(sorted(size // width for size in sizes)) if width >= _NARROWEST_ROW else ()
    near = bool(rows) and rows[0] > 1 and rows[-1] - rows[0] <= rows[-1] / 3
    return (*rows, width) if near and rows[-1] <= _MOST_ROWS and max(sizes) <= _LARGEST else ()


def of_divergent_forward(scene: Scene, timeouts: Timeouts) -> Weighings:
    """Other layers of a sharded model."""
    parted, traced = scene.parted, timeouts.events("zero-trace-invalidated")
    sharded = [call for call in timeouts.calls if SHARDED.search(call.op)]
    context = timeouts.events("zero-stage", "fsdp-used")
    both = (
        parted is not None
        and parted.kind != "order"
        and (context or not rows_of_one_width(scene))
        and any(SHARDED.search(op) for op in parted.ops)
        and not any(  # shards are flat
            len(call.sizes) > 1
            for call in scene.of(CollectiveCall)
            if call.number == parted.position and SHARDED.search(call.op)
        )
    )
    if (
        parted is not None
        and both
        and (all(SHARDED.search(op) for op in parted.ops) or traced or context)
    ):
        says = f"Calls of a sharded model part at collective {parted.position}: {camps_say(parted)}"
        yield weighing(13, "flight-recorder", says, ids=parted.evidence)
        says = (
            "FSDP and ZeRO gather each layer by such a call, so the ranks were at different layers"
        )
        yield weighing(10, "other-stacks", says, ids=parted.evidence)
    prints = said_sizes(scene)
    if (
        prints is not None
        and all(SHARDED.search(one[1]) for one in prints[1:])
        and prints[1] != prints[2]
        and all("," not in one[2].split("]")[0] for one in prints[1:])  # shards are flat
    ):
        says = (
            f"Calls by which a sharded model gathers or reduces a layer differ: {prints[1][1]}"
            f" {prints[1][2]} against {prints[2][1]} {prints[2][2]}"
        )
        yield weighing(13, "flight-recorder", says, *timeouts.events("collective-mismatch"))
        says = (
            "FSDP and ZeRO gather each layer by such a call, so the ranks were at different layers"
        )
        yield weighing(10, "other-stacks", says, *timeouts.events("collective-mismatch"))
    elif sharded and traced:
        says = (
            f"The ranks gave up in {call_says(sharded[0])}, by which a layer is gathered or reduced"
        )
        yield weighing(6, "other-stacks", says, sharded[0])
    if (apart := layers_apart(timeouts)) is not None:
        mine, theirs = apart
        says = (
            f"{ranks_say([mine.rank or 0])} gave up in {call_says(mine)} and"
            f" {ranks_say([theirs.rank or 0], capital=False)} in {call_says(theirs)}: both are"
            " gradients or layers, and not the same ones"
        )
        yield weighing(13, "other-stacks", says, *apart)
    mixed = timeouts.events(MIXED_ROWS)
    if sharded and mixed:
        says = (
            f"Rows of several kinds are in the data: {short(mixed[0].line, 120)}; a rank without"
            f" one kind in its batch leaves layers out, and one gave up in {call_says(sharded[0])},"
            " by which a layer is gathered or reduced"
        )
        yield weighing(13, "suspects-log", says, mixed[0], sharded[0])
    if traced and (timeouts.calls or timeouts.events("dump-signal")):
        says = f"ZeRO says that the order of layers changed: {short(traced[-1].line, 100)}"
        yield weighing(10, "suspects-log", says, traced[-1])


def _other_operations(timeouts: Timeouts) -> bool:
    """Did ranks give up in operations of other kinds?"""
    return len({call.op for call in timeouts.first.values() if call.op}) > 1


def _over_for_one(timeouts: Timeouts) -> tuple[CollectiveCall, CollectiveCall] | None:
    """(the later one, the earlier one) of two calls in which ranks of one group gave up: of one
    operation that ends for all or none, the next number, and of another size. The rank ahead has
    left a call in which the other waits, so it was not the same one.
    """
    if timeouts.scene.parted is not None or layers_apart(timeouts) is not None:
        return None
    calls = sorted(timeouts.first.values(), key=lambda call: call.number)
    return next(
        (
            (ahead, late)
            for late in calls
            for ahead in calls
            if ahead.number == late.number + 1
            and ahead.op == late.op == "all_reduce"
            and len({ahead.group, late.group} - {""}) < 2
            and None not in (ahead.numel_in, late.numel_in)
            and ahead.numel_in != late.numel_in
        ),
        None,
    )


def _of_one_behind(timeouts: Timeouts) -> int:
    """Points of a rank that waited at an earlier call than the others: more where the lines name
    one group for all calls, since another group has numbers of its own.
    """
    if layers_apart(timeouts) or _over_for_one(timeouts):
        return 3
    groups = {call.group for call in timeouts.first.values()} - {""}
    return 10 if _other_operations(timeouts) or len(groups) != 1 else 13


def layers_apart(timeouts: Timeouts) -> tuple[CollectiveCall, CollectiveCall] | None:
    """Calls of two ranks that gave up, of one operation and of other sizes, none of them that of a
    flag or a count: gradients or layers, and not the same ones.
    """
    if timeouts.scene.parted is not None:
        return None
    calls = [call for call in timeouts.first.values() if (call.numel_in or 0) >= MANY]
    if len(calls) < len(timeouts.first):
        return None
    mine = next(iter(calls), None)
    return next(
        (
            (mine, other)
            for other in calls
            if mine is not None
            and other.op == mine.op
            and other.op in SAME_SIZE
            and other.number != mine.number
            and other.numel_in != mine.numel_in
        ),
        None,
    )


def of_stuck(scene: Scene, timeouts: Timeouts) -> Weighings:
    """A rank that never came, and nobody says why."""
    missing = timeouts.missing
    if missing is None or (not timeouts.calls and not missing.sure):
        if (
            timeouts.calls
            and scene.parted is None
            and not timeouts.together
            and (timeouts.timeout_s or SHORT_S) >= SHORT_S
            and len(camps(places(scene))) < 2
        ):
            says = f"Somebody did not come to {call_says(timeouts.calls[0])}"
            yield weighing(3, "other-stacks", says, timeouts.calls[0])
        return
    if len(camps(places(scene))) < 2:
        yield weighing(
            13 if missing.sure and timeouts.calls else 6,
            "other-stacks",
            missing.says,
            *missing.facts,
        )
    if uneven := timeouts.events("inputs-uneven", "inputs-exhausted"):
        yield quote(-10, "It is said why: a rank has fewer batches", uneven[0])
    if scene.parted is not None:
        says = f"The ranks were in different calls: {camps_say(scene.parted)}"
        yield weighing(-13, "flight-recorder", says, ids=scene.parted.evidence)
    elif timeouts.behind:
        yield weighing(-13, "flight-recorder", timeouts.behind, *call_lines(timeouts))


def of_uneven_inputs(scene: Scene, timeouts: Timeouts) -> Weighings:
    """Other numbers of batches."""
    thrown, uneven = timeouts.events("inputs-exhausted"), timeouts.events("inputs-uneven")
    if thrown:
        yield quote(26, "Join says so", thrown[0])
    elif uneven:
        yield quote(13, "The output says", uneven[0])
        if awaited := timeouts.events("barrier-timeout", "collective-timeout"):
            says = f"Others waited there in vain: {short(awaited[0].line, 100)}"
            yield weighing(6, "other-stacks", says, awaited[0])
    ended = [
        event
        for event in timeouts.events("data-ended")
        if timeouts.rank_of(event) not in timeouts.first
    ]
    if ended and not (thrown or uneven) and (timeouts.calls or timeouts.events(*GAVE_UP)):
        yield quote(10, "Somebody had no more to do", ended[0])
        waited = [*call_lines(timeouts), *timeouts.events(*GAVE_UP)][:4]
        says = "Others waited for their limit in a collective"
        yield weighing(6, "other-stacks", says, *waited)
    lacking = timeouts.events("horovod-missing")
    if len({event.captured["tensors"] for event in lacking}) == 1 and not uneven:
        says = "Ranks lack a tensor that others have submitted, as where those have a batch more"
        yield weighing(6, "suspects-log", says, *lacking[:4])
    bars = [fact for fact in scene.of(LogProgress) if fact.rank is not None and fact.of]
    plans = {fact.of for fact in bars}
    if len(plans) > 1 and (timeouts.calls or group_waits(scene)):
        says = ", ".join(f"rank {fact.rank} has {fact.of}" for fact in bars[:4])
        yield weighing(
            13, "probe-outcome", f"The ranks' progress bars have different lengths: {says}", *bars
        )
    apart = bars_of_other_lengths(scene.of(LogWork))
    if apart and len(plans) < 2:
        says = ", ".join(f"{work.step} of {work.of}" for work in apart[:4])
        says = f"Bars of one work have different lengths, and one is at its end: {says}"
        yield weighing(13, "probe-outcome", says, *apart[:4])
    counts = counts_apart(scene.of(RankCount))
    if counts and len(plans) < 2 and not apart:
        says = f"The ranks count differently: {_numbers(counts)} ({short(counts[0].line, 80)})"
        points = 13 if counts[0].tells else 6
        yield weighing(points, "probe-outcome", says, *counts)
        if counts[0].tells and timeouts.calls:
            says = "Some of them waited for their limit in a collective"
            yield weighing(6, "other-stacks", says, *call_lines(timeouts))
    at_end = [
        fact for fact in bars if fact.of and fact.step is not None and fact.step >= fact.of - 1
    ]
    if timeouts.calls and at_end and not timeouts.together and len(plans) > 1:
        says = f"It came to a stop at the end of an epoch: {short(at_end[0].line, 100)}"
        yield weighing(6, "source", says, at_end[0])


def printed_counts(scene: Scene) -> str:
    """What the ranks of a log count differently; empty where they do not."""
    counts = counts_apart(scene.of(RankCount))
    return _numbers(counts) if counts and counts[0].tells else ""


def _numbers(counts: Sequence[RankCount]) -> str:
    by_number: dict[int, list[int]] = {}
    for one in counts:
        by_number.setdefault(one.number, []).append(one.rank or 0)
    return ", ".join(
        f"{ranks_say(ranks, capital=False)} {number}" for number, ranks in by_number.items()
    )


def group_waits(scene: Scene) -> bool:
    """Did ranks break because a peer was gone?"""
    return bool(scene.exceptions(scene.world, echo=True))


def _who_left(
    scene: Scene, timeouts: Timeouts
) -> tuple[int, LogEvent, tuple[int, ...], tuple[Fact, ...]] | None:
    """(rank that was done, its line, those that waited, facts); None if nobody was done."""
    broken = [fact for fact in scene.of(LogFailure) if fact.echo and fact.rank is not None]
    late: dict[int | None, int] = {fact.rank: fact.place for fact in broken}
    late.update(
        {rank: -1 if call.place is None else call.place for rank, call in timeouts.first.items()}
    )
    last = max(late.values(), default=-1)
    for event in timeouts.events("training-ended", "process-left", "data-ended"):
        rank = timeouts.rank_of(event)
        if rank is not None and rank not in late and (event.place or 0) < last:
            return (
                rank,
                event,
                tuple(sorted(waiting for waiting in late if waiting is not None)),
                tuple(broken[:4] or call_lines(timeouts)),
            )
    return None


def of_left(scene: Scene, timeouts: Timeouts) -> Weighings:
    """A rank reported that it was done while others were still in a collective."""
    found = _who_left(scene, timeouts)
    if found is not None:
        rank, printed, others, shown = found
        says = (
            f"Rank {rank} was done («{short(printed.line, 80)}») while"
            f" {ranks_say(others, capital=False)} still waited"
        )
        yield weighing(13, "suspects-log", says, printed)
        yield weighing(
            6, "other-stacks", f"{ranks_say(others)} gave up or broke afterwards", *shown
        )


def left(scene: Scene, timeouts: Timeouts) -> tuple[int, ...]:
    """The rank that `of_left` means."""
    found = _who_left(scene, timeouts)
    return (found[0],) if found is not None else ()


def away(timeouts: Timeouts, *, task: bool = False) -> tuple[int, ...]:
    """The ranks for which the others waited, () where the logs do not tell."""
    if (
        task
        and timeouts.task is not None
        and timeouts.task.rank is not None
        and timeouts.task.rank not in timeouts.first
    ):
        return (timeouts.task.rank,)
    parted = timeouts.scene.parted
    if parted is not None and len(parted.camps[0]) < len(parted.camps[-1]):
        return parted.camps[0]
    return timeouts.missing.ranks if timeouts.missing is not None else ()


def call_lines(timeouts: Timeouts) -> Sequence[CollectiveCall]:
    """The first calls that timed out."""
    return tuple(timeouts.first.values())[:6] or timeouts.calls[:6]


def _camps_of_frames(timeouts: Timeouts) -> dict[str, list[int]]:
    """Ranks by the outermost line of theirs that a recorder's stack shows."""
    by_rank: dict[int, LogEvent] = {}
    for event in timeouts.events("recorder-frame"):
        if event.rank is not None and "site-packages" not in event.captured.get("file", ""):
            by_rank[event.rank] = event
    found: dict[str, list[int]] = {}
    for rank, event in by_rank.items():
        found.setdefault(
            f"{event.captured['file'].rsplit('/', 1)[-1]}:{event.captured['line']}", []
        ).append(rank)
    return found
