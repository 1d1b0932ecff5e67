import torch.distributed as dist
from comm import get_rank, synchronize


def export(model, path):
    me = get_rank()
    if me:
        return None
    model.save_pretrained(path)
    synchronize()
    return path


dist.init_process_group("gloo")
