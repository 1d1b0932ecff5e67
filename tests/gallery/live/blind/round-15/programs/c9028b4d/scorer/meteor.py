import os
import subprocess
import sys
import threading


class Meteor:
    def __init__(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "meteor_lite.py")
        self.meteor_p = subprocess.Popen([sys.executable, path], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lock = threading.Lock()

    def compute_score(self, gts, res):
        assert gts.keys() == res.keys()
        keys = list(gts.keys())
        scores = []
        eval_line = "EVAL"
        with self.lock:
            for k in keys:
                assert len(res[k]) == 1
                eval_line += " ||| {}".format(self._stat(res[k][0], gts[k]))
            self._send(eval_line)
            for _ in keys:
                scores.append(float(self.meteor_p.stdout.readline().strip()))
            score = float(self.meteor_p.stdout.readline().strip())
        return score, scores

    def _send(self, line):
        self.meteor_p.stdin.write((line + "\n").encode())
        self.meteor_p.stdin.flush()

    def _stat(self, hypothesis, references):
        hypothesis = hypothesis.replace("|||", "").replace("  ", " ")
        fields = ["SCORE"] + references + [hypothesis]
        self._send(" ||| ".join(f for f in fields if f))
        return self.meteor_p.stdout.readline().decode().strip()

    def close(self):
        self.meteor_p.stdin.close()
        self.meteor_p.wait()
