"""An exception in the training code of one rank ends it, and the others break because of that.

The first rank to fail carries a traceback that is its own. The others raise later, and what they
raise only repeats that a peer
is gone ("Connection closed by peer", a timeout): those echoes carry no blame.

It is recognised by the earliest uncaught exception that is no echo. It steps back where the
exception's own text names a more specific cause (out of GPU memory, no descriptors left, a port
that is taken …), and it is ruled out when the first rank to fail left without any exception
although its output was read.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause
from trainprobe.causes.child_processes import others_wait
from trainprobe.causes.component_told import OF_THE_PROGRAM, another_raised, is_the_programs
from trainprobe.causes.died_of_exceptions import dead_helper, helper_says
from trainprobe.causes.diverging_calls import DISAGREE
from trainprobe.causes.exception_handlers import Handled, handled
from trainprobe.causes.finer_causes import finer_cause
from trainprobe.causes.phrases import Fixes, fix, fixes, short, subject
from trainprobe.causes.scene import Scene, Weighings, first_found, user_frame, weighing
from trainprobe.causes.statements import first_to_fail, text_of
from trainprobe.causes.strange_contents import strange_contents
from trainprobe.causes.user_objects import OBJECTS, broken, killed_by, weigh_broken
from trainprobe.facts import LogJob, ProbeFailure, Progress, RankEnding, RankException
from trainprobe.stacks.places import is_user
from trainprobe.stacks.traceback_text import NAME_CUT_OFF

# huggingface/datasets, utils/py_utils.py; CPython, concurrent/futures/process.py; joblib
CHILD_DIED = re.compile(
    r"subprocesses has abruptly died|process pool was terminated abruptly|executor was unexpectedly"
    r" terminated"
)
# Errors of which the driver or the hardware complains, wherever the program stands.
OF_THE_DEVICE = re.compile(
    r"(?:CUDA|HIP)(?: driver)? error: (?:device not ready|unknown error|[^\n]{0,80}(?:hardware"
    r" error|NVLink)|an internal operation failed|driver shutting down|OS call failed)"
)


def _weigh(scene: Scene) -> Weighings:
    origin = scene.origin
    if origin is None:
        yield from _without_origin(scene)
        return
    if re.search(DISAGREE, text_of(origin)) or strange_contents(scene) is origin:
        says = "The exception is a collective's complaint about what another rank sent"
        yield weighing(-26, "suspects-log", says, origin)
        return
    if origin.interrupted or origin.type == NAME_CUT_OFF:
        what = "Somebody pressed Ctrl-C" if origin.interrupted else "What it raised is cut off"
        says = f"{what}; the traceback only shows where it stood"
        yield weighing(-26 if origin.interrupted else 3, "suspects-log", says, origin)
        return
    if CHILD_DIED.search(text_of(origin)):
        yield weighing(
            -26, "suspects-log", "It only says that a child process died, not of what", origin
        )
        return
    who = (
        f"Rank {origin.rank}"
        if origin.rank is not None
        else OBJECTS.get(origin.role, "The program")
    )
    # Only what the program itself raised decides; what the network, the system or a component
    # below it did to it is no fault of its lines.
    another = another_raised(scene, OF_THE_PROGRAM)
    surely_its_own = is_the_programs(scene) or origin.role in OBJECTS
    points = 26 if surely_its_own else 13
    points = 6 if origin.of_the_system or another is not None else points
    says = f"{who} raised {_what(origin)}, and nothing before it failed"
    yield weighing(points, "suspects-log", says, origin)
    if another is None:
        yield from first_to_fail(scene)
    echoes = scene.exceptions(scene.others, echo=True)
    if echoes:
        others = "The other exception only repeats"
        if len(echoes) > 1:
            others = f"{len(echoes)} other exceptions only repeat"
        yield weighing(3, "other-stacks", f"{others} that a peer is gone", *echoes)
    yield from _finer(scene, origin)
    if OF_THE_DEVICE.search(text_of(origin)):
        says = "It is the driver that complains, of something that no line of the program names"
        yield weighing(-26, "source", says, origin)


def _without_origin(scene: Scene) -> Weighings:
    """What speaks for an exception that no rank is seen to have died of."""
    left = _left_with_a_code(scene)
    if left is not None and left.left_at is not None:
        says = (
            f"Rank {left.rank or 0} called {left.left_how} with code {left.exit_code} at"
            f" {left.left_at.where}"
        )
        yield weighing(13, "exit-status", says, left)
        yield from first_to_fail(scene)
    elif (helper := dead_helper(scene)) is not None:
        died, waiting = helper
        says = f"{helper_says(died)} ended with {_what(died)}"
        says += f", and rank {waiting.rank} waits on at {waiting.where}"
        yield weighing(6 if died.of_the_system else 26, "suspects-log", says, died, waiting)
        yield from others_wait(scene)
        yield from _finer(scene, died)
    elif (given := _own_object(scene)) is not None:
        yield from weigh_broken(given, 26)
    elif caught := handled(scene):
        yield from _weigh_handled(scene, caught)
    elif (
        (ending := scene.first_ending) is not None
        # Absent may only be said where the rank's output was read.
        and _output_was_read(scene, ending)
        and not scene.exceptions(scene.suspects, echo=True)
    ):
        says = "The first rank to fail left no exception in its output"
        yield weighing(-26, "suspects-log", says, ending)


def _weigh_handled(scene: Scene, caught: tuple[Handled, ...]) -> Weighings:
    """A suspect that waits for the others inside the handler of an exception."""
    says = f"Rank {caught[0].thread.rank} {caught[0].says}: it has caught an exception there"
    said = next((one for one in caught if one.said), None)
    yield weighing(26, "suspects-stack", says, *(one.thread for one in caught), caught[0].site)
    if said is not None:
        says = f"The error is named in «{short(said.said, 100)}»"
        yield weighing(13, "suspects-log", says, said.output)
    yield from others_wait(scene)


def _finer(scene: Scene, exception: RankException) -> Weighings:
    said = text_of(exception)
    name = finer_cause(lambda wording: re.search(wording, said), CAUSE.id, mode=scene.group.mode)
    if name:
        yield weighing(-13, "source", f"What it says has a name of its own: {name}", exception)


def _output_was_read(scene: Scene, ending: RankEnding) -> bool:
    """Of a live job each rank's own counts: that of one which has ended is often out of reach."""
    if scene.live is None:
        return scene.looked("output")
    return scene.facts.looked("output", cell=scene.cell, rank=ending.rank)


