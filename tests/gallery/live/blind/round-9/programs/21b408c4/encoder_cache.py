import logging
import os
import threading
import time
import zlib

import numpy as np

log = logging.getLogger(__name__)


class EncoderCache:
    """Character n-gram ids of every document, kept in memory and written to disk from time to time."""

    def __init__(self, path, vocab_size, save_every=8.0):
        self.path = path
        self.vocab_size = vocab_size
        self.save_every = save_every
        self._blocks = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = None

    def start_saving(self):
        self._thread = threading.Thread(target=self._save_loop, name="encoder-cache-save", daemon=True)
        self._thread.start()

    def _save_loop(self):
        while not self._stop.wait(self.save_every):
            t = time.time()
            n = self.save()
            log.info("encoder cache: %d documents saved in %.1fs", n, time.time() - t)

    def save(self):
        tmp = self.path + ".tmp"
        with self._lock:
            with open(tmp, "wb") as f:
                for key, arr in self._blocks.items():
                    blob = zlib.compress(arr.tobytes(), 9)
                    f.write(len(blob).to_bytes(4, "little") + blob)
                f.flush()
                os.fsync(f.fileno())
            os.replace(tmp, self.path)
            return len(self._blocks)

    def encode(self, key, text):
        with self._lock:
            arr = self._blocks.get(key)
        if arr is None:
            arr = self._encode(text)
            with self._lock:
                self._blocks[key] = arr
        return arr

    def _encode(self, text):
        raw = np.frombuffer(text.encode(), dtype=np.uint8).astype(np.int64)
        grams = (raw[:-2] * 131 * 131 + raw[1:-1] * 131 + raw[2:]) % self.vocab_size
        return grams.astype(np.int32)
