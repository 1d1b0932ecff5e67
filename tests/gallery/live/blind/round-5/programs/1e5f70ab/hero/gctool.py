import gc


class ManualGC:
    """automatic collection off, collect at the same step everywhere"""

    def __init__(self, every):
        gc.disable()
        self.every = every

    def tick(self, step):
        if step % self.every == 0:
            gc.collect()