def _own_object(scene: Scene) -> ProbeFailure | None:
    """An object from the command line that was invalid or ended its process with a code."""
    died = broken(scene, "died")
    return broken(scene, "nonsense") or (died if not killed_by(died) else None)


def _left_with_a_code(scene: Scene) -> Progress | None:
    """The suspect that ended its program by sys.exit with another code than 0."""
    shown = scene.progress(scene.suspects)
    return first_found(
        fact
        for fact in shown
        if fact.exit_code and fact.left_at is not None and is_user(fact.left_at)
    )


def _what(exception: RankException) -> str:
    kind, message = (
        (exception.root_type, exception.root_message)
        if exception.root_type
        else (exception.type, exception.message)
    )
    return f"{kind}: {short(message, 120)}" if message else kind


def _ranks(scene: Scene) -> tuple[int, ...]:
    """Where every rank raised, the code is at fault and no rank in particular."""
    raised = {exception.rank for exception in scene.exceptions(scene.world)}
    return () if len(scene.world) > 1 and raised >= set(scene.world) else scene.ranks


def _summary(scene: Scene) -> str:
    origin = scene.origin
    left = _left_with_a_code(scene) if origin is None else None
    if left is not None and left.left_at is not None:
        return (
            f"{subject(scene)} ended the program itself: {left.left_how} with code {left.exit_code}"
            f" at {left.left_at.where}"
        )
    if origin is None and (helper := dead_helper(scene)) is not None:
        died, waiting = helper
        frame = user_frame(died.frames)
        where = f" at {frame.where}" if frame is not None else ""
        return (
            f"{helper_says(died)} died of {_what(died)}{where}, and rank {waiting.rank} waits for"
            f" it at {waiting.where}"
        )
    if origin is None and (given := _own_object(scene)) is not None:
        return given.says
    if origin is None and (caught := handled(scene)):
        # the last line is told beside it
        said = next((f": {short(one.said, 100)}" for one in caught if one.said_before), "")
        return (
            f"{subject(scene)} caught an exception and waits for the others in its handler, at"
            f" {caught[0].thread.where}{said}"
        )
    if origin is None:
        return f"{subject(scene)} ended with an exception"
    frame = user_frame(origin.frames)
    where = f" at {frame.where}" if frame is not None else ""
    who = _ranks(scene)
    nobody = OBJECTS.get(origin.role) or ("Every rank" if len(scene.world) > 1 else "The program")
    return f"{subject(scene, who) if who else nobody} raised {_what(origin)}{where}"


