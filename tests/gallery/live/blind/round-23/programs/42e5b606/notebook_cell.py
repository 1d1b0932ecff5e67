import os
import tempfile

from accelerate import debug_launcher


def training_function(scratch):
    from training import run
    run(scratch)


if __name__ == "__main__":
    scratch = tempfile.mkdtemp(prefix="nb-")
    debug_launcher(training_function, args=(scratch,), num_processes=3)
