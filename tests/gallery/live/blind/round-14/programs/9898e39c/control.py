import os
import signal
import threading
import time

import torch
import torch.distributed as dist


class SnapshotRequests:
    """SIGUSR1 asks for a snapshot; the ranks agree on it at the end of a step."""

    def __init__(self):
        self.flag = torch.zeros(1)
        signal.signal(signal.SIGUSR1, self._on_signal)

    def _on_signal(self, signum, frame):
        self.flag.fill_(1.0)

    def agreed(self):
        flag = self.flag.clone()
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        if flag.item():
            self.flag.zero_()
        return bool(flag.item())


class WalltimeWatch(threading.Thread):
    """Asks the own process for a snapshot every so often, as the batch system would."""

    def __init__(self, every):
        super().__init__(daemon=True, name="walltime")
        self.every = every

    def run(self):
        while True:
            time.sleep(self.every)
            os.kill(os.getpid(), signal.SIGUSR1)
