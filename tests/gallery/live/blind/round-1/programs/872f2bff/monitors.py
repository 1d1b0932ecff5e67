import json
import logging
import logging.handlers
import os
import queue
import resource
import threading
import time


class ResourceMonitor(threading.Thread):
    def __init__(self, path, every):
        super().__init__(name="resource-monitor", daemon=True)
        self.path, self.every = path, every
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.wait(self.every):
            ru = resource.getrusage(resource.RUSAGE_SELF)
            with open(self.path, "a") as f:
                f.write(json.dumps({"t": time.time(), "rss_kb": ru.ru_maxrss, "cpu": ru.ru_utime}) + "\n")


class CheckpointWatcher(threading.Thread):
    """Looks for new files to upload."""

    def __init__(self, folder, every=15.0):
        super().__init__(name="ckpt-watcher", daemon=True)
        self.folder, self.every, self.seen = folder, every, set()

    def run(self):
        while True:
            time.sleep(self.every)
            if os.path.isdir(self.folder):
                for name in sorted(set(os.listdir(self.folder)) - self.seen):
                    logging.getLogger("upload").info("new file %s", name)
                    self.seen.add(name)


class MetricSink(threading.Thread):
    def __init__(self):
        super().__init__(name="metric-sink", daemon=True)
        self.inbox = queue.Queue()

    def run(self):
        while True:
            item = self.inbox.get()
            if item is None:
                return
            logging.getLogger("metrics").info("%s", item)


class Deadline(threading.Thread):
    """Wakes up once a minute to compare the clock with the reservation."""

    def __init__(self, hours):
        super().__init__(name="deadline", daemon=True)
        self.until = time.time() + 3600 * hours
        self.near = threading.Event()

    def run(self):
        while time.time() < self.until:
            time.sleep(60)
        self.near.set()


def queue_logging(rank):
    q = queue.Queue(-1)
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.addHandler(logging.handlers.QueueHandler(q))
    out = logging.StreamHandler()
    out.setFormatter(logging.Formatter(f"%(asctime)s [{rank}] %(name)s %(message)s"))
    listener = logging.handlers.QueueListener(q, out)
    listener.start()
    return listener
