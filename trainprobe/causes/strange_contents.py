"""What a rank received in a collective and could not take for what it awaited.

NCCL and gloo carry bytes. Where one rank is in another call than the others, the bytes of that call
arrive, and whoever unpacks them fails: torch's object collectives while they unpickle, accelerate
while it takes over the main process's random state.
"""

from __future__ import annotations

import re

from trainprobe.causes.phrases import short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import text_of
from trainprobe.facts import RankException

# (file and function in which what arrived is unpacked, how that fails)
_UNPACKED = (
    (
        "torch/distributed/distributed_c10d.py",
        "_tensor_to_object",
        re.compile(r"Unpickling|EOFError|invalid load key|could not find MARK|pickle data was"),
    ),
    (
        "accelerate/utils/random.py",
        "synchronize_rng_state",
        re.compile(r"Invalid mt19937 state|RNG state is wrong size|RNG state must be"),
    ),
)


def strange_contents(scene: Scene) -> RankException | None:
    """The exception of a rank that could not unpack what a collective brought."""
    return next(
        (
            one
            for one in (*scene.exceptions(scene.suspects), *scene.exceptions(scene.world))
            for file, function, how in _UNPACKED
            if how.search(text_of(one))
            and any(frame.file.endswith(file) and frame.name == function for frame in one.frames)
        ),
        None,
    )


def weigh_strange_contents(scene: Scene, points: int) -> Weighings:
    """It received what belongs to another call."""
    found = strange_contents(scene)
    if found is not None:
        who = f"Rank {found.rank}" if found.rank is not None else "A rank"
        says = (
            f"{who} could not unpack what a collective brought ({short(text_of(found), 80)}): it"
            " came from another call"
        )
        yield weighing(points, "other-stacks", says, found)
