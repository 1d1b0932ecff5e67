import json
import os
import random

LABELS = ["positive", "neutral", "negative"]
WORDS = [f"tok{i}" for i in range(3000)]


def build(path, shards, per_shard, seed=3):
    os.makedirs(path, exist_ok=True)
    rng = random.Random(seed)
    for s in range(shards):
        fn = os.path.join(path, f"reviews-{s:03d}.jsonl")
        with open(fn, "w") as f:
            for i in range(per_shard):
                rec = {"id": f"{s}-{i}", "text": " ".join(rng.choices(WORDS, k=rng.randint(8, 30)))}
                rec["label"] = rng.choice(LABELS)
                if s == 1 and i == 611:
                    rec["sentiment"] = rec.pop("label")
                f.write(json.dumps(rec) + "\n")


def read_shard(path, s):
    with open(os.path.join(path, f"reviews-{s:03d}.jsonl")) as f:
        return [json.loads(line) for line in f]
