from collections import defaultdict
from enum import Enum


class Events(Enum):
    EPOCH_STARTED = 1
    ITERATION_COMPLETED = 2
    EPOCH_COMPLETED = 3


class State:
    def __init__(self):
        self.epoch = self.iteration = 0
        self.output = None
        self.metrics = {}


class Engine:
    def __init__(self, fn):
        self.fn, self.state, self.handlers = fn, State(), defaultdict(list)

    def add_event_handler(self, event, handler, *args):
        self.handlers[event].append((handler, args))

    def _fire(self, event):
        for h, args in list(self.handlers[event]):
            h(self, *args)

    def run(self, data, max_epochs):
        for self.state.epoch in range(1, max_epochs + 1):
            self._fire(Events.EPOCH_STARTED)
            for batch in data:
                self.state.iteration += 1
                self.state.output = self.fn(self, batch)
                self._fire(Events.ITERATION_COMPLETED)
            self._fire(Events.EPOCH_COMPLETED)