DEAD_CHILD = """
Let the wait at {where} end when the helper is gone
    get(timeout=60) or join(timeout=60) in a loop that raises unless process.is_alive()
"""
DEAD_THREAD = """
Hand the failure of that thread on
    except BaseException as error: ... in the thread, where it also gives back what it holds, or
        sets, puts or releases what others wait for
    a ThreadPoolExecutor in its place, whose future.result() raises what the task raised
"""


def _fixes(scene: Scene) -> Fixes:
    origin, helper = scene.origin, dead_helper(scene)
    if origin is None and helper is not None:
        origin = helper[0]
    frame = user_frame(origin.frames) if origin is not None else None
    where = frame.where if frame is not None else "the last line of the traceback"
    left = _left_with_a_code(scene) if origin is None else None
    if left is not None and left.left_at is not None:
        return (
            fix(
                "Find the condition for which it gives up",
                f"open {left.left_at.where}",
                "raise an exception there, so that its reason is printed",
            ),
        )
    if origin is None and (given := _own_object(scene)) is not None:
        named = given.details.get("given")
        return (
            fix(
                "Mend what was named",
                f"--{named} must name a function without arguments that returns the {named}",
                given.says,
            ),
        )
    if origin is None and (caught := handled(scene)):
        return fixes(
            """
            Mend what was raised
                find the line of the output that names the error, and the data or call it is of
            Call nothing in a handler that all ranks have to call
                at {where}: write what this rank has of its own, then raise: the launcher ends the
                    others
            """,
            where=caught[0].thread.where,
        )
    line = f"    {frame.text.strip()}" if frame is not None and frame.text else ""
    mend = fix(
        f"Mend {where}",
        f"the line that raised: {line.strip()}" if line else f"open {where}",
        f"what it raised: {_what(origin)}" if origin else "",
    )
    # a child of a probe raised it: no ranks, and no output but this
    if origin is not None and origin.role in OBJECTS:
        return (mend,)
    if origin is not None and origin.frames and origin.rank is None and scene.of(LogJob):
        return (mend,)  # the traceback is there
    if helper is not None and origin is helper[0]:
        return (
            mend,
            *(fixes(DEAD_CHILD, where=helper[1].where) if origin.child else fixes(DEAD_THREAD)),
        )
    return (
        mend,
        fix(
            "Keep the traceback of the first rank",
            "from torch.distributed.elastic.multiprocessing.errors import record",
            "@record   (on the line above def main)",
        ),
    )


CAUSE = Cause(
    id="user-exception",
    title="An exception in the training code",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_ranks,
    would_settle=(
        "the full output of the first rank to fail, or its error file (TORCHELASTIC_ERROR_FILE)"
    ),
)
