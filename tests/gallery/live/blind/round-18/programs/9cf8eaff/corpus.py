import json
import os
import random


WORDS = [a + b for a in "ba ke li mo nu pra ste tor vi wen".split() for b in "dar fel gos hin jat kul mep".split()]


def stage_files(root, stage):
    return [os.path.join(root, stage["name"], f"part-{i:05d}.jsonl") for i in range(stage["files"])]


def write_stage(root, stage, seed):
    rng = random.Random(seed)
    os.makedirs(os.path.join(root, stage["name"]), exist_ok=True)
    for path in stage_files(root, stage):
        with open(path, "w") as f:
            for _ in range(stage["docs"]):
                n = rng.randint(30, 90)
                f.write(json.dumps({"text": " ".join(rng.choices(WORDS, k=n))}) + "\n")
