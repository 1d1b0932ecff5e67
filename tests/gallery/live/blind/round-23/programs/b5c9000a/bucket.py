"""Read-only client for the page archive (local emulation of the object store)."""
import html
import random
import time

WORDS = "the model reads a page of text and learns what comes next in long lines of words".split()


class PageArchive:
    def __init__(self, prefix, median_latency=0.0):
        self.prefix = prefix
        self.median_latency = median_latency

    def keys(self):
        n = 0
        while True:
            yield f"{self.prefix}/{n:08d}.html"
            n += 1

    def get(self, key):
        rng = random.Random(key)
        if self.median_latency:
            time.sleep(self.median_latency * rng.lognormvariate(0.0, 0.25))
        body = " ".join(rng.choice(WORDS) for _ in range(rng.randint(40, 120)))
        return f"<html><body><p>{html.escape(body)}</p></body></html>"
