import argparse
import multiprocessing as mp
import socket

TASKS = ["maze-v1", "gridpong-v1", "maze-v1"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def launch_learner(rank, world, port, updates):
    from learner import Learner

    Learner(rank, world, port, TASKS[rank % len(TASKS)]).run(updates)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--learners", type=int, default=3)
    ap.add_argument("--updates", type=int, default=1000)
    args = ap.parse_args()
    mp.set_start_method("spawn")
    port = free_port()
    procs = []
    for rank in range(args.learners):
        p = mp.Process(
            target=launch_learner, args=(rank, args.learners, port, args.updates), name=f"learner-{rank}"
        )
        p.start()
        procs.append(p)
    for p in procs:
        p.join()


if __name__ == "__main__":
    main()
