"""A process that a live rank had started and that died of an exception, while the rank waits on."""

from __future__ import annotations

from trainprobe.causes.scene import Scene, first_found
from trainprobe.facts import MainThread, RankException

_BY_A_PROCESS = ("multiprocessing/", "multiprocess/", "/subprocess.py", "concurrent/futures/")
_INNERMOST = 6
_ASKS_AGAIN = frozenset({"sleep", "net-io", "file-io"})


def dead_child(scene: Scene) -> tuple[RankException, MainThread] | None:
    """The last exception of a process below the one suspect that stands still, and where that one
    waits. A common stream does not say whose the process was: then the wait has to be one for a
    process.
    """
    if scene.live is None or scene.group.mode != "hang" or len(scene.ranks) != 1:
        return None
    waiting = scene.thread(scene.ranks[0])
    if waiting is None or waiting.moved is True:
        return None
    asks = any(
        path in frame.file for frame in waiting.frames[-_INNERMOST:] for path in _BY_A_PROCESS
    )
    own = asks or waiting.leaf in _ASKS_AGAIN
    told = (
        *(scene.of(RankException, rank=waiting.rank) if own else ()),
        *(scene.of(RankException, rank=None) if asks else ()),
    )
    died = first_found(
        one for one in reversed(told) if one.child and not (one.echo or one.interrupted)
    )
    return (died, waiting) if died is not None else None
