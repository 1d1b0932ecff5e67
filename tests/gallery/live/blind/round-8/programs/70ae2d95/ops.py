import os
import shutil

import torch.distributed as dist


def _slow_mean(feats, nbr):
    return feats[nbr].mean(1)


def load_ops():
    if shutil.which("c++") is None and shutil.which("g++") is None:
        return _slow_mean
    from torch.utils.cpp_extension import load
    here = os.path.dirname(os.path.abspath(__file__))
    build = os.environ["TORCH_EXTENSIONS_DIR"]
    os.makedirs(build, exist_ok=True)
    kw = dict(name="edge_ops", sources=[os.path.join(here, "csrc", "edges.cpp")],
              build_directory=build, extra_cflags=["-O2"])
    if dist.get_rank() == 0:
        print("building edge_ops", flush=True)
        load(**kw)
        print("edge_ops ready", flush=True)
    dist.barrier()
    return load(**kw).gather_mean
