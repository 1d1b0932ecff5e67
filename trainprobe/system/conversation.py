"""A program that is talked with while it runs, line by line, such as ssh to another node:
bounded in size, never waited for, and gone when it is closed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import tempfile
import time
from collections import deque
from typing import Deque, Iterable, List, Mapping, Optional, Sequence

from trainprobe.system.tree import kill_below

PR_SET_PDEATHSIG = 1
READ_BYTES = 2**18
MOST_LINE_BYTES = 32 * 2**20
# of one program in all; whoever says more is broken, or wants to break us
MOST_READ_BYTES = 256 * 2**20
MOST_ERRORS_BYTES = 2**20
LOOK_AGAIN_S = 0.05

_libc = ctypes.CDLL(None)


class Conversation:
    """One program with pipes to its stdin and from its stdout. Nothing here blocks, and nothing is
    raised for a program that cannot be started.

    `over` says that nothing more will come from it, and `trouble` why in one sentence, as far as it
    is known. `heard_at` is when it said something last, by `time.monotonic()`.
    """

    def __init__(self, argv: Sequence[str], env: Optional[Mapping[str, str]] = None) -> None:
        self.argv = tuple(argv)
        self.over, self.trouble = False, ""
        self.heard_at = time.monotonic()
        self._unsent: Deque[bytes] = deque()
        self._torn: List[bytes] = []
        self._torn_bytes = self._read_bytes = 0
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed by `close`
        self._process: Optional[subprocess.Popen[bytes]] = None
        try:
            self._process = subprocess.Popen(
                self.argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=env,
                start_new_session=True,
                preexec_fn=_die_with_us,  # noqa: PLW1509 - it makes one system call and takes no lock, so threads do not matter
                bufsize=0,
            )
        except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self.over, self.trouble = (
                True,
                f"{self.argv[0] if self.argv else 'nothing'} cannot be run: {why}",
            )
            return
        self._to, self._from = _pipe(self._process.stdin), _pipe(self._process.stdout)

    def tell(self, line: bytes) -> None:
        """Send a line; it goes out when the program reads it."""
        self.send(line + b"\n")

    def send(self, content: bytes) -> None:
        """Send something as it is."""
        self._unsent.append(content)
        self.push()

    def push(self) -> None:
        """Write as much as the pipe takes."""
        try:
            while self._unsent and not self.over:
                line = self._unsent[0]
                written = os.write(self._to, line)
                if written < len(line):
                    self._unsent[0] = line[written:]
                else:
                    self._unsent.popleft()
        except BlockingIOError:
            return
        except OSError:
            self._unsent.clear()  # it reads no more; what it said until then is still to be read

    def lines(self) -> List[bytes]:
        """Return the lines since the last call. An overlong one ends the conversation."""
        found: List[bytes] = []
        while not self.over:
            try:
                block = os.read(self._from, READ_BYTES)
            except BlockingIOError:
                break
            except OSError:
                block = b""
            if not block:
                self._end("")
                break
            self.heard_at = time.monotonic()
            self._read_bytes += len(block)
            *whole, rest = block.split(b"\n")
            for part in whole:
                found.append(b"".join([*self._torn, part]))
                self._torn, self._torn_bytes = [], 0
            self._torn.append(rest)
            self._torn_bytes += len(rest)
            if self._torn_bytes > MOST_LINE_BYTES or self._read_bytes > MOST_READ_BYTES:
                self._end("it says more than can be taken in")
            if len(block) < READ_BYTES:
                break
        return found

    def fileno(self) -> int:
        return self._from

    def hang_up(self) -> None:
        """Close its stdin: it is to end."""
        if self._process is not None and self._to >= 0:
            self.push()
            os.close(self._to)
            self._to = -1

    def close(self, wait_s: float) -> None:
        """Hang up and wait until it has ended; after `wait_s` kill it with all below it."""
        if self._process is None:
            self._errors.close()
            return
        self.hang_up()
        until = time.monotonic() + wait_s
        while self._process.poll() is None and time.monotonic() < until:
            self.lines()  # a full pipe would keep it from ending
            time.sleep(LOOK_AGAIN_S)
        if self._process.poll() is None:
            kill_below({self._process.pid})
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)
        if not self.over:
            self._end("it was closed")
        with contextlib.suppress(OSError):
            os.close(self._from)
        self._errors.close()

    def _end(self, why: str) -> None:
        self.over = True
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.2)
        last = self._reason()
        code = self._process.returncode if self._process is not None else None
        ended = (
            ""
            if code is None
            else f"it ended with {f'code {code}' if code >= 0 else f'signal {-code}'}"
        )
        self.trouble = self.trouble or why or last or ended or "it says no more"

    def _reason(self) -> str:
        """The last line that it wrote to stderr."""
        size = os.fstat(self._errors.fileno()).st_size
        tail = (
            os.pread(self._errors.fileno(), 4000, max(0, size - 4000))
            .decode("utf-8", "replace")
            .strip()
        )
        if size > MOST_ERRORS_BYTES:
            os.ftruncate(self._errors.fileno(), 0)
        return tail.splitlines()[-1][:300] if tail else ""


def wait_for(some: Iterable[Conversation], timeout_s: float) -> None:
    """Sleep until one of them has said something, at most `timeout_s`."""
    waiting = select.poll()
    for item in some:
        if not item.over:
            item.push()
            waiting.register(item.fileno(), select.POLLIN)
    waiting.poll(max(0, int(timeout_s * 1000)))


def _pipe(end: object) -> int:
    """A number of our own for a pipe's end, that never blocks."""
    fd = os.dup(end.fileno())  # type: ignore[attr-defined] # a raw file, since PIPE was asked for
    os.set_blocking(fd, False)
    end.close()  # type: ignore[attr-defined] # the same
    return fd


def _die_with_us() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
