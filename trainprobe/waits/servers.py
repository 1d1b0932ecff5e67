"""Processes that wait for whoever comes: servers, kernels of notebooks, prompts. Alone they are
idle, not stuck.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user
from trainprobe.stacks.rules import begin_of_servants
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
        for frame in _inside_own_code(standing)
        for part in ("/ipykernel", "/asyncio/", "/IPython/", "/code.py", "/tornado/")
    )


def is_server(standing: Standing) -> bool:
    """A library that answers requests waits for the next one."""
    if standing.thread is not None and begin_of_servants(standing.thread.frames) is not None:
        return True
    return standing.leaf == "net-io" and any(
        part in frame.file for frame in _inside_own_code(standing) for part in _SERVERS
    )


def _inside_own_code(standing: Standing) -> Sequence[Frame]:
    """The frames that the innermost code of somebody's own has called: a server that stands in
    its user's handler or cell does not wait for whoever comes.
    """
    frames = standing.thread.frames if standing.thread is not None else ()
    own = [
        place
        for place, frame in enumerate(frames)
        if is_user(frame) or frame.file.startswith(_TYPED_IN)
    ]
    return frames[own[-1] + 1 :] if own else frames
