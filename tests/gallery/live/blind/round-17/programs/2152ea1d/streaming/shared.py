import fcntl
import os
import time
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory

import numpy as np

TICK = 0.007


class SharedBarrier:
    """Barrier across all dataloader workers of all ranks of one node."""

    def __init__(self, lock_path, shm_name):
        self.lock_path = lock_path
        os.makedirs(os.path.dirname(lock_path), exist_ok=True)
        try:
            self._shm = SharedMemory(shm_name, create=True, size=12)
            self._shm.buf[:12] = bytes(12)
        except FileExistsError:
            self._shm = SharedMemory(shm_name, create=False)
        resource_tracker.unregister(self._shm._name, "shared_memory")
        self._arr = np.ndarray(3, dtype=np.int32, buffer=self._shm.buf)

    def __getstate__(self):
        raise TypeError("SharedBarrier is inherited, not pickled")

    def __call__(self, num_procs):
        fd = os.open(self.lock_path, os.O_CREAT | os.O_RDWR)
        fcntl.flock(fd, fcntl.LOCK_EX)
        if self._arr[0] == 0:
            while self._arr[1] != 0:
                fcntl.flock(fd, fcntl.LOCK_UN)
                time.sleep(TICK)
                fcntl.flock(fd, fcntl.LOCK_EX)
            self._arr[2] = 0
        self._arr[0] += 1
        if self._arr[0] == num_procs:
            self._arr[1] = num_procs - 1
            self._arr[2] = 1
            self._arr[0] = 0
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)
            return
        fcntl.flock(fd, fcntl.LOCK_UN)
        while not self._arr[2]:
            time.sleep(TICK)
        fcntl.flock(fd, fcntl.LOCK_EX)
        self._arr[1] -= 1
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)
