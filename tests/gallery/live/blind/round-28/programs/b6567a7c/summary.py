"""Event file writer with a background thread, one JSON line per scalar."""
import json
import os
import queue
import threading
import time


class EventWriter:
    def __init__(self, logdir, max_queue=24, flush_secs=5.0):
        self._file = open(os.path.join(logdir, "events.jsonl"), "a")
        self._queue = queue.Queue(max_queue)
        self._flush_secs = flush_secs
        self._worker = threading.Thread(target=self._run, name="event-writer", daemon=True)
        self._worker.start()

    def add_scalar(self, tag, value, step):
        self._queue.put({"tag": tag, "value": float(value), "step": step, "wall": time.time()})

    def add_hparams(self, hparams):
        self._queue.put({"tag": "hparams", "value": hparams, "step": 0, "wall": time.time()})

    def _run(self):
        last = time.time()
        while True:
            event = self._queue.get()
            self._file.write(json.dumps(event) + "\n")
            if time.time() - last > self._flush_secs:
                self._file.flush()
                last = time.time()
            self._queue.task_done()
