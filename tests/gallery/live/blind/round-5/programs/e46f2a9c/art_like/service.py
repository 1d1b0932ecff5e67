import queue
import threading
import time


class TrainService:
    """Takes packed trajectories, yields one result for every micro step."""

    def __init__(self, fn):
        self.inputs = queue.Queue()
        self.results = queue.Queue()
        self._fn = fn
        threading.Thread(target=self._work, daemon=True, name="micro-steps").start()

    def _work(self):
        while True:
            pack = self.inputs.get()
            for micro in pack:
                self.results.put(self._fn(micro))

    def train(self, packs):
        self.results.join()          # nothing of the last round may be left
        expected = 0
        for p in packs:
            self.inputs.put(p)
            expected += len(p)
        for _ in range(expected):
            r = self.results.get()
            yield r
            self.results.task_done()


class Clock:
    def __init__(self):
        self.t = time.time()

    def lap(self):
        now = time.time()
        d, self.t = now - self.t, now
        return d
