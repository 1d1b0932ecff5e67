import subprocess
import sys
import threading
import time

CODE = """
import sys, time
n = int(sys.argv[1])
acc = 0
end = time.time() + n
while time.time() < end:
    acc += sum(i * i for i in range(20000))
    time.sleep(0.2)
print('export ok')
"""


def run_exporter(seconds):
    """Converts the snapshot with an external tool and waits for it."""
    r = subprocess.run([sys.executable, "-c", CODE, str(seconds)], capture_output=True, text=True)
    return r.stdout.strip()


class SystemStats:
    def __init__(self, period=25.0):
        self.period, self.samples = period, []
        self._stop = threading.Event()
        self._t = threading.Thread(target=self._loop, name="system-stats", daemon=True)

    def start(self):
        self._t.start()
        return self

    def _loop(self):
        while not self._stop.wait(self.period):
            with open("/proc/self/statm") as f:
                self.samples.append(int(f.read().split()[1]))

    def close(self):
        self._stop.set()
        self._t.join()
