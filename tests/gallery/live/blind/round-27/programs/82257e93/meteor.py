import os
import subprocess
import sys
import threading


class Meteor:
    def __init__(self):
        self.meteor_cmd = [sys.executable, "-B", "scorer_main.py"]
        self.meteor_p = subprocess.Popen(
            self.meteor_cmd,
            cwd=os.path.dirname(os.path.abspath(__file__)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.lock = threading.Lock()

    def compute_score(self, gts, res):
        assert len(gts) == len(res)
        scores = []
        with self.lock:
            for reference, hypothesis in zip(gts, res):
                self.meteor_p.stdin.write(f"SCORE ||| {reference} ||| {hypothesis}\n")
                self.meteor_p.stdin.flush()
                scores.append(float(self.meteor_p.stdout.readline().strip()))
        return sum(scores) / len(scores), scores
