"""Runs one distributed training per learning rate and collects the outcome."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time


def launch(lr, steps, outdir, nproc):
    cmd = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(nproc),
           "train_osft.py", "--lr", str(lr), "--steps", str(steps), "--output", outdir]
    return subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lrs", nargs="+", type=float, default=[1e-3])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--nproc", type=int, default=3)
    args = parser.parse_args()

    results = {}
    for lr in args.lrs:
        outdir = tempfile.mkdtemp(prefix="osft_")
        print(f"launching lr={lr} -> {outdir}", flush=True)
        start = time.time()
        proc = launch(lr, args.steps, outdir, args.nproc)
        proc.wait()
        log = proc.stdout.read()
        with open(os.path.join(outdir, "train.log"), "w") as f:
            f.write(log)
        if proc.returncode != 0:
            print(f"lr={lr} failed with {proc.returncode}:\n{log[-2000:]}", flush=True)
            continue
        with open(os.path.join(outdir, "result.json")) as f:
            results[lr] = json.load(f)
        print(f"lr={lr} done in {time.time() - start:.0f}s: {results[lr]}", flush=True)
    best = min(results, key=lambda k: results[k]["loss"]) if results else None
    print("best lr:", best, flush=True)


if __name__ == "__main__":
    main()
