import argparse
import os
import subprocess
import sys
import time


class Runner:
    def __init__(self, nproc, port, extra):
        self.nproc, self.port, self.extra = nproc, port, extra
        self.procs = []

    def start(self):
        for rank in range(self.nproc):
            env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(self.nproc),
                       MASTER_ADDR="127.0.0.1", MASTER_PORT=str(self.port))
            self.procs.append(subprocess.Popen(
                [sys.executable, "-u", "sft.py", *self.extra], env=env,
                stdout=open(f"stdout_{rank}.log", "w"), stderr=subprocess.PIPE, text=True))
            print(f"started worker {rank} pid={self.procs[-1].pid}")

    def monitor(self, interval=5):
        while any(p.poll() is None for p in self.procs):
            for rank, p in enumerate(self.procs):
                if p.poll() not in (None, 0):
                    print(f"worker {rank} failed:\n{p.stderr.read()[-4000:]}")
                    self.stop()
                    return 1
            time.sleep(interval)
        return 0

    def stop(self):
        for p in self.procs:
            if p.poll() is None:
                p.terminate()


if __name__ == "__main__":
    argv, extra = sys.argv[1:], []
    if "--" in argv:
        i = argv.index("--")
        argv, extra = argv[:i], argv[i + 1:]
    ap = argparse.ArgumentParser()
    ap.add_argument("--nproc", type=int, default=2)
    ap.add_argument("--port", type=int, default=29500)
    a = ap.parse_args(argv)
    r = Runner(a.nproc, a.port, extra)
    r.start()
    sys.exit(r.monitor())
