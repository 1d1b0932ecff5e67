import json
import os
import queue
import subprocess
import sys
import tempfile
import threading

from transformers import TrainerCallback

SINK = """
import sys
with open(sys.argv[1], "a") as f:
    for line in sys.stdin:
        f.write(line)
        f.flush()
"""


class Telemetry(TrainerCallback):
    """Sends the logs to a sink process through a thread, so that training never waits for the disk."""

    def __init__(self):
        self.path = os.path.join(tempfile.mkdtemp(prefix="telemetry_"), "events.jsonl")
        self.events = queue.Queue()
        self.sink = subprocess.Popen([sys.executable, "-c", SINK, self.path], stdin=subprocess.PIPE, text=True)
        threading.Thread(target=self._pump, name="telemetry", daemon=True).start()

    def _pump(self):
        while True:
            event = self.events.get()
            self.sink.stdin.write(json.dumps(event) + "\n")
            self.sink.stdin.flush()

    def on_log(self, args, state, control, logs=None, **kwargs):
        self.events.put({"step": state.global_step, **(logs or {})})
        if state.is_world_process_zero:
            print(f"[{state.global_step}] {logs}", flush=True)
