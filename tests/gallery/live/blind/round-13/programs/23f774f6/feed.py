import subprocess
import sys
import threading
from collections import deque

import numpy as np
import torch

PRODUCER = """
import sys, random
rng = random.Random(int(sys.argv[1]))
out = sys.stdout.buffer
n = 0
while True:
    size = rng.choice((24, 32, 40, 48))
    body = rng.randbytes(size * 16)
    out.write(size.to_bytes(4, 'little') + body)
    out.flush()
    n += 1
    if n % 50 == 0:
        print(f'producer {sys.argv[1]}: {n} batches of up to 48 rows written so far', file=sys.stderr, flush=True)
"""


class Feed:
    """Batches of varying length from an external producer, read through a pipe."""

    def __init__(self, seed):
        self.proc = subprocess.Popen([sys.executable, "-c", PRODUCER, str(seed)], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE)
        self.log = deque(maxlen=20)
        threading.Thread(target=self._drain, name="producer-log", daemon=True).start()

    def _drain(self):
        for line in self.proc.stderr:
            self.log.append(line.decode().rstrip())

    def __iter__(self):
        while True:
            size = int.from_bytes(self.proc.stdout.read(4), "little")
            raw = np.frombuffer(self.proc.stdout.read(size * 16), dtype=np.uint8).reshape(size, 16)
            yield torch.from_numpy(raw.astype(np.int64))

    def close(self):
        self.proc.kill()
        self.proc.wait()
