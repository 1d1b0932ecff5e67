"""What a main thread is doing: the class of the place where its stack ends.

Of the frames between the leaf and the user's innermost frame, without wrappers, the one whose rule
weighs most decides (hangs.md, section 4). The Python stack does not show C functions such as
`time.sleep` or `fcntl.flock`: for those the kernel's wait channel decides.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainprobe.stacks import places
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.rules import INDEX_QUEUE, RULES, Rule
from trainprobe.stacks.wait_channels import sleeps_in

WRAPPERS = frozenset(
    "_exception_logger.<locals>.wrapper _time_logger.<locals>.wrapper"
    " _require_initialized.<locals>.wrapper decorate_context inner journalled".split()
)
# accelerate's main_process_first, YOLO's torch_distributed_zero_first …
ONE_GOES_FIRST = re.compile(r"(?:main|zero|master|rank0)_?(?:process)?_first\b")
# Where torch's Python ends in a C++ call that sleeps, it waits for the other ranks, as in a
# constructor that compares the shapes of parameters. A wait for own threads has a rule.
_MEETS = re.compile(r"torch/(?:distributed|nn/parallel)/")
AT_EXIT = frozenset({"_exit_function", "_python_exit", "_run_exitfuncs", "_finalize_join"})


@dataclass(frozen=True)
class Place:
    """`leaf` is one of the classes in `rules.LEAVES`; `op` names the operation; `user` is the
    innermost user frame.
    """

    leaf: str
    op: str = ""
    user: Frame | None = None
    importing: str = ""
    in_backward: bool = False
    in_atexit: bool = False
    lock_path: str = ""


def classify(
    frames: Sequence[Frame], *, wchan: str = "", syscall: str = "", state: str = ""
) -> Place:
    """Classify a stack, outermost frame first. `wchan`, `syscall` and `state` are the thread's
    from /proc, "" where unknown.
    """
    stack = _stack(frames)
    leaf, op = _leaf(stack.tail, stack.best, wchan, syscall, state)
    return replace(stack.place, leaf=leaf, op=op)


@dataclass(frozen=True)
class _Stack:
    """What the frames alone tell; its place has no leaf yet."""

    tail: list[Frame]
    best: tuple[Rule, Frame] | None
    place: Place


_MOST_STACKS = 4096
_stacks: dict[int, tuple[Sequence[Frame], _Stack]] = {}


def _stack(frames: Sequence[Frame]) -> _Stack:
    """Thousands of ranks stand in one and the same stack, which is looked at once."""
    known = _stacks.get(id(frames))
    if known is not None and known[0] is frames:
        return known[1]
    tail = _tail(frames)
    place = Place(
        "",
        user=places.user_frame(frames),
        importing=places.module_importing(frames),
        in_backward=any(frame.name == "_engine_run_backward" for frame in tail),
        in_atexit=any(
            frame.name in AT_EXIT or (frame.name == "_shutdown" and frame.base == "threading.py")
            for frame in frames
        ),
        lock_path=_lock_path(tail),
    )
    made = _Stack(tail, _best(tail), place)
    if isinstance(frames, tuple):
        if len(_stacks) >= _MOST_STACKS:
            _stacks.clear()
        _stacks[id(frames)] = frames, made
    return made


def _enters_one_first(tail: Sequence[Frame]) -> bool:
    """Does a traceback end where a `with` lets one rank go first? The barrier is one call below,
    in C or in lines that were left out.
    """
    return (
        len(tail) > 1
        and tail[-1].base == "contextlib.py"
        and ONE_GOES_FIRST.search(tail[-2].text) is not None
    )


def deciding_frame(frames: Sequence[Frame]) -> Frame | None:
    """The frame below the user's own by which a stack is classified: the outermost of its file,
    so `all_gather_object` rather than `all_gather`.
    """
    tail = _tail(frames)
    best = _best(tail)
    if best is None:
        return None
    return next((frame for frame in tail if frame.file == best[1].file), best[1])


def _best(tail: Sequence[Frame]) -> tuple[Rule, Frame] | None:
    best: tuple[Rule, Frame] | None = None
    for frame in reversed(tail):  # leaf first: of equally telling frames the innermost counts
        if frame.name == "<module>":  # a module that is being imported does not do its work yet
            continue
        rule = _rule(frame.file, frame.name)
        if rule is not None and (best is None or rule.weight > best[0].weight):
            best = (rule, frame)
    return best


def _leaf(
    tail: Sequence[Frame], best: tuple[Rule, Frame] | None, wchan: str, syscall: str, state: str
) -> tuple[str, str]:
    if best is not None:
        rule, frame = best
        if rule.leaf == "comm-wait" and rule.op == "backward" and state == "R":
            # Autograd itself computes on this thread; a wait for peers would sleep.
            return "native-run", "backward"
        if rule.op == INDEX_QUEUE and not any(
            "multiprocessing/queues.py" in other.file for other in tail
        ):
            return "python-run", "loader-worker"  # it has work, or is still setting up
        if rule.leaf == "python-run" and state != "R":
            return sleeps_in(wchan, syscall) or (rule.leaf, rule.op)
        return rule.leaf, rule.op or _public_op(tail, frame)
    if state != "R":
        waits = sleeps_in(wchan, syscall)
        if waits == ("lock", "futex") and tail and _MEETS.search(tail[-1].file):
            return "comm-wait", _public_op(tail, tail[-1])
        if waits is not None:
            return waits
    if _enters_one_first(tail):
        return "comm-wait", "barrier"
    if not tail:
        return "", ""
    return ("native-run", tail[-1].name) if places.is_native(tail[-1]) else ("python-run", "")


def _tail(frames: Sequence[Frame]) -> list[Frame]:
    """The frames from the user's innermost one (left out) to the leaf, without wrappers. A
    user's frame as leaf gives just itself.
    """
    users = [place for place, frame in enumerate(frames) if places.is_user(frame)]
    last_user = users[-1] if users else -1
    below = frames[last_user + 1 :]
    tail = [frame for frame in below if frame.name not in WRAPPERS and not places.is_ours(frame)]
    return tail or list(frames[last_user : last_user + 1]) if last_user >= 0 else tail


@functools.lru_cache(maxsize=4096)  # the ranks of a job stand in the same few functions
def _rule(file: str, qualified: str) -> Rule | None:
    found = None
    name = qualified.rsplit(".", 1)[-1]
    for rule in RULES:
        if rule.fits(file, qualified, name) and (found is None or rule.weight > found.weight):
            found = rule
    return found


def _public_op(tail: Sequence[Frame], frame: Frame) -> str:
    """The outermost function of the same file above the deciding frame: `all_gather_object`
    rather than the `all_gather` inside it.
    """
    names = [other.name for other in tail if other.file == frame.file]
    return (names[0] if names else frame.name).rsplit(".", 1)[-1].lstrip("_")


def _lock_path(tail: Sequence[Frame]) -> str:
    for frame in reversed(tail):
        for name in ("lock_filename", "lock_file_path", "lock_file"):
            if frame.locals.get(name):
                return frame.locals[name].strip("'\"")
    return ""
