"""Lets dynamo exchange its compile-time state over gloo on hosts without accelerators."""
import contextlib

import torch
from torch._dynamo.device_interface import CpuInterface


def install():
    if torch.accelerator.device_count() == 0:
        torch.accelerator.device_count = lambda: 1
        CpuInterface.device = staticmethod(lambda index: contextlib.nullcontext())
