"""Does a rank compile its model again and again, so that compiling is what its steps mostly are?
Both the code that decides whether to look on and the code that judges ask here.

One compilation proves nothing: the first of a job takes as long as it likes, and a healthy job
compiles anew now and then. Dynamo itself knows which one this is and why, in a local variable of
its own; that many, each as long as this one, must have taken much of the job's whole time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from trainprobe.stacks.frames import Frame
from trainprobe.stacks.spells import Spells, share

DYNAMO = "torch/_dynamo/convert_frame.py"
COMPILES = "_compile"
REASON = "recompile_reason"
"""A local of COMPILES in DYNAMO: None in the first compilation of a function, then a text such as
`0/22: tensor 'x' size mismatch at index 0. expected 31, actual 32`.
"""
MOST = 0.6
"""Of the sampled time."""
MUCH = 1 / 3
"""Of the job's whole time, its imports and the rest of its start among it."""
SEVERAL = 3
_NUMBER = re.compile(r"\d+/(\d+)(?:_\d+)?: ")
# What only runs what was compiled has frames of inductor and of aot_autograd as well.
_FILES = (DYNAMO, "torch/_inductor/compile_fx.py", "/triton/compiler/")
_RUNS = frozenset({"run"})


def compilation(frames: Iterable[Frame]) -> Frame | None:
    """The frame that knows which compilation is under way; None where none is."""
    return next(
        (frame for frame in frames if frame.name == COMPILES and frame.file.endswith(DYNAMO)), None
    )


def compiles(frames: Iterable[Frame]) -> bool:
    """Is a thread that stands here inside a compilation of torch.compile?"""
    return any(part in frame.file for frame in frames if frame.name not in _RUNS for part in _FILES)


def longest_s(spells: Spells) -> float:
    """For how long the longest compilation was seen to last."""
    longest, since = 0.0, None
    for start, end, now in spells:
        since = (start if since is None else since) if now else None
        longest = max(longest, end - since) if since is not None else longest
    return longest


def worth_more(ranks: Iterable[Spells]) -> bool:
    """Would more samples show for how long one compilation lasts, or whether steps follow it?"""
    return any(share(spells) >= MOST for spells in ranks)


def done_before(reason: str) -> int | None:
    """How often the function that is compiled had been compiled before; None where the text does
    not say so.
    """
    found = _NUMBER.match(reason)
    return int(found[1]) + 1 if found else None
