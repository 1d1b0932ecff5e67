"""Main threads that only wait for what their process is asked to do, and leave it to others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user
from trainprobe.stacks.rules import RPC_HANDLER

# The loop of a server, and the function by which each of the threads that answer goes (None where
# it may be any): ray/_private/worker.py of 1.0 to 2.49, torch/distributed/rpc/{api,internal}.py of
# torch 1.6 to 2.13, socketserver.py of Python 3.9 to 3.14.
_SERVES = (
    ("ray/_private/worker.py", "main_loop", None),
    ("torch/distributed/rpc/api.py", "shutdown", RPC_HANDLER),
    ("/socketserver.py", "serve_forever", ("/socketserver.py", "process_request_thread")),
)


def serves(frames: Sequence[Frame]) -> bool:
    """Does a main thread with this stack only wait for what its process is asked to do?"""
    return any(True for _ in _loops(frames))


def serves_for(main: Sequence[Frame], frames: Sequence[Frame]) -> bool:
    """Does a thread with the stack `frames` do what the process is asked to, while the main thread
    has the stack `main`?
    """
    return any(by is None or any(stands_in(frame, by) for frame in frames) for by in _loops(main))


def asked_by_ranks_alone(frames: Sequence[Frame]) -> bool:
    """Does it serve torch's RPC, whose requests come from the ranks of the job and nobody else?"""
    return RPC_HANDLER in _loops(frames)


def stands_in(frame: Frame, place: tuple[str, str]) -> bool:
    """Is it the function of that name, in a file of which the path ends so?"""
    return frame.file.endswith(place[0]) and frame.function == place[1]


def _loops(frames: Sequence[Frame]) -> Iterator[tuple[str, str] | None]:
    """A loop from which the main thread has gone into code of somebody's own is busy itself."""
    for place, frame in enumerate(frames):
        for file, name, by in _SERVES:
            if stands_in(frame, (file, name)) and not any(map(is_user, frames[place + 1 :])):
                yield by
