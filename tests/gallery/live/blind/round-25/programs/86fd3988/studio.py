import argparse
import subprocess
import sys
import threading
import time


class TrainingJob:
    """A fine-tuning run that was started from the studio."""

    def __init__(self, nproc):
        cmd = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={nproc}", "finetune.py"]
        self.proc = subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
        self.started = time.time()

    def preview(self, events=12):
        seen = 0
        for line in self.proc.stdout:
            print(line[:160].rstrip(), flush=True)
            if line.startswith('{"step"'):
                seen += 1
                if seen >= events:
                    return True
        return False

    def status(self):
        code = self.proc.poll()
        return "running" if code is None else f"finished ({code})"


def heartbeat(job, stop):
    while not stop.wait(20):
        print(f"[studio] job {job.proc.pid} {job.status()} {time.time() - job.started:.0f}s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nproc", type=int, default=2)
    args = parser.parse_args()
    job = TrainingJob(args.nproc)
    stop = threading.Event()
    threading.Thread(target=heartbeat, args=(job, stop), name="heartbeat", daemon=True).start()
    if job.preview():
        print("[studio] training is under way", flush=True)
    code = job.proc.wait()
    stop.set()
    print(f"[studio] exit code {code}", flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
