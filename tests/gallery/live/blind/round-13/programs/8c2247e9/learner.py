import argparse
import queue
import signal
import threading
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from actor import ACT, OBS, Corridor, actor_main, make_policy


class Stats:
    def __init__(self, period):
        self.dump = False
        signal.signal(signal.SIGALRM, self._tick)
        signal.setitimer(signal.ITIMER_REAL, period, period)

    def _tick(self, signum, frame):
        self.dump = True


def heartbeat(state, path):
    while True:
        with open(path, "w") as f:
            f.write(f"{state['update']} {time.time():.0f}\n")
        time.sleep(5)


def next_batch(q, actor):
    waited = 0
    while True:
        try:
            return q.get(timeout=0.2)
        except queue.Empty:
            waited += 1
            if not actor.is_alive():
                raise RuntimeError(f"actor exited with {actor.exitcode}")


def evaluate(model, episodes=64, steps=150):
    env, total = Corridor(episodes, 99), 0.0
    with torch.no_grad():
        for _ in range(steps):
            r, _ = env.step(model(env.obs())[:, :ACT].argmax(1))
            total += r.mean().item()
    t = torch.tensor(total / steps)
    dist.all_reduce(t)
    return t.item() / dist.get_world_size()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--updates", type=int, default=1000)
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--minibatch", type=int, default=256)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = make_policy()
    ddp = DDP(net)
    opt = torch.optim.Adam(ddp.parameters(), lr=3e-4)

    ctx = mp.get_context("spawn")
    shared = make_policy()
    shared.share_memory()
    shared.load_state_dict(net.state_dict())
    version, stop, q = ctx.Value("l", 0), ctx.Event(), ctx.Queue(maxsize=2)
    actor = ctx.Process(target=actor_main, args=(rank + 1, shared, version, q, stop, 64, 16), daemon=True)
    actor.start()
    state = {"update": 0}
    threading.Thread(target=heartbeat, args=(state, f"heartbeat.{rank}"), daemon=True).start()
    stats = Stats(10.0)

    for update in range(args.updates):
        state["update"] = update
        ver, (o, a, lp, r, d) = next_batch(q, actor)
        o, a, lp, r, d = map(torch.as_tensor, (o, a, lp, r, d))
        with torch.no_grad():
            v = net(o)[..., ACT]
            ret, acc = torch.zeros_like(r), v[-1]
            for t in reversed(range(len(r))):
                acc = r[t] + 0.97 * acc * (1 - d[t])
                ret[t] = acc
            adv = ret - v
            adv = (adv - adv.mean()) / (adv.std() + 1e-6)
        flat = [x.flatten(0, 1) for x in (o, a, lp, ret, adv)]
        for _ in range(args.epochs):
            for idx in torch.randperm(len(flat[0])).split(args.minibatch):
                fo, fa, flp, fret, fadv = (x[idx] for x in flat)
                out = ddp(fo)
                cat = torch.distributions.Categorical(logits=out[:, :ACT])
                ratio = (cat.log_prob(fa) - flp).exp()
                pg = -torch.min(ratio * fadv, ratio.clamp(0.8, 1.2) * fadv).mean()
                loss = pg + 0.5 * (out[:, ACT] - fret).pow(2).mean() - 0.01 * cat.entropy().mean()
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(ddp.parameters(), 0.5)
                opt.step()
        shared.load_state_dict(net.state_dict())
        version.value = update + 1
        if update % 50 == 49:
            score = evaluate(net)
            if rank == 0:
                torch.save(net.state_dict(), "policy.pt")
                print(f"update {update + 1} eval {score:.3f}", flush=True)
        if stats.dump:
            stats.dump = False
            print(f"[{rank}] update {update} loss {loss.item():.4f} lag {update - ver} return {ret.mean():.2f}",
                  flush=True)
    stop.set()
    actor.join()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
