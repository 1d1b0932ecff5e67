import io
import json
import logging
import os
import resource
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
log = logging.getLogger("events")


def open_events(run_dir, rate=12_000):
    proc = subprocess.Popen([sys.executable, os.path.join(HERE, "shipper.py"), os.path.join(run_dir, "events.log"), str(rate)],
                            stdin=subprocess.PIPE)
    handler = logging.StreamHandler(io.TextIOWrapper(proc.stdin, write_through=False))
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    return proc


class Telemetry(threading.Thread):
    def __init__(self, every=0.05):
        super().__init__(daemon=True, name="telemetry")
        self.every = every

    def sample(self):
        use = resource.getrusage(resource.RUSAGE_SELF)
        with open("/proc/self/status") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        return {"utime": use.ru_utime, "stime": use.ru_stime, "minflt": use.ru_minflt, "nvcsw": use.ru_nvcsw, "status": status}

    def run(self):
        while True:
            log.info(json.dumps(self.sample()))
            time.sleep(self.every)
