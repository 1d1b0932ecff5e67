import os
import time


class Bucket:
    """Object-store stand-in: whole objects only, with the bandwidth of the uplink."""

    def __init__(self, root, bandwidth=2.5e6, chunk=65536):
        self.root, self.bandwidth, self.chunk = root, bandwidth, chunk

    def put(self, source, key):
        target = os.path.join(self.root, key)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(source, "rb") as src, open(target, "wb") as dst:
            while block := src.read(self.chunk):
                dst.write(block)
                time.sleep(len(block) / self.bandwidth)

    def upload(self, folder, prefix):
        for base, _, names in os.walk(folder):
            for name in sorted(names):
                path = os.path.join(base, name)
                self.put(path, os.path.join(prefix, os.path.relpath(path, folder)))
