import json, queue, threading


class MetricWriter(threading.Thread):
    """collects scalars and writes them in the order they came"""

    def __init__(self, path):
        super().__init__(name="metric-writer")
        self.q = queue.Queue()
        self.f = open(path, "a")
        self.start()

    def add(self, **kw):
        self.q.put(kw)

    def run(self):
        while True:
            item = self.q.get()
            if item is None:
                break
            self.f.write(json.dumps(item) + "\n")
            self.f.flush()

    def close(self):
        self.q.put(None)
        self.join()
