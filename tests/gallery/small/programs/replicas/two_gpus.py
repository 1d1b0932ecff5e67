"""A stand-in at the boundary of torch: a machine with two GPUs, as far as nn.DataParallel asks for them.

The split, the copies and the joining of results, which need CUDA, are done here; the threads and what they say of a failure are torch's own.
"""

import contextlib
import os
import sys
from collections import OrderedDict
from types import SimpleNamespace

import torch

data_parallel = sys.modules["torch.nn.parallel.data_parallel"]
VISIBLE = [number for number in os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",") if number]


class Stream(contextlib.nullcontext):
    pass


def replicate(network, devices, detach=False):
    """As torch.nn.parallel.replicate: copies whose parameters are plain tensors."""
    modules = list(network.modules())
    place = {module: number for number, module in enumerate(modules)}
    copies = [[module._replicate_for_data_parallel() for module in modules] for _ in devices]
    for copied in copies:
        for module, copy in zip(modules, copied):
            copy._former_parameters = OrderedDict()
            for name, child in module._modules.items():
                copy._modules[name] = None if child is None else copied[place[child]]
                setattr(copy, name, copy._modules[name])
            for name, parameter in module._parameters.items():
                tensor = None if parameter is None else parameter.detach() if detach else parameter * 1
                setattr(copy, name, tensor)
                copy._former_parameters[name] = tensor
    return [copied[0] for copied in copies]


def scatter(self, inputs, kwargs, devices):
    parts = list(zip(*(one.chunk(len(devices)) for one in inputs)))
    return parts, [kwargs] * len(parts)


def plug_in():
    torch.cuda.device_count = lambda: len(VISIBLE)
    data_parallel._get_available_device_type = lambda: "cuda"
    data_parallel._get_all_device_indices = lambda: list(range(len(VISIBLE)))
    data_parallel._check_balance = lambda devices: None
    data_parallel.replicate = replicate
    data_parallel.gather = lambda outputs, device, dim=0: torch.cat(outputs, dim)
    data_parallel.DataParallel.scatter = scatter
    original = data_parallel.DataParallel.__init__

    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self.src_device_obj = torch.device("cpu")

    data_parallel.DataParallel.__init__ = init
    torch.accelerator.current_stream = lambda device=None: Stream()
    torch.accelerator.is_available = lambda: True
    torch.accelerator.current_accelerator = lambda: SimpleNamespace(type="cpu")
    torch.accelerator.device_index = lambda device: contextlib.nullcontext()


plug_in()
