import gc
import resource


class MemoryHook:
    """Keeps the resident size flat between steps."""

    def __init__(self):
        self.peak = 0

    def after_step(self):
        gc.collect()
        self.peak = max(self.peak, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
