import resource
import time

import torch
import torch.distributed as dist


class Hook:
    def before_epoch(self, runner): ...

    def after_train_iter(self, runner): ...

    def after_train_epoch(self, runner): ...

    def every_n_inner_iters(self, runner, n):
        return (runner.inner_iter + 1) % n == 0


class OptimizerHook(Hook):
    def after_train_iter(self, runner):
        runner.optimizer.zero_grad()
        runner.outputs["loss"].backward()
        runner.optimizer.step()
        runner.log_buffer.update({"loss": runner.outputs["loss"].item()}, runner.outputs["num_samples"])


class IterTimerHook(Hook):
    def before_epoch(self, runner):
        self.t = time.time()

    def after_train_iter(self, runner):
        runner.log_buffer.update({"time": time.time() - self.t})
        self.t = time.time()


class EvalHook(Hook):
    """Evaluates on the main process, writes the score to the buffer for the loggers."""

    def __init__(self, samples, interval=1):
        self.samples, self.interval = samples, interval

    @torch.no_grad()
    def evaluate(self, runner):
        net = runner.model.module
        net.eval()
        hit = 0
        for x, y in self.samples:
            hit += int(net(x.unsqueeze(0)).argmax(-1).item() == y)
            time.sleep(0.03)
        net.train()
        return hit / len(self.samples)

    def after_train_epoch(self, runner):
        if (runner.epoch + 1) % self.interval or runner.rank != 0:
            return
        score = self.evaluate(runner)
        runner.log_buffer.clear()
        runner.epoch_scores.append(score)


class TextLoggerHook(Hook):
    def __init__(self, interval):
        self.interval = interval

    def _max_memory(self, runner):
        mb = torch.tensor([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024], dtype=torch.int64)
        dist.reduce(mb, 0, op=dist.ReduceOp.MAX)
        return mb.item()

    def log(self, runner):
        line = ", ".join(f"{k}: {v:.4f}" for k, v in runner.log_buffer.output.items())
        mem = self._max_memory(runner)
        if runner.rank == 0:
            print(f"Epoch [{runner.epoch + 1}][{runner.inner_iter + 1}/{runner.iters}] {line}, memory: {mem}", flush=True)

    def after_train_iter(self, runner):
        if self.every_n_inner_iters(runner, self.interval):
            runner.log_buffer.average(self.interval)
            if runner.log_buffer.ready:
                self.log(runner)
                runner.log_buffer.clear_output()

    def after_train_epoch(self, runner):
        tail = runner.iters % self.interval
        if tail and runner.log_buffer.val_history:
            runner.log_buffer.average(tail)
        if runner.log_buffer.ready:
            self.log(runner)
        runner.log_buffer.clear()
