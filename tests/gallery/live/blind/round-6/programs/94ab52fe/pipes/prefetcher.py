import queue
import threading

from .core import Pipe

_END = object()


class Prefetcher(Pipe):
    """Keeps `size` elements ready with the help of a thread."""

    def __init__(self, source, size):
        self.source, self.size = source, size
        self._thread = None
        self._run = False
        self._buffer = None

    def _worker(self):
        for x in self.source:
            if not self._run:
                return
            self._buffer.put(x)
        self._buffer.put(_END)

    def __iter__(self):
        self._buffer = queue.Queue(self.size)
        self._run = True
        self._thread = threading.Thread(target=self._worker, daemon=True, name="prefetcher")
        self._thread.start()
        while True:
            x = self._buffer.get()
            if x is _END:
                return
            yield x

    def reset(self):
        if self._thread is not None:
            self._run = False
            self._thread.join()
            self._thread = None
        super().reset()
