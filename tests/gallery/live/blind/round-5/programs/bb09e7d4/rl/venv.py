import multiprocessing as mp
import random


class Sim:
    """physics of a table top; assets of a scene are read when it is first reset"""

    def __init__(self, scene, seed, n):
        self.rng = random.Random(seed)
        self.n, self.t, self.episode = n, 0, 0
        self.assets = {f"{scene}_{k}": k for k in range(40 if seed != 1 else 12)}
        self.scene = scene

    def obs(self):
        return [[self.rng.gauss(0, 1) for _ in range(6)] for _ in range(self.n)]

    def step(self, act):
        self.t += 1
        if self.t % 10 == 0:
            self.episode += 1
            self.assets[f"{self.scene}_{self.episode}"]
        return self.obs(), [self.rng.random() - 0.1 * a for a in act]


def _serve(scene, seed, n, act_q, obs_q):
    sim = Sim(scene, seed, n)
    obs_q.put((sim.obs(), None))
    try:
        while True:
            obs_q.put(sim.step(act_q.get()))
    except (KeyboardInterrupt, LookupError):
        pass


class SubEnv:
    def __init__(self, scene, seed, n):
        ctx = mp.get_context("fork")
        self.act_q, self.obs_q = ctx.Queue(), ctx.Queue()
        self.p = ctx.Process(target=_serve, args=(scene, seed, n, self.act_q, self.obs_q), daemon=True)
        self.p.start()
        self.last, _ = self.obs_q.get()

    def step(self, act):
        self.act_q.put(act)
        self.last, r = self.obs_q.get()
        return self.last, r
