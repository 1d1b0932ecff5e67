import pickle

import torch
import torch.distributed as dist


def send_pyobj(obj, dst):
    payload = torch.frombuffer(bytearray(pickle.dumps(obj)), dtype=torch.uint8)
    dist.send(torch.tensor([payload.numel()], dtype=torch.long), dst)
    dist.send(payload, dst)


def recv_pyobj(src):
    size = torch.zeros(1, dtype=torch.long)
    dist.recv(size, src)
    payload = torch.empty(int(size.item()), dtype=torch.uint8)
    dist.recv(payload, src)
    return pickle.loads(payload.numpy().tobytes())


def send_tensor(t, dst):
    dist.send(t.detach().contiguous(), dst)


def recv_tensor(shape, src, requires_grad=False):
    t = torch.empty(shape)
    dist.recv(t, src)
    return t.requires_grad_(requires_grad)
