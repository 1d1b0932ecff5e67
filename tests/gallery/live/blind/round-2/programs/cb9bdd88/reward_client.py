import json
import subprocess
import sys
import urllib.request


class RewardServer:
    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}/score"
        self.proc = subprocess.Popen(
            [sys.executable, "-u", "reward_server.py", "--port", str(port)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for line in self.proc.stdout:
            print("[reward]", line.rstrip(), flush=True)
            if "listening" in line:
                break

    def score(self, samples):
        req = urllib.request.Request(self.url, data=json.dumps({"samples": samples}).encode(),
                                     headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(req) as r:
            return json.load(r)["scores"]

    def stop(self):
        self.proc.terminate()
