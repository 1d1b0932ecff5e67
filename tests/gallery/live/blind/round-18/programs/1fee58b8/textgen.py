import json
import os
import random

SYL = "an ber cho del est fim gur hal ist jun kor lem nov ost pir qua rin sel tur vez".split()


def write_corpus(root, files=6, docs=700, seed=9):
    os.makedirs(root, exist_ok=True)
    rng = random.Random(seed)
    words = ["".join(rng.choices(SYL, k=rng.randint(1, 4))) for _ in range(3000)]
    for i in range(files):
        with open(os.path.join(root, f"wiki-{i:02d}.jsonl"), "w") as f:
            for _ in range(docs):
                f.write(json.dumps({"text": " ".join(rng.choices(words, k=rng.randint(250, 400)))}) + "\n")
