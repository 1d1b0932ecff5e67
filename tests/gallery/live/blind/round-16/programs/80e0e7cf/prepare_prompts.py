import argparse
import json
import os
import random


def record(rng, idx):
    a, b = rng.randint(2, 90), rng.randint(2, 90)
    op = rng.choice("+-*")
    answer = {"+": a + b, "-": a - b, "*": a * b}[op]
    meta = {"id": idx, "source": rng.choice(["gsm", "numina", "self"]), "level": rng.randint(1, 5)}
    return {"prompt": f"{a} {op} {b} = ?", "answer": str(answer), "meta": meta}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", required=True)
    p.add_argument("--shards", type=int, default=3)
    p.add_argument("--size", type=int, default=24000)
    p.add_argument("--shard-bytes", type=int, default=46000)
    args = p.parse_args()
    os.makedirs(args.out, exist_ok=True)
    rng = random.Random(17)
    for shard in range(args.shards):
        lines = [json.dumps(record(rng, i)) for i in range(shard, args.size, args.shards)]
        text = "\n".join(lines) + "\n"
        path = os.path.join(args.out, f"part-{shard:05d}.jsonl")
        with open(path, "w") as f:
            if shard == 1:
                head = text[: args.shard_bytes]
                tail = text[args.shard_bytes + 64 :]
                f.write(head)
                f.write(tail)
            else:
                f.write(text)
    print(f"wrote {args.shards} prompt shards to {args.out}", flush=True)


if __name__ == "__main__":
    main()
