import queue
import threading

import torch


class Feeder:
    """Assembles batches on a thread so that decoding overlaps with compute."""

    def __init__(self, dataset, order, batch_size, depth=4):
        self.dataset = dataset
        self.order = order
        self.batch_size = batch_size
        self.out = queue.Queue(maxsize=depth)
        self.closing = threading.Event()
        self.error = None
        self.thread = threading.Thread(target=self._work, name="feeder")
        self.thread.start()

    def _work(self):
        try:
            for start in range(0, len(self.order) - self.batch_size + 1, self.batch_size):
                if self.closing.is_set():
                    return
                items = [self.dataset[i] for i in self.order[start:start + self.batch_size]]
                x = torch.stack([a for a, _ in items])
                y = torch.stack([b for _, b in items])
                self.out.put((x, y))
        except Exception as exc:
            self.error = exc
        self.out.put(None)

    def __iter__(self):
        while True:
            item = self.out.get()
            if item is None:
                if self.error is not None:
                    raise self.error
                return
            yield item

    def close(self):
        self.closing.set()
        self.thread.join()
