import argparse, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from checkpointing import StagedCheckpointer

p = argparse.ArgumentParser()
p.add_argument("--save-steps", type=int, default=500)
p.add_argument("--output", default="out")
p.add_argument("--stage", default="stage")


class Omni(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.vision, self.text = torch.nn.Linear(256, 300), torch.nn.Embedding(500, 300)
        self.head = torch.nn.Linear(300, 64)

    def forward(self, v, t):
        return self.head(torch.tanh(self.vision(v) + self.text(t)))


if __name__ == "__main__":
    a = p.parse_args()
    dist.init_process_group("gloo")
    m = DDP(Omni())
    opt = torch.optim.SGD(m.parameters(), 0.01)
    ck = StagedCheckpointer(a.stage, a.output)
    step = 0
    while True:
        step += 1
        out = m(torch.randn(8, 256), torch.randint(0, 500, (8,)))
        loss = out.pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
        if dist.get_rank() == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step % a.save_steps == 0:
            ck.save(step, {"model": m.module.state_dict(), "opt": opt.state_dict(), "step": step})
        time.sleep(0.1)
