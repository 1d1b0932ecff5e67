import torch.multiprocessing as mp

from actors import actor_loop


class ActorPool:
    def __init__(self, count, slip, seed):
        self.ctx = mp.get_context("spawn")
        self.count, self.slip, self.seed = count, slip, seed
        self.tasks = self.ctx.Queue()
        self.results = self.ctx.Queue()
        self.procs = []
        self.level = 0

    def start(self):
        self.procs = [
            self.ctx.Process(
                target=actor_loop, daemon=True,
                args=(i, self.level, self.slip, self.seed + 10 * i + self.level, self.tasks, self.results))
            for i in range(self.count)]
        for p in self.procs:
            p.start()

    def set_level(self, level):
        self.level = level
        for p in self.procs:
            p.terminate()
        for p in self.procs:
            p.join()
        self.start()

    def collect(self, weights, chunks, episodes):
        for _ in range(chunks):
            self.tasks.put((weights, episodes))
        batch, returns = [], []
        for _ in range(chunks):
            _, part, mean = self.results.get()
            batch.extend(part)
            returns.append(mean)
        return batch, sum(returns) / len(returns)
