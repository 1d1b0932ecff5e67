import json
import random
import sys

WORDS = ["".join(random.Random(k).choices("etaoinshrdlucmfwypvbgk", k=random.Random(k + 1).randrange(2, 11))) for k in range(6000)]


def main(root, shards=4, docs=900):
    for s in range(shards):
        rng = random.Random(100 + s)
        with open(f"{root}/part-{s:05d}.jsonl", "w") as f:
            for _ in range(docs):
                k = rng.randrange(240, 380)
                f.write(json.dumps({"text": " ".join(WORDS[int(rng.paretovariate(0.6)) % 6000] for _ in range(k))}) + "\n")
    print(f"wrote {shards} parts of {docs} documents to {root}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
