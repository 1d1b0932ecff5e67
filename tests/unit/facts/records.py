"""A case by hand: the evidence of one cell, as the gathering side writes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainprobe.facts import Facts, read
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import Subject

CELL = "user_script@3"
SITE = "/env/lib/python3.11/site-packages/"


class Records:
    """Collects evidence in order; `facts()` reads it."""

    def __init__(self, cell: str = CELL) -> None:
        self.cell = cell
        self.evidence: list[Evidence] = []

    def add(
        self,
        kind: str,
        data: Mapping[str, Any],
        *,
        rank: int | None = None,
        role: str = "",
        pid: int | None = None,
        **more: Any,
    ) -> Records:
        subject = Subject(
            "rank" if rank is not None else "host",
            rank=rank,
            role=role or ("rank" if rank is not None else ""),
            pid=pid,
        )
        self.evidence.append(
            Evidence(f"E{len(self.evidence) + 1}", kind, subject, self.cell, data=data, **more)
        )
        return self

    def ended(
        self,
        rank: int | None,
        at: float,
        *,
        code: int | None = None,
        signal: int | None = None,
        role: str = "",
        pid: int | None = None,
        **more: Any,
    ) -> Records:
        how = "exited" if signal is None else "signalled"
        data = {"how": how, "code": code, "signal": signal, "at": at, "started_at": 1000.0, **more}
        return self.add("rank.ended", data, rank=rank, role=role, pid=pid)

    def printed(
        self,
        text: str,
        *,
        rank: int | None = None,
        stream: str = "stderr",
        first_at: float | None = None,
        last_at: float | None = None,
    ) -> Records:
        data = {
            "stream": stream,
            "bytes": len(text),
            "head": text,
            "tail": "",
            "left_out_bytes": 0,
            "first_at": first_at,
            "last_at": last_at,
        }
        return self.add("output", data, rank=rank, role="rank" if rank is not None else "launcher")

    def events(
        self,
        *events: Mapping[str, Any],
        rank: int | None = None,
        bad_lines: int = 0,
        role: str = "",
    ) -> Records:
        return self.add(
            "probe.events",
            {"events": list(events), "bad_lines": bad_lines, "bad_sample": "", "cut": False},
            rank=rank,
            role=role,
        )

    def stack(
        self, rank: int, *frames: tuple[str, str, int], look: int = 1, pid: int = 100, **more: Any
    ) -> Records:
        """Frames as (name, file, line), leaf first as py-spy gives them."""
        rows = [{"name": name, "file": file, "line": line} for name, file, line in frames]
        thread = {
            "thread_id": 1,
            "os_thread_id": pid,
            "name": "MainThread",
            "active": False,
            "owns_gil": False,
            "frames": rows,
        }
        return self.add(
            "stacks.python",
            {"look": look, "pid": pid, "role": "rank", "threads": [thread], **more},
            rank=rank,
            pid=pid,
        )

    def facts(self) -> Facts:
        return read(self.evidence)


def traceback_of(
    kind: str, message: str, *, prefix: str = "", file: str = "/job/train.py", line: int = 9
) -> str:
    lines = [
        "Traceback (most recent call last):",
        f'  File "{file}", line {line}, in main',
        "    step()",
        f"{kind}: {message}",
    ]
    return "".join(f"{prefix}{one}\n" for one in lines)


PEER_GONE = (
    "[/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:35224. This is"
    " typically caused by a remote worker crashing."
)
LEAVING = (
    "terminate called without an active exception\nFatal Python error: Aborted\n\nThread"
    " 0x00007f2b56846b80 (most recent call first):\n  <no Python frame>\n"
)
SIZES_DIFFER = """\
terminate called after throwing an instance of 'gloo::EnforceNotMet'
  what():  [enforce fail at /gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 12 vs 8. Received data size doesn't match expected size. Is there a mismatch?
Fatal Python error: Aborted

Thread 0x00007f31dcc2ab80 (most recent call first):
  File "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 3252 in all_reduce
  File "/env/lib/python3.11/site-packages/torch/distributed/c10d_logger.py", line 83 in wrapper
  File "/job/train.py", line 29 in main
  File "/job/train.py", line 38 in <module>

Extension modules: torch._C (total: 1)
"""
TORCHRUN = """\
W1121 01:08:17.972000 8709 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 8712 closing signal SIGTERM
W1121 01:08:17.972000 8709 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 8713 closing signal SIGTERM
E1121 01:08:17.996000 8709 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -6) local_rank: 0 (pid: 8711) of binary: /env/bin/python3
Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/torch/distributed/launcher/api.py", line 383, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
==========================================================
train.py FAILED
----------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-21_01:08:17
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : -15 (pid: 8712)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 8712
----------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-21_01:08:17
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : -6 (pid: 8711)  (SIGABRT)
  error_file: <N/A>
  traceback : Signal 6 (SIGABRT) received by PID 8711
==========================================================
"""
