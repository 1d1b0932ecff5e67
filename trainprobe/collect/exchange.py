"""A private folder in which a process of the job, whatever its user and root, leaves files."""

from __future__ import annotations

import contextlib
import os
import stat
from types import TracebackType
from typing import List, Optional, Tuple, Type

from trainprobe.collect import procfs
from trainprobe.system.working_folders import FRESH_MARK, MARK, mark_line, sweep

PLACES = (
    "/tmp",  # noqa: S108 - candidates; the folder itself is new, private and has a random name
    "/dev/shm",  # noqa: S108 - candidates; the folder itself is new, private and has a random name
    "/var/tmp",  # noqa: S108 - candidates; the folder itself is new, private and has a random name
)
ENVIRON_BYTES = 2**20
SWEEP_S = 0.2


class Exchange:
    """The folder: `path` is its name as the process sees it. We go through a descriptor, so a name
    that is swapped leads nowhere.

    Made below /proc/PID/root (another mount namespace is no obstacle) and given to the user of the
    process. Raises OSError.
    """

    def __init__(self, pid: int) -> None:
        status = procfs.status_fields(procfs.read_page(f"/proc/{pid}/status") or "")
        owner = [_last(status.get(name, "")) for name in ("Uid", "Gid")]
        error: OSError = OSError(2, "no folder for temporary files is there")
        for place in _places(pid):
            name = f"trainprobe-{os.urandom(6).hex()}"
            try:
                self._above = os.open(
                    f"/proc/{pid}/root{place}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
                )
            except OSError as found:
                error = found
                continue
            try:
                os.mkdir(name, 0o700, dir_fd=self._above)
                self._folder = os.open(
                    name,
                    os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC,
                    dir_fd=self._above,
                )
                if owner[0] is not None and os.fstat(self._folder).st_uid != owner[0]:
                    os.fchown(self._folder, owner[0], -1 if owner[1] is None else owner[1])
            except OSError as found:
                error = found
                with contextlib.suppress(OSError):
                    os.rmdir(name, dir_fd=self._above)
                os.close(self._above)
                continue
            self.path, self._name, self._owner = (
                f"{place.rstrip('/')}/{name}",
                name,
                (owner[0], owner[1]),
            )
            self._pid, self._left = pid, False
            self._mark(os.getpid())
            sweep(f"/proc/{pid}/root{place}", SWEEP_S, owner[0])  # what a killed look has left
            return
        raise error

    def __enter__(self) -> Exchange:  # noqa: PYI034 - Self is newer than Python 3.9
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        with contextlib.suppress(OSError):
            names = [] if self.left else os.listdir(self._folder)
            # The mark goes last: who is killed meanwhile leaves the rest to the next look.
            for name in sorted(names, key=lambda name: name == MARK):
                os.unlink(name, dir_fd=self._folder)
            if not self.left:
                os.rmdir(self._name, dir_fd=self._above)
        os.close(self._folder)
        os.close(self._above)

    @property
    def left(self) -> bool:
        """Whether the folder stays where it is, since the process still has a request to run it."""
        return self._left

    @left.setter
    def left(self, left: bool) -> None:
        self._left = left
        self._mark(self._pid if left else os.getpid())

    def _mark(self, pid: int) -> None:
        """Write with which process the folder may go, should nobody be left to remove it."""
        with contextlib.suppress(OSError):
            self.put(FRESH_MARK, (mark_line(pid) or "?\n").encode("ascii"))
            os.rename(FRESH_MARK, MARK, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def put(self, name: str, content: bytes) -> None:
        """Write a file that the process may read. Raises OSError."""
        fd = os.open(
            name,
            os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC,
            0o400 | stat.S_IWUSR,
            dir_fd=self._folder,
        )
        with os.fdopen(fd, "wb") as file:
            if self._owner[0] is not None and os.fstat(fd).st_uid != self._owner[0]:
                os.fchown(fd, self._owner[0], -1 if self._owner[1] is None else self._owner[1])
            file.write(content)

    def get(self, name: str, most_bytes: int) -> Optional[bytes]:
        """A file of the process, None until it is there. Raises ValueError for a large one."""
        try:
            fd = os.open(
                name,
                os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC,
                dir_fd=self._folder,
            )
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ValueError(
                f"what the process wrote as {name} cannot be read: {error.strerror}"
            ) from error
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_size > most_bytes:
                raise ValueError(
                    f"what the process wrote as {name} is no plain file of at most {most_bytes}"
                    " bytes"
                )
            return file.read(most_bytes)


def _places(pid: int) -> List[str]:
    asked = ""
    with contextlib.suppress(OSError):
        for entry in procfs.read(f"/proc/{pid}/environ", ENVIRON_BYTES).split("\0"):
            if (
                entry.startswith("TMPDIR=/")
                and "\n" not in entry
                and ".." not in entry
                and entry.isascii()
            ):
                asked = entry[len("TMPDIR=") :]
    return [place for place in (asked, *PLACES) if place]


def _last(field: str) -> Optional[int]:
    """The fourth number of `Uid:` and `Gid:`: the one that counts for files."""
    columns: Tuple[str, ...] = tuple(field.split())
    return int(columns[3]) if len(columns) > 3 and columns[3].isdecimal() else None
