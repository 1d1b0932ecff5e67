"""Rollout engine process: serves generation requests and receives weight updates."""
import logging
import sys
import threading
from multiprocessing.connection import Client, Listener

import numpy as np

logging.basicConfig(level=logging.INFO, format="%(asctime)s engine[%(process)d] %(message)s")
log = logging.getLogger("engine")

NAME_REMAP = {
    "embed.": "model.tok_embeddings.",
    "blocks.": "model.layers.",
    "lm_head.": "output.",
}


def remap(name):
    for src, dst in NAME_REMAP.items():
        if name.startswith(src):
            return dst + name[len(src):]
    raise KeyError(name)


class Engine:
    def __init__(self, vocab, dim, seed):
        self.rng = np.random.default_rng(seed)
        self.weights = {
            "model.tok_embeddings.weight": self.rng.normal(size=(vocab, dim)) * 0.02,
            "output.weight": self.rng.normal(size=(vocab, dim)) * 0.02,
        }
        self.version = 0
        self.peer = None
        self.lock = threading.Lock()

    def generate(self, n, length):
        embed, head = self.weights["model.tok_embeddings.weight"], self.weights["output.weight"]
        tokens = np.zeros((n, length), dtype=np.int64)
        tokens[:, 0] = self.rng.integers(0, embed.shape[0], size=n)
        state = embed[tokens[:, 0]].copy()
        for t in range(1, length):
            logits = state @ head.T
            gumbel = -np.log(-np.log(self.rng.uniform(1e-9, 1.0, size=logits.shape)))
            tokens[:, t] = (logits + gumbel).argmax(-1)
            state = 0.7 * state + embed[tokens[:, t]]
        return {"ok": True, "tokens": tokens, "version": self.version}

    def update_weights(self, path, version):
        if self.peer is None:
            self.peer = Client(path, family="AF_UNIX")
        while True:
            kind, payload = self.peer.recv()
            if kind == "bucket":
                for name, array in payload:
                    self.weights[remap(name)] = array.astype(np.float64)
            self.peer.send("ack")
            if kind == "done":
                self.version = payload
                return {"ok": True}


def handle(engine, conn):
    with conn:
        method, kwargs = conn.recv()
        try:
            with engine.lock:
                reply = getattr(engine, method)(**kwargs)
        except Exception as exc:
            reply = {"ok": False, "error": repr(exc)}
        conn.send(reply)


def main():
    path, vocab, dim, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    engine = Engine(vocab, dim, seed)
    with Listener(path, family="AF_UNIX", backlog=16) as listener:
        log.info("serving on %s", path)
        while True:
            conn = listener.accept()
            threading.Thread(target=handle, args=(engine, conn), daemon=True).start()


if __name__ == "__main__":
    main()
