"""Both ends of a file that grows; and the program that reads several, for whoever must not hang
with a file server.

`output_child.py CAP PATH…` prints a JSON object for each file: `path`, `size`, `head` and `tail`
(base64), `written_at` (Unix seconds), or `path` and `why`. A thread that hangs in the kernel is
left behind. Python ≥ 3.9, standard library only.
"""

from __future__ import annotations

import base64
import json
import os
import stat
import sys
import threading
from typing import Any, Dict, List, NamedTuple


class Ends(NamedTuple):
    """Both ends of an output: `size` in bytes, `left_out` the bytes between head and tail,
    `written_at` when it was last written to (Unix s).
    """

    size: int
    head: bytes
    tail: bytes
    written_at: float = 0.0

    @property
    def left_out(self) -> int:
        return max(0, self.size - len(self.head) - len(self.tail))


def read_ends(path: str, cap_bytes: int, *, tail_only: bool = False) -> Ends:
    """The first and last `cap_bytes` of a growing file, without overlap; with `tail_only` no head
    of a longer one. Raises OSError, also for what is no regular file: a FIFO is never opened.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(0, "it is no regular file")
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is no regular file")
        size = found.st_size
        head = b"" if tail_only and size > cap_bytes else _read_at(fd, 0, min(cap_bytes, size))
        begin = max(len(head), size - cap_bytes)
        return Ends(size, head, _read_at(fd, begin, size - begin), found.st_mtime)
    finally:
        os.close(fd)


def _read_at(fd: int, begin: int, size: int) -> bytes:
    parts: List[bytes] = []
    while size > 0:
        part = os.pread(fd, min(size, 1 << 20), begin)
        if not part:
            break
        parts.append(part)
        begin += len(part)
        size -= len(part)
    return b"".join(parts)


def _told(path: str, cap_bytes: int) -> Dict[str, Any]:
    try:
        ends = read_ends(path, cap_bytes, tail_only=True)
    except OSError as error:
        return {"path": path, "why": error.strerror}
    head, tail = (base64.b64encode(part).decode() for part in (ends.head, ends.tail))
    return {
        "path": path,
        "size": ends.size,
        "head": head,
        "tail": tail,
        "written_at": ends.written_at,
    }


def main() -> None:
    cap_bytes, paths = int(sys.argv[1]), sys.argv[2:]
    lock = threading.Lock()

    def tell(path: str) -> None:
        line = json.dumps(_told(path, cap_bytes)) + "\n"
        with lock:
            sys.stdout.write(line)
            sys.stdout.flush()

    threads = [threading.Thread(target=tell, args=(path,), daemon=True) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
