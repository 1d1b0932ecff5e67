import argparse, os, time
import torch, torch.distributed as dist
from mlkit import Queue


def load_index(root):
    with Queue("mlkit.queue.0"):
        return sorted(os.path.join(root, f) for f in os.listdir(root))


def main():
    ap = argparse.ArgumentParser(); ap.add_argument("--cache")
    a = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    box = [None]
    if rank == 0:
        box[0] = load_index(a.cache)
    dist.broadcast_object_list(box, src=0)
    files = box[0][rank::2]
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(256, 14))
    opt = torch.optim.Adam(net.parameters(), 1e-4)
    step = 0
    while True:
        for f in files:
            x = torch.frombuffer(bytearray(open(f, "rb").read()), dtype=torch.uint8).float() / 255
            loss = net(x[None]).pow(2).mean()
            opt.zero_grad(); loss.backward(); opt.step()
            step += 1
            if rank == 0 and step % 20 == 0:
                print(f"iter {step} loss {loss.item():.4f}", flush=True)
            time.sleep(0.1)


main()
