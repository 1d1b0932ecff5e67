"""Processes that wait for whoever comes: servers, kernels of notebooks, prompts. Alone they are
idle, not stuck.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.facts import MainThread
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user
from trainprobe.stacks.servers import serves as serves_others
from trainprobe.waits.standings import Standing

_TYPED_IN = ("<stdin>", "<console>", "<ipython-input")
# Libraries whose main loop waits for whoever comes, for as long as it takes.
_SERVERS = (
    "/uvicorn/",
    "/hypercorn/",
    "/gunicorn/",
    "/aiohttp/web",
    "/tornado/",
    "/ipykernel",
    "/werkzeug/",
    "/waitress/",
    "/socketserver.py",
    "/http/server.py",
    "/xmlrpc/server.py",
)


def serves(standing: Standing) -> bool:
    """A kernel of a notebook, a server or a prompt waits for whoever comes: alone it is idle,
    not stuck.
    """
    if standing.op in ("asyncio", "terminal", "debugger"):
        return True
    return any(
        part in frame.file
        for frame in _below_own_code(standing.thread.frames if standing.thread else ())
        for part in ("/ipykernel", "/asyncio/", "/IPython/", "/code.py", "/tornado/")
    )


def is_server(standing: Standing) -> bool:
    """A library that answers requests waits for the next one."""
    return standing.thread is not None and listens(standing.thread)


def listens(thread: MainThread) -> bool:
    """The same of any process's main thread."""
    return serves_others(thread.frames) or (
        thread.leaf == "net-io"
        and any(part in frame.file for frame in _below_own_code(thread.frames) for part in _SERVERS)
    )


def _below_own_code(frames: Sequence[Frame]) -> Sequence[Frame]:
    """The frames that the innermost code of somebody's own has called: a server that stands in
    its user's handler or cell does not wait for whoever comes.
    """
    own = [
        place
        for place, frame in enumerate(frames)
        if is_user(frame) or frame.file.startswith(_TYPED_IN)
    ]
    return frames[own[-1] + 1 :] if own else frames
