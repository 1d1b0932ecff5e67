"""Starts a training job for the web page and follows its progress file."""
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


class Runner:
    def __init__(self, nproc, port, extra):
        self.nproc, self.port, self.extra = nproc, port, extra
        self.procs = []
        self.progress = os.path.join(HERE, "progress.json")

    def start(self):
        for r in range(self.nproc):
            env = dict(os.environ, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE=str(self.nproc),
                       MASTER_ADDR="127.0.0.1", MASTER_PORT=str(self.port))
            self.procs.append(subprocess.Popen([sys.executable, os.path.join(HERE, "finetune.py"), *self.extra],
                                               env=env, cwd=HERE, stderr=subprocess.PIPE, text=True))

    def state(self):
        try:
            with open(self.progress) as f:
                return json.load(f)
        except (OSError, ValueError):
            return {}

    def watch(self):
        while any(p.poll() is None for p in self.procs):
            s = self.state()
            if s:
                print(f"progress {s['step']}/{s['total']} loss {s['loss']:.3f}", flush=True)
            time.sleep(2)
        for r, p in enumerate(self.procs):
            err = p.stderr.read()
            if p.returncode:
                print(f"rank {r} failed with {p.returncode}:\n{err[-2000:]}", flush=True)


if __name__ == "__main__":
    runner = Runner(nproc=2, port=29627, extra=sys.argv[1:])
    runner.start()
    runner.watch()
