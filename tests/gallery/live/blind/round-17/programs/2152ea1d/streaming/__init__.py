from .dataset import StreamingDataset
from .shared import SharedBarrier

__all__ = ["StreamingDataset", "SharedBarrier"]
