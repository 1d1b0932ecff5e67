import argparse, time
import torch
from courier import Courier

ap = argparse.ArgumentParser()
ap.add_argument("--role"); ap.add_argument("--unroll", type=int)
args = ap.parse_args()
mail = Courier()


def net():
    torch.manual_seed(1)
    return torch.nn.Linear(8, 3)


def actor():
    q, v, idx = net(), 0, mail.rank - 2
    while True:
        q.load_state_dict(mail.fetch(f"weights/{v}"))
        obs = torch.randn(args.unroll, 8)
        mail.post(f"unroll/{idx}/{v}", (obs, q(obs).argmax(1), torch.rand(args.unroll)))
        if v % 20 == 0:
            print(f"[actor {idx}] {v} unrolls", flush=True)
        v += 1


def replay():
    """puts the unrolls of all actors together"""
    v = 0
    while True:
        parts = [mail.fetch(f"unroll/{i}/{v}") for i in range(mail.world - 2)]
        mail.post(f"batch/{v}", tuple(torch.cat(x) for x in zip(*parts)))
        v += 1


def learner():
    q = net()
    opt = torch.optim.SGD(q.parameters(), 0.05)
    priorities = torch.ones(200)
    mail.post("weights/0", q.state_dict())
    v = 0
    while True:
        obs, act, rew = mail.fetch(f"batch/{v}")
        td = rew - q(obs).gather(1, act[:, None]).squeeze(1)
        priorities[v] = td.abs().max().item()
        opt.zero_grad(); td.pow(2).mean().backward(); opt.step()
        v += 1
        mail.post(f"weights/{v}", q.state_dict())
        if v % 20 == 0:
            print(f"[learner] step {v} td {td.abs().mean():.3f}", flush=True)
        time.sleep(0.1)


{"actor": actor, "learner": learner, "replay": replay}[args.role]()
