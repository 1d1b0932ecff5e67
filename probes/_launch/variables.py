"""Variables of the libraries: switches left over, old names, misspelt ones, threads per rank."""

from __future__ import annotations

import difflib
import os
import re
from typing import Dict, List, Tuple

from _launch import names
from _launch import told as shared
from _ready import checking, places

OWN_PREFIXES = re.compile(r"TORCH_NCCL_\w+|TORCH_FR_\w+|NCCL_\w+")
FOREIGN = re.compile(r"NCCL_(?:TESTS|OFI|FASTRAK|GPUDIRECTTCPX|RCCL|SHARP|UCX|PLUGIN|DIR|ROOT|LIB|INCLUDE|VER|TUNER|PROFILER|INSPECTOR|GPU|DEVICE)\w*")
# Told of by the host probe as env.NAME, so only in a file of settings they are told here.
TOLD_BY_HOST = re.compile(
    r"NCCL_(?:(?:P2P|SHM|IB)_DISABLE|ALGO|PROTO|P2P_LEVEL|NET_GDR_LEVEL|BUFFSIZE|NTHREADS|LAUNCH_MODE)|CUDA_(?:LAUNCH_BLOCKING|DEVICE_WAITS\w+|INJECTION64_PATH)|TORCH_DISTRIBUTED_DEBUG"
)


def settings(asked: checking.Asked) -> Dict[str, Tuple[str, str]]:
    """All settings of the libraries: name to (value, where it is set). The environment goes before the files, as in NCCL."""
    found = {name: (value, path) for path in shared.conf_files() for name, value in shared.settings(places.read(asked.root, path)).items()}
    found.update({name: (value, "") for name, value in os.environ.items() if not shared.SECRET.search(name)})
    return found


def leftovers(asked: checking.Asked, told: checking.Told) -> None:
    known: List[str] = []
    for name, (value, where) in sorted(settings(asked).items()):
        pattern, effect = names.DEBUGGING.get(name, ("", ""))
        if pattern and re.match(pattern, value) and (where or not TOLD_BY_HOST.fullmatch(name)):
            known.append(f"{name}={value[:80]} ({where or 'environment'}): {effect}")
    says = "; ".join(known) if known else "No switch is left over that only debugging needs"
    told.say("plan.debugenv", "warn" if known else "ok", f"{says}.", known, fix="take the lines out of the files named, and unset the variables")


def spelling(asked: checking.Asked, told: checking.Told) -> None:
    old, strange = [], []
    for name in sorted(settings(asked)):
        if name in names.OLD:
            old.append((name, names.OLD[name]))
        elif OWN_PREFIXES.fullmatch(name) and name not in names.NCCL and name not in names.TORCH and not FOREIGN.fullmatch(name):
            near = difflib.get_close_matches(name, (*names.NCCL, *names.TORCH), 1, 0.85)
            strange.append(f"{name}{f' (is {near[0]} meant?)' if near else ''}")
    says = ", ".join(f"{name} is now {new}" for name, new in old) or "no old name is used"
    told.say(
        "plan.rename", "warn" if old else "ok", f"Names of variables: {says}.", [name for name, _ in old], fix=" ".join(f"export {new}=…" for _, new in old)
    )
    says = f"unknown to NCCL {names.NCCL_VERSION} and torch {names.TORCH_VERSION}: {', '.join(strange)}" if strange else "all are known"
    told.say("plan.names", "warn" if strange else "ok", f"Variables of NCCL and torch: {says}.", strange, fix="correct the name, or unset it: it has no effect")


def threads(asked: checking.Asked, told: checking.Told) -> None:
    usable = len(os.sched_getaffinity(0))
    by_srun = os.environ.get("SLURM_PROCID") is not None and "TORCHELASTIC_RUN_ID" not in os.environ and "RANK" in os.environ
    if os.environ.get("OMP_NUM_THREADS") or not by_srun or asked.nproc < 2:
        told.say("lim.omp", "ok", f"OMP_NUM_THREADS is {os.environ.get('OMP_NUM_THREADS') or 'not set, and torchrun sets it to 1 for several ranks'}.", usable)
        return
    says = f"OMP_NUM_THREADS is not set, and srun does not set it: {asked.nproc} ranks take {usable} threads each."
    told.say("lim.omp", "warn", says, usable, fix=f"export OMP_NUM_THREADS={max(1, usable // asked.nproc)}")
