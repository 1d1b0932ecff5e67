"""trainprobe: find the rank, the cause and the fix of a broken PyTorch training job."""

__version__ = "0.1.0"
