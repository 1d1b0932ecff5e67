import multiprocessing as mp
import random
import time


class Corridor:
    """Walk along a corridor with a door somewhere; frames cost wall time."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def reset(self, frame_time):
        self.frame_time = frame_time
        self.door, self.pos, self.t = self.rng.randint(2, 9), 0, 0
        return [self.pos / 10, self.door / 10, 0.0, 1.0]

    def step(self, action):
        time.sleep(self.frame_time)
        self.pos = max(0, self.pos + (1 if action == 1 else -1))
        self.t += 1
        done = self.pos >= self.door or self.t >= 40
        return [self.pos / 10, self.door / 10, self.t / 40, 1.0], (1.0 if self.pos >= self.door else -0.05), done


def _serve(conn, seed):
    env = Corridor(seed)
    while True:
        try:
            command, value = conn.recv()
        except EOFError:
            return
        if command == "reset":
            conn.send(env.reset(value))
        elif command == "step":
            conn.send(env.step(value))
        elif command == "close":
            return


class RemoteEnv:
    def __init__(self, seed):
        ctx = mp.get_context("spawn")
        self.conn, child = ctx.Pipe()
        self.proc = ctx.Process(target=_serve, args=(child, seed), daemon=True)
        self.proc.start()
        child.close()

    def reset(self, frame_time):
        self.conn.send(("reset", frame_time))
        return self.conn.recv()

    def step(self, action):
        self.conn.send(("step", action))
        return self.conn.recv()
