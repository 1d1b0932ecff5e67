import functools
import http.server
import io
import os

import numpy as np
import webdataset as wds


def write_shards(folder, count=6, per_shard=120, side=24, classes=8, seed=0):
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((classes, 3, side, side)).astype("float32") * 0.4
    for s in range(count):
        with wds.TarWriter(os.path.join(folder, f"shard-{s:06d}.tar")) as sink:
            for i in range(per_shard):
                y = int(rng.integers(classes))
                x = centers[y] + rng.standard_normal((3, side, side)).astype("float32")
                sink.write({"__key__": f"{s:03d}{i:05d}", "npy": x, "cls": y})


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def serve(folder, pipe):
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        pipe.send(httpd.server_address[1])
        httpd.serve_forever()
