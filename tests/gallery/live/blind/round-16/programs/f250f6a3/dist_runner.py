"""Start one process per worker on this host and stream what they print."""
import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
import time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class WorkerRunner:
    def __init__(self, num_workers, cmd, env):
        self.num_workers = num_workers
        self.cmd = cmd
        self.env = env
        self.port = free_port()
        self.procs = []
        self.lock = threading.Lock()

    def _build_env(self, index):
        env = dict(os.environ, **self.env)
        env.update(
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(self.port),
            RANK=str(index),
            LOCAL_RANK=str(index),
            WORLD_SIZE=str(self.num_workers),
        )
        return env

    def _emit(self, index, line):
        with self.lock:
            sys.stdout.write("[worker %d] %s" % (index, line))
            sys.stdout.flush()

    def _stream_logs(self, index, proc):
        while proc.poll() is None:
            for stream in (proc.stdout, proc.stderr):
                line = stream.readline()
                if line:
                    self._emit(index, line)
        for stream in (proc.stdout, proc.stderr):
            for line in stream:
                self._emit(index, line)

    def start(self):
        for index in range(self.num_workers):
            proc = subprocess.Popen(
                [sys.executable] + self.cmd,
                env=self._build_env(index),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                bufsize=1,
            )
            self.procs.append(proc)
            threading.Thread(target=self._stream_logs, args=(index, proc), daemon=True).start()

    def wait(self):
        rc = 0
        while any(p.poll() is None for p in self.procs):
            for i, p in enumerate(self.procs):
                if p.poll() not in (None, 0):
                    self._emit(i, "exited with %d, stopping\n" % p.returncode)
                    rc = p.returncode
                    self.stop()
                    return rc
            time.sleep(0.5)
        return rc

    def stop(self, *_):
        for p in self.procs:
            if p.poll() is None:
                p.terminate()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-workers", type=int, default=2)
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("cmd", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    cmd = args.cmd[1:] if args.cmd and args.cmd[0] == "--" else args.cmd
    env = dict(kv.split("=", 1) for kv in args.env)
    runner = WorkerRunner(args.num_workers, cmd, env)
    signal.signal(signal.SIGTERM, lambda *_: (runner.stop(), sys.exit(143)))
    runner.start()
    sys.exit(runner.wait())


if __name__ == "__main__":
    main()
