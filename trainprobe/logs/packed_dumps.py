"""Dumps that are no plain files: compressed ones, and those that come through stdin. They are
laid aside as files, and then read as ever.
"""

from __future__ import annotations

import contextlib
import os
from types import TracebackType

from trainprobe.collect.flight_reading import FILE_CAP_BYTES
from trainprobe.collect.inputs import Saved, find_saved, looks_like_stacks
from trainprobe.logs.opening import STDIN
from trainprobe.system.working_folders import working_folder

CAP_BYTES = FILE_CAP_BYTES
MOST_BYTES = 4 * 2**30
_ENDINGS = (".gz", ".xz", ".zst", ".bz2", ".lzma")
_NO_STACKS = frozenset({"error-file", "sacct", "kernel-log", "given", "binary", "empty"})


class PackedDumps:
    """A folder for them, gone at the end of the `with`. `saved` is what they are, `shown` names
    where each came from.
    """

    def __init__(self) -> None:
        self.saved = Saved([], [], [], [])
        self.shown: dict[str, str] = {}
        self._folder = ""
        self._at_end = contextlib.ExitStack()
        self._bytes = 0

    def __enter__(self) -> PackedDumps:  # noqa: PYI034 - Self came with 3.11
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._at_end.close()

    def may_be(self, what: str, head: bytes) -> bool:
        """Say by its first bytes, decompressed, and by what `kinds` takes it for, whether it is
        worth laying aside.
        """
        if what == "flight-recorder":
            return True
        start = head.lstrip()
        return what not in _NO_STACKS and (
            (start[:1] == b"[" and start[1:].lstrip()[:1] in (b"{", b"]"))
            or looks_like_stacks(head[:65536])
        )

    def take(self, path: str, content: bytes, newest: float | None) -> str:
        """Keep what it tells, and return flight-recorder or stacks; nothing where it is no dump,
        or too much to be one.
        """
        if len(content) > CAP_BYTES or self._bytes + len(content) > MOST_BYTES:
            return ""
        try:
            place = self._write(path, content, newest)
        except OSError:  # no room for it; what it says as text is still read
            return ""
        found = find_saved([place])
        if not found.dumps and not found.stacks:
            os.unlink(place)
            return ""
        self._bytes += len(content)
        self.shown[place] = path
        self.saved.dumps.extend(found.dumps)
        self.saved.stacks.extend(found.stacks)
        return "flight-recorder" if found.dumps else "stacks"

    def _write(self, path: str, content: bytes, newest: float | None) -> str:
        """Under the name that it has once unpacked and in a folder of the name that its own has,
        since both may tell the rank.
        """
        if not self._folder:
            self._folder = os.path.join(self._at_end.enter_context(working_folder()), "dumps")
            os.mkdir(self._folder)
        name = os.path.basename(path) if path != STDIN else "stdin"
        stem = (
            next((name[: -len(ending)] for ending in _ENDINGS if name.endswith(ending)), name)
            or name
        )
        folder = os.path.join(
            self._folder,
            str(len(os.listdir(self._folder))),
            os.path.basename(os.path.dirname(path)) or "packed",
        )
        os.makedirs(folder, mode=0o700)
        place = os.path.join(folder, stem)
        with open(place, "xb") as file:
            file.write(content)
        if newest is not None:
            os.utime(place, (newest, newest))
        return place
