"""Sampling process of one trainer rank. Reads JSON commands on stdin, answers on stdout."""
import json
import sys
import time

import numpy as np


def main():
    rng = np.random.default_rng(int(sys.argv[1]))
    vocab = int(sys.argv[2])
    bias = np.zeros(vocab)
    version = 0
    for line in sys.stdin:
        cmd = json.loads(line)
        if cmd["op"] == "weights":
            bias, version = np.array(cmd["bias"]), cmd["version"]
            reply = {"version": version}
        else:
            probs = np.exp(bias - bias.max())
            probs /= probs.sum()
            tokens = rng.choice(vocab, size=(cmd["n"], cmd["length"]), p=probs)
            time.sleep(float(np.clip(rng.gamma(4.0, 0.004), 0.004, 0.05)))
            reply = {"tokens": tokens.tolist(), "version": version}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
