import argparse

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from worker import TrainWorker


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=30)
    args = parser.parse_args()
    ray.init(address="auto", runtime_env={"working_dir": "."})
    group = placement_group([{"CPU": 2}, {"CPU": 2}], strategy="STRICT_SPREAD")
    ray.get(group.ready())
    workers = []
    for rank in range(args.workers):
        where = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank // 2)
        workers.append(TrainWorker.options(num_cpus=1, scheduling_strategy=where).remote(rank, args.workers))
    address, port = ray.get(workers[0].meeting_point.remote())
    print(f"rank 0 meets at {address}:{port}")
    ray.get([w.setup.remote(address, port) for w in workers])
    for epoch in range(args.epochs):
        running = [w.train_epoch.remote(epoch) for w in workers]
        losses = [ray.get(one) for one in running]
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    main()
