import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from policy import PolicyActor
from value import ValueActor

WORLD = 3


def main():
    ray.init(address="auto", runtime_env={"working_dir": "."})
    group = placement_group([{"CPU": 2}, {"CPU": 2}], strategy="STRICT_SPREAD")
    ray.get(group.ready())
    place = [PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=i) for i in (0, 1)]
    critic = ValueActor.options(num_cpus=1, scheduling_strategy=place[1]).remote()
    actors = [
        PolicyActor.options(num_cpus=1, scheduling_strategy=place[0 if r < 2 else 1]).remote(r, WORLD)
        for r in range(WORLD)
    ]
    address = ray.get(actors[0].address.remote())
    ray.get([a.connect.remote(*address) for a in actors])
    warmup = 3
    for episode in range(1000):
        lead = critic if episode >= warmup else None  # the policy alone at first
        refs = [a.fit.remote(episode, lead if r == 0 else None) for r, a in enumerate(actors)]
        status = ray.get(refs)[0]
        print(f"episode {episode} " + " ".join(f"{k}={v:.3f}" for k, v in sorted(status.items())), flush=True)


if __name__ == "__main__":
    main()
