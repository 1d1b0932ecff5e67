import random


def load_infos(n=480, seed=1):
    """Frame index of the drives, in recording order (the night drives come first)."""
    rng = random.Random(seed)
    infos = []
    for i in range(n):
        night = i < n // 2
        infos.append({"frame": i, "points": rng.randint(120, 200) if night else rng.randint(1300, 1700),
                      "seed": rng.randrange(1 << 30), "boxes": rng.randint(1, 5)})
    return infos
