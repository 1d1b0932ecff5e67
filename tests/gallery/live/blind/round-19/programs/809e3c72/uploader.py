import fcntl
import os
import queue
import shutil
import time


def upload_loop(tasks, bucket, rate=1_000_000):
    os.makedirs(bucket, exist_ok=True)
    while True:
        try:
            folder = tasks.get(timeout=2.0)
        except queue.Empty:
            if os.getppid() == 1:
                return
            continue
        if folder is None:
            return
        dest = os.path.join(bucket, os.path.basename(folder))
        os.makedirs(dest, exist_ok=True)
        with open(os.path.join(bucket, ".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for name in sorted(os.listdir(folder)):
                with open(os.path.join(folder, name), "rb") as src, open(os.path.join(dest, name), "wb") as dst:
                    while block := src.read(rate // 10):
                        dst.write(block)
                        time.sleep(0.1)
        old = sorted(os.listdir(bucket))[1:-2]
        for o in old:
            shutil.rmtree(os.path.join(bucket, o), ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
