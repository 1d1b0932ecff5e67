import time


class TextHook:
    def __init__(self, interval):
        self.interval, self.t = interval, time.time()

    def after_iter(self, runner):
        if runner.iter % self.interval == 0:
            now = time.time()
            print(f"Epoch [{runner.epoch}][{runner.iter}] lr {runner.lr:.3e} time {(now - self.t) / self.interval:.3f} loss {runner.loss:.4f}", flush=True)
            self.t = now
