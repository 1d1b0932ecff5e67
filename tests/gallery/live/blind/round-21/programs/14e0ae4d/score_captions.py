"""Stand-alone scorer: reads a predictions file, prints one JSON line per sample, progress on stderr."""
import argparse
import json
import sys
import time


def ngrams(tokens, n):
    return {tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1)}


def score(pred, ref):
    out = {}
    for n in (1, 2, 3):
        p, r = ngrams(pred, n), ngrams(ref, n)
        out[f"p{n}"] = len(p & r) / max(len(p), 1)
        out[f"r{n}"] = len(p & r) / max(len(r), 1)
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("predictions")
    args = parser.parse_args()
    with open(args.predictions) as f:
        rows = [json.loads(line) for line in f]
    for i, row in enumerate(rows):
        result = {"id": row["id"], **score(row["pred"], row["ref"])}
        print(json.dumps(result), flush=i % 50 == 0)
        if i % 100 == 0:
            print(f"scored {i}/{len(rows)}", file=sys.stderr, flush=True)
            time.sleep(0.1)


if __name__ == "__main__":
    main()
