import glob
import os
import random
import string
import time


def make_run_dir(root, name):
    """runs/NAME-DATE-xxxx, the suffix keeps runs of the same minute apart."""
    tag = "".join(random.choices(string.ascii_lowercase, k=4))
    path = os.path.join(root, f"{name}-{time.strftime('%m%d-%H%M')}-{tag}")
    os.makedirs(path, exist_ok=True)
    return path


def last_checkpoint(run_dir):
    found = glob.glob(os.path.join(run_dir, "step_*"))
    if not found:
        return None
    return max(found, key=lambda p: int(p.rsplit("_", 1)[1]))
