import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from learner import Learner

WORLD = 3


def main():
    ray.init(address="auto", runtime_env={"working_dir": "."})
    group = placement_group([{"CPU": 2}, {"CPU": 2}], strategy="STRICT_SPREAD")
    ray.get(group.ready())
    learners = []
    for rank in range(WORLD):
        where = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank % 2)
        learners.append(Learner.options(num_cpus=1, scheduling_strategy=where).remote(rank, WORLD))
    meeting = ray.get(learners[0].meeting.remote())
    print(ray.get([one.run.remote(meeting) for one in learners]))


if __name__ == "__main__":
    main()
