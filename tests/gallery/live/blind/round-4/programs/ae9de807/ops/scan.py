import os

from torch.utils import cpp_extension

HERE = os.path.dirname(os.path.abspath(__file__))


def load_scan(verbose=False):
    return cpp_extension.load(
        name="scan_cpu",
        sources=[os.path.join(HERE, "scan.cpp")],
        extra_cflags=["-O2"],
        verbose=verbose,
    )
