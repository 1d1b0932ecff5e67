import multiprocessing as mp
import random
import threading
import time


def sampler_main(conn, beats, wid):
    rng = random.Random(wid)

    def beat():
        while True:
            beats[wid] = time.time()
            time.sleep(2)

    threading.Thread(target=beat, name="heartbeat", daemon=True).start()
    while True:
        n = conn.recv()
        out = []
        for _ in range(n):
            time.sleep(rng.uniform(0.5, 1.5))
            out.append([rng.gauss(0, 1) for _ in range(16)])
        conn.send(out)


class SamplerPool:
    def __init__(self, workers):
        ctx = mp.get_context("fork")
        self.beats = ctx.Array("d", [time.time()] * workers)
        self.conns = []
        for i in range(workers):
            here, there = ctx.Pipe()
            ctx.Process(target=sampler_main, args=(there, self.beats, i), name=f"sampler_w{i}", daemon=True).start()
            self.conns.append(here)
        threading.Thread(target=self.watch, name="watch-samplers", daemon=True).start()

    def watch(self):
        while True:
            time.sleep(5)
            for i, t in enumerate(self.beats):
                if time.time() - t > 60:
                    print(f"no heartbeat from sampler_w{i} for {time.time() - t:.0f}s", flush=True)

    def rollouts(self, n):
        active = self.conns[: max(1, len(self.conns) - 1)]
        for c in active:
            c.send(n)
        return [row for c in active for row in c.recv()]
