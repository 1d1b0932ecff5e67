import queue
import threading


class Prefetcher:
    """Runs an iterator in a thread, a few items ahead of the consumer."""

    _end = object()

    def __init__(self, source, depth):
        self.source = source
        self.buffer = queue.Queue(maxsize=depth)
        self.running = True
        self.thread = threading.Thread(target=self._produce, name="prefetch")
        self.thread.start()

    def _produce(self):
        for item in self.source:
            if not self.running:
                return
            self.buffer.put(item)
        self.buffer.put(self._end)

    def __iter__(self):
        while True:
            item = self.buffer.get()
            if item is self._end:
                return
            yield item

    def shutdown(self):
        self.running = False
        self.thread.join()
