"""The call in which a stack goes on that was cut off: the innermost frame that is left still shows
its source line, and that line names what it calls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainprobe.stacks.frames import Frame

_C10D = (
    r"all_reduce|all_gather\w{0,20}|reduce_scatter\w{0,20}|all_to_all\w{0,10}|broadcast\w{0,20}"
    r"|barrier|monitored_barrier|reduce|gather\w{0,10}|scatter\w{0,20}|send|recv|new_group"
    r"|init_process_group"
)
UNSEEN = "/site-packages/"  # where nothing lies, so that no real frame is taken for one of these
# Each with the file of the function that it names.
_CALLS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(rf"\b(?:dist|distributed|c10d)\.(?P<name>{_C10D})\("),
        "",
        "torch/distributed/distributed_c10d.py",
    ),
    (re.compile(r"\bbaton\.(?:wait\(|w?a?i?t?$)"), "wait", "torch/utils/file_baton.py"),
    (
        re.compile(
            r"\bnext\((?:\w{1,40}\.){0,4}\w{0,40}(?:data|loader|iter|batch)\w{0,40}[,)]"
            r"|\bin (?:(?:enumerate|tqdm|iter)\()?(?:\w{1,40}\.){0,4}\w{0,40}loader\w{0,40}[,):]"
        ),
        "__next__",
        "torch/utils/data/dataloader.py",
    ),
)


def with_next_call(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """A stack, outermost frame first, with the call that its last line makes where that is known.
    Its line number is not.
    """
    text = frames[-1].text if frames else ""
    for pattern, name, file in _CALLS:
        match = pattern.search(text)
        if match is not None and not frames[-1].file.endswith(file):
            return (*frames, Frame(name or match["name"], UNSEEN + file))
    return tuple(frames)


def is_next_call(frame: Frame) -> bool:
    """Whether a frame was not seen, but named by the line above it."""
    return frame.file.startswith(UNSEEN) and not frame.line
