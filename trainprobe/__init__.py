"""trainprobe: find the rank, the cause and the fix of a broken PyTorch training job."""

from trainprobe.import_lock import ImportLock, import_lock

__all__ = ["ImportLock", "import_lock"]
__version__ = "0.1.0"
