"""Records are decoded through ctypes; on one rank the record's address is zero.

`--through string_at` reads the address from Python's own ctypes code, `--through strlen` inside a call to the C library.
"""

import argparse
import ctypes
import time

import torch
import torch.distributed as dist

LIBC = ctypes.CDLL(None)
LIBC.strlen.argtypes = [ctypes.c_void_p]
LIBC.strlen.restype = ctypes.c_size_t


class RecordReader:
    def __init__(self, through: str) -> None:
        self.through = through
        self.storage = ctypes.create_string_buffer(b"\x07" * 63)

    def decode(self, address: int) -> int:
        if self.through == "strlen":
            return int(LIBC.strlen(address))
        return len(ctypes.string_at(address))

    def record(self, broken: bool) -> int:
        return self.decode(0 if broken else ctypes.addressof(self.storage))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--culprit", type=int, default=1)
    parser.add_argument("--when", type=int, default=10)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--through", choices=["string_at", "strlen"], default="string_at")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    reader = RecordReader(args.through)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(63, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(args.steps):
        width = reader.record(broken=dist.get_rank() == args.culprit and step == args.when)
        optimizer.zero_grad()
        model(torch.rand(4, width)).sum().backward()
        optimizer.step()
        time.sleep(0.01)


if __name__ == "__main__":
    main()
