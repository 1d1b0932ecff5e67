"""A command in our place: it has our stdin, stdout and stderr themselves, our process group and
terminal, so that nothing is copied and nothing is lost.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import select
import signal
import time
from typing import List, Mapping, Optional, Sequence, Tuple

from trainprobe.errors import TrainprobeError
from trainprobe.system.proc import listed_pids, read_file
from trainprobe.system.signal_relay import pass_on

NOT_FOUND, NOT_RUN = 127, 126  # as a shell says it
KILL_ROUNDS = 20


class CannotStart(TrainprobeError):  # noqa: N818 - it says what happened
    """The command does not exist, or cannot be run."""

    def __init__(self, says: str, code: int) -> None:
        super().__init__(says)
        self.exit_code = code


class Foreground:
    """A command that runs. `ended` is its wait status, None while it runs."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        mark: str,
        closed: Sequence[int] = (),
    ) -> None:
        """Start it. `mark` is a variable by which all that it starts can be found again. `closed`
        are the standard descriptors that we were started without: it has none of them either.
        Raises CannotStart.
        """
        self._mark = (mark, f"{os.getpid()}-{secrets.token_hex(6)}")
        self.began = time.time()
        self.ended: Optional[int] = None
        self.cpu_s = 0.0
        try:
            self.pid = os.posix_spawnp(
                argv[0],
                list(argv),
                {**env, mark: self._mark[1]},
                file_actions=[(os.POSIX_SPAWN_CLOSE, fd) for fd in closed],
                # Python ignores these two; a program is started without that.
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
            )
        except (OSError, ValueError) as error:
            missing = isinstance(error, OSError) and error.errno == errno.ENOENT
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise CannotStart(
                f"{argv[0]}: command not found." if missing else f"{argv[0]} cannot be run: {why}.",
                NOT_FOUND if missing else NOT_RUN,
            ) from error
        self.pidfd: Optional[int] = None
        with contextlib.suppress(OSError, AttributeError):  # Linux before 5.3
            self.pidfd = os.pidfd_open(self.pid)

    def let_go_of_streams(self) -> None:
        """Keep neither its stdin nor its stdout open: who is at the other end must see that the
        command has closed them. A message of ours goes to stderr.
        """
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(nowhere, 1)
        os.close(nowhere)
        # A line to a terminal from the background must not stop the whole group.
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)

    def wait(self, seconds: float, *others: int) -> None:
        """Return when it has ended, one of the descriptors `others` is readable, or the time is
        over.
        """
        poll = select.poll()
        for fd in (*others, *([self.pidfd] if self.pidfd is not None else [])):
            poll.register(fd, select.POLLIN)
        poll.poll(max(0.0, seconds if self.pidfd is not None else min(seconds, 0.1)) * 1000)
        self.check()

    def check(self) -> None:
        """Note its end, if it has come."""
        if self.ended is not None:
            return
        pid, status, use = os.wait4(self.pid, os.WNOHANG)
        if pid == self.pid:
            self.ended, self.cpu_s = status, use.ru_utime + use.ru_stime

    def send(self, number: int) -> None:
        if self.ended is None:
            pass_on(self.pidfd, self.pid, number)

    def kill_all(self) -> None:
        """SIGKILL all that it has started and that still lives, until nobody new shows up."""
        killed: set[int] = set()
        for _ in range(KILL_ROUNDS):
            found = set(_carriers(self._mark)) - killed
            for pid in found:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if not found:
                return
            killed |= found
            time.sleep(0.02)


def stop_ourselves() -> None:
    """Stop as the command was stopped, so that the shell sees it and gives a prompt."""
    os.kill(os.getpid(), signal.SIGSTOP)


def _carriers(mark: Tuple[str, str]) -> List[int]:
    """The living processes whose environment holds a variable with this value. It is not in ours,
    nor in what we start for ourselves.
    """
    wanted = f"{mark[0]}={mark[1]}".encode()
    return [
        pid
        for pid in listed_pids()
        if wanted in read_file(f"/proc/{pid}/environ", 2**21).split(b"\0")
    ]
