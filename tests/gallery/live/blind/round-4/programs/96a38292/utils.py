import csv
import ctypes
import signal


def tie_to_parent():
    ctypes.CDLL("libc.so.6").prctl(1, signal.SIGKILL)


class CSVLogger:
    def __init__(self, path, rank):
        self.f = open(path, "w", newline="")
        self.w = csv.DictWriter(self.f, ["epoch", "step", "loss"])
        self.w.writeheader()
        self.rank = rank

    def log(self, **row):
        self.w.writerow(row)
        if self.rank == 0:
            print(" ".join(f"{k}={v}" for k, v in row.items()))

    def flush(self):
        self.f.flush()
