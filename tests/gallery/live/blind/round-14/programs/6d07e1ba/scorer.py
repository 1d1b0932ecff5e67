"""Reference scorer: reads paths on stdin, reports on stdout."""
import sys

import numpy as np


class Progress:
    def __init__(self, total, out):
        self.total, self.out, self.shown = total, out, -1

    def update(self, i, text):
        pct = 100 * i // self.total
        if pct != self.shown:
            self.out.write(f"\r{pct:3d}% {text}")
            self.out.flush()
            self.shown = pct


def edit(a, b):
    prev = np.arange(len(b) + 1)
    for i, ca in enumerate(a, 1):
        cur = np.empty_like(prev)
        cur[0] = i
        for j, cb in enumerate(b, 1):
            cur[j] = min(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + (ca != cb))
        prev = cur
    return int(prev[-1])


def main():
    out = sys.stdout
    for line in iter(sys.stdin.readline, ""):
        data = np.load(line.strip())
        hyp, ref = data["hyp"], data["ref"]
        bar = Progress(len(ref), out) if len(ref) > 64 else None
        err = tot = 0
        for i, (h, r) in enumerate(zip(hyp, ref), 1):
            err += edit(h, r)
            tot += len(r)
            if bar:
                bar.update(i, f"ter={err / tot:.4f}")
        if bar is None:
            out.write(f"done ter={err / tot:.4f}\n")
            out.flush()


if __name__ == "__main__":
    main()
