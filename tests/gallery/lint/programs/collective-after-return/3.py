import torch.distributed as dist


class Evaluator:
    def __init__(self, rank):
        self.rank = rank

    def run(self, batches, metric):
        for batch in batches:
            if self.rank != 0:
                continue
            value = metric(batch)
            dist.all_reduce(value)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Evaluator(dist.get_rank()).run([], sum)
