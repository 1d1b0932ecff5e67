import queue
import threading


class Prefetcher:
    """Runs the input pipeline in a thread, a few batches ahead of the model."""

    def __init__(self, source, depth=4):
        self.source = source
        self.buffer = queue.Queue(maxsize=depth)
        self.status = "running"
        self.thread = threading.Thread(target=self._fill, name="prefetch", daemon=True)
        self.thread.start()

    def _fill(self):
        try:
            for batch in self.source:
                self.buffer.put(batch)
        except Exception as e:
            self.status = f"failed: {e}"
            return
        self.status = "finished"
        self.buffer.put(None)

    def __iter__(self):
        return self

    def __next__(self):
        batch = self.buffer.get()
        if batch is None:
            raise StopIteration
        return batch
