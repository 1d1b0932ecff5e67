import http.client
import json
import os
import re
import subprocess
import sys


class InferenceClient:
    """Starts the inference engine next to the trainer and talks to it over HTTP."""

    def __init__(self, vocab):
        here = os.path.dirname(os.path.abspath(__file__))
        self.proc = subprocess.Popen(
            [sys.executable, "-u", os.path.join(here, "engine.py"), "--vocab", str(vocab)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for line in self.proc.stdout:
            m = re.search(r"listening on port (\d+)", line)
            if m:
                self.conn = http.client.HTTPConnection("127.0.0.1", int(m.group(1)))
                break

    def _post(self, path, body):
        self.conn.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        return json.loads(self.conn.getresponse().read())

    def generate(self, prompts, max_tokens):
        return self._post("/generate", {"prompts": prompts, "max_tokens": max_tokens})["tokens"]

    def update_weights(self, weights):
        return self._post("/update_weights", {"weights": weights})

    def close(self):
        self.proc.terminate()
