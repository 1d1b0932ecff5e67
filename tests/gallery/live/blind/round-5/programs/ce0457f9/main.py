import argparse, time
import torch, torch.distributed as dist
import torch._dynamo as dynamo
from model import Dit
from sampler import LengthSampler


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--dim", type=int, default=32)
    p.add_argument("--buckets")
    return p.parse_args()


def main():
    a = parse()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    dynamo.config.recompile_limit = 100000
    dynamo.config.accumulated_recompile_limit = 100000
    torch.manual_seed(0)
    net = Dit(a.dim, a.layers)
    fwd = torch.compile(net, backend="aot_eager", dynamic=False)
    opt = torch.optim.AdamW(net.parameters(), 1e-4)
    lengths = LengthSampler(a.buckets, rank)
    step, t = 0, time.time()
    while True:
        x = torch.randn(1, lengths.next(), a.dim)
        loss = fwd(x)
        opt.zero_grad(); loss.backward()
        flat = torch.cat([p.grad.flatten() for p in net.parameters()])
        dist.all_reduce(flat)
        i = 0
        for p in net.parameters():
            p.grad.copy_(flat[i:i + p.numel()].view_as(p) / dist.get_world_size()); i += p.numel()
        opt.step()
        step += 1
        time.sleep(0.05)
        if rank == 0 and step % 5 == 0:
            print(f"step {step} loss {loss.item():.3f} {(time.time() - t) / 5:.2f}s/it", flush=True); t = time.time()


if __name__ == "__main__":
    main()
