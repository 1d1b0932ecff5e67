import multiprocessing as mp
import time


def grade(samples):
    out = []
    for tokens in samples:
        time.sleep(0.12 + 0.01 * (len(tokens) % 7))
        out.append(len(set(tokens)) / max(len(tokens), 1))
    return out


def _serve(conn):
    while True:
        try:
            samples = conn.recv()
        except EOFError:
            return
        if samples is None:
            return
        conn.send(grade(samples))


class RewardServer:
    """Grades completions in a helper process of the rank."""

    def __init__(self):
        ctx = mp.get_context("spawn")
        self.conn, child = ctx.Pipe()
        self.proc = ctx.Process(target=_serve, args=(child,), daemon=True)
        self.proc.start()
        child.close()

    def score(self, samples):
        self.conn.send(samples)
        return self.conn.recv()
