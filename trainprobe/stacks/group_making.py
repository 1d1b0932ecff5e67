"""Where torch makes a further process group, and the locals that tell its number and size.

Each `new_group` counts one up on its rank and meets the others under that number in the store, so
that ranks which have called it unequally often wait for each other. From torch 2.0 to 2.13 the
number is the `group_name` of `_new_process_group_helper`; groups that only their members make
(`use_local_synchronization`) have a hash in its place. Groups of some ranks may be made side by
side, with other numbers each; of those of all ranks one begins when the one before is made.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.stacks.frames import Frame

NUMBER, SIZE = "group_name", "group_size"
_MAKES, _STARTS = "_new_process_group_helper", "init_process_group"
_FILE = "torch/distributed/distributed_c10d.py"


def making(frames: Sequence[Frame]) -> Frame | None:
    """The frame that makes a group after the first one of all ranks; None where none is made."""
    if any(frame.name == _STARTS for frame in frames):
        return None
    return next(
        (frame for frame in frames if frame.name == _MAKES and frame.file.endswith(_FILE)), None
    )
