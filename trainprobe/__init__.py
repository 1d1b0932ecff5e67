"""trainprobe: find the rank, the cause and the fix of a broken PyTorch training job."""

import sys

# This file is plain enough for any Python to say so.
if sys.version_info < (3, 9):  # noqa: UP036 - it may be started on a node by another Python
    raise (SystemExit if sys.argv[:1] == ["-m"] else ImportError)(
        "trainprobe: Python 3.9 or newer is needed; this is %d.%d of %s."  # noqa: UP031
        % (sys.version_info[0], sys.version_info[1], sys.executable)
    )

from trainprobe.heartbeat import phase, step
from trainprobe.import_lock import ImportLock, import_lock

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would cost each import of this file some milliseconds
    from typing import Any

__all__ = ["ImportLock", "import_lock", "load_ipython_extension", "phase", "step"]
__version__ = "0.1.0"


def load_ipython_extension(shell: "Any") -> None:
    """Load `%trainprobe` into a notebook: `%load_ext trainprobe`."""
    import importlib

    # by its name: this file stands below everything that a notebook needs, and imports none of it
    importlib.import_module("trainprobe.notebook").register(shell)
