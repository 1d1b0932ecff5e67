"""Where the case of a readiness check is kept: a folder of its own, and in memory for a moment where none can be written or none is wanted."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

from trainprobe.case import Case
from trainprobe.errors import UsageError
from trainprobe.model.request import ReadyRequest
from trainprobe.system.working_folders import make_working_folder

IN_MEMORY = "/dev/shm"  # noqa: S108 - the last resort where the disks are full


@contextlib.contextmanager
def case_for(request: ReadyRequest) -> Iterator[tuple[Case, str]]:
    """Yield an open case and the name that the report shows, "" for one that is gone afterwards.

    A full disk, or a working directory that cannot be written, is something to report on and no reason to stop. Raises UsageError where a folder that was
    named cannot be written.
    """
    if request.case is not None or request.slot == "step":
        try:
            made = Case.create(request.case, "ready", request.argv)
        except UsageError:
            if request.case is not None:
                raise
        else:
            with made:
                yield made, made.name
            return
    folder = _folder()
    try:
        with Case.create(os.path.join(folder, "case"), "ready", request.argv) as case:
            yield case, ""
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _folder() -> str:
    for place in (IN_MEMORY, ""):
        if not place or os.access(place, os.W_OK):
            with contextlib.suppress(OSError):
                return make_working_folder(place)
    raise UsageError("There is no place to write anything, not even in memory.", "Name a folder with --case DIR.")
