import threading
import time


class FeatureStats(threading.Thread):
    """Running mean and variance over all shards, for the monitoring page."""

    def __init__(self, shards):
        super().__init__(name="feature-stats", daemon=True)
        self.shards = shards
        self.result = {}

    def run(self):
        while True:
            for s in self.shards:
                self.result[s.path] = s.statistics()
                time.sleep(0.002)
