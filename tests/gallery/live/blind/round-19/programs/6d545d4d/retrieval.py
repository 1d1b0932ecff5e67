import random


class Gallery:
    """Annotations of the k-NN gallery, kept by the rank that computes the retrieval metric."""

    def __init__(self, size, seed=3):
        rng = random.Random(seed)
        self.items = [
            {
                "id": i,
                "label": i % 50,
                "box": [rng.random(), rng.random(), rng.random(), rng.random()],
                "tags": [f"t{rng.randrange(1000)}", f"s{rng.randrange(1000)}"],
                "meta": {"source": i % 7, "split": "gallery"},
            }
            for i in range(size)
        ]
        self.by_label = {}
        for item in self.items:
            self.by_label.setdefault(item["label"], []).append(item)

    def __len__(self):
        return len(self.items)

    def sample(self, n, rng):
        return [rng.choice(self.items) for _ in range(n)]
