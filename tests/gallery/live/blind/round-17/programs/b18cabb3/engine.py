import logging
import time
from collections import defaultdict
from enum import Enum, auto

log = logging.getLogger("engine")


class Events(Enum):
    STARTED = auto()
    ITERATION_COMPLETED = auto()
    COMPLETED = auto()


class Engine:
    def __init__(self, process):
        self.process = process
        self.iteration = 0
        self.output = None
        self._handlers = defaultdict(list)

    def on(self, event, every=1):
        def wrap(fn):
            self._handlers[event].append((every, fn))
            return fn
        return wrap

    def _fire(self, event):
        for every, fn in self._handlers[event]:
            if event is not Events.ITERATION_COMPLETED or self.iteration % every == 0:
                fn(self)

    def run(self, data, max_iters):
        self._fire(Events.STARTED)
        start = time.time()
        while self.iteration < max_iters:
            for batch in data:
                self.output = self.process(self, batch)
                self.iteration += 1
                self._fire(Events.ITERATION_COMPLETED)
                if self.iteration >= max_iters:
                    break
        self._fire(Events.COMPLETED)
        log.info("run finished after %.0fs", time.time() - start)
