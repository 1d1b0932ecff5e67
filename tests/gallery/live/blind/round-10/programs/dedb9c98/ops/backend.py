import functools
import os

from torch.utils.cpp_extension import load

_src = os.path.join(os.path.dirname(os.path.abspath(__file__)), "csrc")


@functools.lru_cache(None)
def get_backend():
    return load(
        name="pointset_backend",
        sources=[os.path.join(_src, f) for f in ("voxelize.cpp", "ball_query.cpp", "bindings.cpp")],
        extra_cflags=["-O3", "-std=c++20"],
    )
