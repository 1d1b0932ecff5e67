import multiprocessing as mp

_ctx = mp.get_context("fork")


class PrefetchIterator:
    """Evaluates the source iterator in a background process and keeps items ready."""

    def __init__(self, source_fn, buffer_size=8):
        self._queue = _ctx.SimpleQueue()
        self._slots = _ctx.Semaphore(buffer_size)
        self._process = _ctx.Process(target=self._fill, args=(source_fn,), daemon=True)
        self._process.start()

    def _fill(self, source_fn):
        for item in source_fn():
            self._slots.acquire()
            self._queue.put(item)
        self._queue.put(None)

    def __iter__(self):
        return self

    def __next__(self):
        item = self._queue.get()
        if item is None:
            raise StopIteration
        self._slots.release()
        return item
