"""Text-game workers that play episodes with a frozen copy of the policy."""
import random
import time


def play(conn, seed):
    rng = random.Random(seed)
    version = -1
    while True:
        msg, payload = conn.recv()
        if msg == "weights":
            version = payload["version"]
        elif msg == "play":
            turns = payload["turns"]
            tokens = [rng.randrange(64) for _ in range(24)]
            for _ in range(turns):
                time.sleep(0.05)
            conn.send({"tokens": tokens, "reward": rng.random(), "version": version, "turns": turns})
        elif msg == "close":
            return


class RolloutPool:
    def __init__(self, ctx, n_workers, seed):
        self.conns, self.procs = [], []
        for i in range(n_workers):
            ours, theirs = ctx.Pipe()
            p = ctx.Process(target=play, args=(theirs, seed * 100 + i), name=f"game-{i}", daemon=True)
            p.start()
            theirs.close()
            self.conns.append(ours)
            self.procs.append(p)

    def push_weights(self, version):
        for c in self.conns:
            c.send(("weights", {"version": version}))

    def collect(self, turns):
        active = self.conns[:len(turns)]
        for c, t in zip(active, turns):
            c.send(("play", {"turns": t}))
        return [c.recv() for c in active]
