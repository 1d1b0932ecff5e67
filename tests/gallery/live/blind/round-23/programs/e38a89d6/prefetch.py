import queue
import threading


class BackgroundLoader:
    """Keeps `depth` collated batches ready while the model is busy."""

    def __init__(self, batches, depth=3):
        self.queue = queue.Queue(maxsize=depth)
        self.batches = batches
        self.thread = threading.Thread(target=self._fill, name="batch-prefetch")
        self.thread.start()

    def _fill(self):
        for batch in self.batches:
            self.queue.put(batch)
        self.queue.put(None)

    def __iter__(self):
        while True:
            batch = self.queue.get()
            if batch is None:
                return
            yield batch
