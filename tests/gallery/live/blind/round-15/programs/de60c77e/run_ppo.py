import argparse
import socket

if __name__ == "__main__":
    import torch.multiprocessing as mp

    from ppo import learner

    p = argparse.ArgumentParser()
    p.add_argument("--num-learners", type=int, default=2)
    p.add_argument("--num-workers", type=int, default=2)
    p.add_argument("--buffer-size", type=int, default=2048)
    p.add_argument("--num-epoch", type=int, default=8)
    p.add_argument("--target-kl", type=float, default=0.03)
    p.add_argument("--max-updates", type=int, default=1000)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(learner, args=(args, port), nprocs=args.num_learners)
