"""A small file that each member writes into the folders of the job, for the others to look for: one
that is another disk on a node does not have it there.

Each call has a deadline, in a thread: a folder may stop answering.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Callable, Dict

from _node_pair.members import PairRequest

WITHIN_S = 2.0


class SharedFiles:
    """`written` are the folders in which this member's own file lies now."""

    def __init__(self, request: PairRequest) -> None:
        self._request = request
        self.written: Dict[str, bool] = {}
        self._each(self._write)

    def seen(self, place: int) -> Dict[str, bool]:
        """Whether the file of the member at this place is there, for each folder that answers.
        Every name is looked up once: a network file system may remember that there was none.
        """
        found: Dict[str, bool] = {}

        def look(folder: str) -> None:
            found[folder] = os.path.exists(self._name(folder, place))

        self._each(look)
        return dict(found)

    def remove(self) -> None:
        self._each(lambda folder: os.unlink(self._name(folder, self._request.rank)))

    def _write(self, folder: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        os.close(os.open(self._name(folder, self._request.rank), flags, 0o600))
        self.written[folder] = True

    def _name(self, folder: str, place: int) -> str:
        return os.path.join(folder, f".trainprobe-{self._request.token.hex()}-{place}")

    def _each(self, act: Callable[[str], None]) -> None:
        def acted(folder: str) -> None:
            with contextlib.suppress(OSError):  # the checks of the folders say so
                act(folder)

        threads = [
            threading.Thread(target=acted, args=(folder,), daemon=True)
            for folder in self._request.paths
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WITHIN_S)
