import argparse

from torch.distributed import all_gather_object, broadcast, init_process_group


class Runner:
    def __init__(self, args):
        self.args = args
        self.master = args.local_rank in (-1, 0)

    def share(self, tensor):
        if not self.master:
            return tensor.sum()
        else:
            broadcast(tensor, src=0)
            return tensor

    def gather(self, objects):
        out = [None] * 4
        all_gather_object(out, objects)
        return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=-1)
    args = parser.parse_args()
    init_process_group("gloo")
    Runner(args).gather([1])
