import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def wer(refs, hyps, workdir):
    os.makedirs(workdir, exist_ok=True)
    paths = {n: os.path.join(workdir, n) for n in ("ref.trn", "hyp.trn", "wer.txt")}
    for name, table in (("ref.trn", refs), ("hyp.trn", hyps)):
        with open(paths[name], "w") as f:
            for utt, text in table.items():
                f.write(f"{utt} {text}\n")
    proc = subprocess.Popen(
        [sys.executable, os.path.join(HERE, "local", "score_sclite.py"),
         paths["ref.trn"], paths["hyp.trn"], paths["wer.txt"]],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    code = proc.wait()
    if code:
        raise RuntimeError(f"scoring failed ({code}): {proc.stdout.read().decode()[-500:]}")
    return float(open(paths["wer.txt"]).read())
