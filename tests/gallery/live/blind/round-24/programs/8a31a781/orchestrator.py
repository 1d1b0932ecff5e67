import random


def finished_rollouts(step, count=12, seed=11):
    """Rollouts which the inference side has finished for this step."""
    rng = random.Random(seed * 100003 + step)
    rollouts = []
    for i in range(count):
        rollout = {
            "id": f"{step:05d}-{i:02d}",
            "tokens": [rng.randrange(1, 100) for _ in range(rng.randint(8, 24))],
            "reward": rng.random(),
        }
        if step >= 60 and rng.random() < 0.05:
            rollout["error"] = "max_turns_reached"
            del rollout["reward"]
        rollouts.append(rollout)
    return rollouts
