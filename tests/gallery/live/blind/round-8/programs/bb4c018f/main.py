import os
import time

import torch

from exchange import RolloutBox, WeightBoard, connect

DIM, ARMS = 12, 6


def make_net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(DIM, 64), torch.nn.ReLU(), torch.nn.Linear(64, ARMS))


def play(net, truth, gen, count):
    with torch.no_grad():
        ctx = torch.randn(count, DIM, generator=gen)
        act = torch.multinomial(torch.softmax(net(ctx), -1), 1, generator=gen)[:, 0]
        reward = (ctx @ truth).gather(1, act[:, None])[:, 0]
    return {"ctx": ctx, "act": act, "reward": reward}


def benchmark(net, truth, gen, seconds):
    end, total, n = time.time() + seconds, 0.0, 0
    while time.time() < end:
        total += play(net, truth, gen, 2048)["reward"].mean().item()
        n += 1
    return total / n


def learner(board, box, workers):
    net = make_net()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    truth = torch.randn(DIM, ARMS, generator=torch.Generator().manual_seed(9))
    gen = torch.Generator().manual_seed(77)
    t0 = time.time()
    for version in range(1, 100000):
        board.publish(version, net.state_dict())
        parts = box.take(workers, version)
        batch = {k: torch.cat([p[k] for p in parts]) for k in parts[0]}
        adv = batch["reward"] - batch["reward"].mean()
        logp = torch.log_softmax(net(batch["ctx"]), -1).gather(1, batch["act"][:, None])[:, 0]
        loss = -(logp * adv).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if version % 20 == 0:
            print(f"[learner] version {version} reward {batch['reward'].mean():.3f} {time.time() - t0:.0f}s", flush=True)
        if version % 100 == 0:
            print(f"[learner] benchmark {benchmark(net, truth, gen, 14):.3f}", flush=True)


def worker(rank, board, box):
    net = make_net()
    truth = torch.randn(DIM, ARMS, generator=torch.Generator().manual_seed(9))
    gen = torch.Generator().manual_seed(rank)
    version = 0
    while True:
        version, state = board.wait_newer(version)
        net.load_state_dict(state)
        rounds = int(torch.randint(3, 30, (1,), generator=gen))
        parts = [play(net, truth, gen, 512) for _ in range(rounds)]
        box.put(rank, version, {k: torch.cat([p[k] for p in parts])[-2048:] for k in parts[0]})
        if version % 100 == 0:
            print(f"[worker {rank}] version {version} rounds {rounds}", flush=True)


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    store = connect(os.environ["MASTER_ADDR"], int(os.environ["STORE_PORT"]), rank)
    board, box = WeightBoard(store), RolloutBox(store)
    if rank == 0:
        learner(board, box, range(1, world))
    else:
        worker(rank, board, box)


if __name__ == "__main__":
    main()
