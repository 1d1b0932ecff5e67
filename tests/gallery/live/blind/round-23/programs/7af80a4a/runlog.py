import collections
import time


class NullLog:
    def scalars(self, step, **values):
        pass

    def artifact(self, snapshot):
        pass


class RunLog:
    def __init__(self, name, pending=4):
        self.name = name
        self.started = time.time()
        self.pending = collections.deque(maxlen=pending)

    def scalars(self, step, **values):
        text = " ".join(f"{k}={v:.4f}" for k, v in values.items())
        print(f"[{self.name} {time.time() - self.started:6.1f}s] step {step} {text}", flush=True)

    def artifact(self, snapshot):
        self.pending.append(snapshot)
        print(f"[{self.name}] averaged weights of step {snapshot.step} queued, "
              f"norm {snapshot.slice().norm().item():.3f}", flush=True)


def make_log(name, rank):
    return RunLog(name) if rank == 0 else NullLog()
