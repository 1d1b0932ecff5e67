"""Files without a name, in memory where the kernel has that, so that no disk is needed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from typing import IO, Optional


def anonymous_file(name: str, folder: Optional[str] = None) -> IO[bytes]:
    """Open a file to append and to read, in memory or in `folder`. Raises OSError."""
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            fd = os.memfd_create(f"trainprobe-{name}", os.MFD_CLOEXEC)
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_APPEND)
            return os.fdopen(fd, "ab+", buffering=0)
    return tempfile.TemporaryFile("ab+", dir=folder, buffering=0)
