"""access to the mounted bucket; the mount takes small blocks and acknowledges each one"""
import os, time

BLOCK = 4096


class BucketFile:
    def __init__(self, path, lat=0.06):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.f, self.lat = open(path, "wb"), lat

    def write(self, data):
        for i in range(0, len(data), BLOCK):
            self.f.write(data[i:i + BLOCK])
            self.f.flush()
            os.fsync(self.f.fileno())
            time.sleep(self.lat)

    def close(self):
        self.f.close()
