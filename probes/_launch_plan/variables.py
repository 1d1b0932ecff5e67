"""Variables of the libraries: switches left over, old names, misspelt ones, threads per rank."""

from __future__ import annotations

import difflib
import os
import re
from typing import Dict, List, Tuple

from _launch_plan import known_variables, shared_settings
from _shared import checks, kernel_files

OWN_PREFIXES = re.compile(r"TORCH_NCCL_\w+|TORCH_FR_\w+|NCCL_\w+")
FOREIGN = re.compile(
    r"NCCL_(?:TESTS|OFI|FASTRAK|GPUDIRECTTCPX|RCCL|SHARP|UCX|PLUGIN|DIR|ROOT|LIB|INCLUDE|VER"
    r"|TUNER|PROFILER|INSPECTOR|GPU|DEVICE)\w*"
)
# The host probe reports these as env.NAME, so here they count only in a settings file.
TOLD_BY_HOST = re.compile(
    r"NCCL_(?:(?:P2P|SHM|IB)_DISABLE|ALGO|PROTO|P2P_LEVEL|NET_GDR_LEVEL|BUFFSIZE|NTHREADS"
    r"|LAUNCH_MODE)|CUDA_(?:LAUNCH_BLOCKING|DEVICE_WAITS\w+|INJECTION64_PATH)"
    r"|TORCH_DISTRIBUTED_DEBUG"
)


def settings(launch: checks.Launch) -> Dict[str, Tuple[str, str]]:
    """All settings: name to (value, origin). The environment overrides files, as in NCCL."""
    found = {
        name: (value, path)
        for path in shared_settings.conf_files()
        for name, value in shared_settings.settings(kernel_files.read(launch.root, path)).items()
    }
    found.update(
        {
            name: (value, "")
            for name, value in os.environ.items()
            if not shared_settings.SECRET.search(name)
        }
    )
    return found


def leftovers(launch: checks.Launch, results: checks.Results) -> None:
    known: List[str] = []
    for name, (value, where) in sorted(settings(launch).items()):
        pattern, effect = known_variables.DEBUGGING.get(name, ("", ""))
        if pattern and re.match(pattern, value) and (where or not TOLD_BY_HOST.fullmatch(name)):
            known.append(f"{name}={value[:80]} ({where or 'environment'}): {effect}")
    sentence = "; ".join(known) if known else "No switch is left over that only debugging needs"
    fix = "take the lines out of the files named, and unset the variables"
    results.add("plan.debugenv", "warn" if known else "ok", f"{sentence}.", known, fix=fix)


def spelling(launch: checks.Launch, results: checks.Results) -> None:
    old, strange = [], []
    for name in sorted(settings(launch)):
        if name in known_variables.OLD:
            old.append((name, known_variables.OLD[name]))
        elif (
            OWN_PREFIXES.fullmatch(name)
            and name not in known_variables.NCCL
            and name not in known_variables.TORCH
            and not FOREIGN.fullmatch(name)
        ):
            near = difflib.get_close_matches(
                name, (*known_variables.NCCL, *known_variables.TORCH), 1, 0.85
            )
            strange.append(f"{name}{f' (is {near[0]} meant?)' if near else ''}")
    sentence = ", ".join(f"{name} is now {new}" for name, new in old) or "no old name is used"
    results.add(
        "plan.rename",
        "warn" if old else "ok",
        f"Names of variables: {sentence}.",
        [name for name, _ in old],
        fix=" ".join(f"export {new}=…" for _, new in old),
    )
    sentence = (
        f"unknown to NCCL {known_variables.NCCL_VERSION} and torch {known_variables.TORCH_VERSION}:"
        f" {', '.join(strange)}"
        if strange
        else "all are known"
    )
    state = "warn" if strange else "ok"
    fix = "correct the name, or unset it: it has no effect"
    results.add("plan.names", state, f"Variables of NCCL and torch: {sentence}.", strange, fix=fix)


def threads(launch: checks.Launch, results: checks.Results) -> None:
    usable = len(os.sched_getaffinity(0))
    by_srun = (
        os.environ.get("SLURM_PROCID") is not None
        and "TORCHELASTIC_RUN_ID" not in os.environ
        and "RANK" in os.environ
    )
    if os.environ.get("OMP_NUM_THREADS") or not by_srun or launch.nproc < 2:
        results.add(
            "lim.omp",
            "ok",
            "OMP_NUM_THREADS is"
            f" {os.environ.get('OMP_NUM_THREADS') or 'not set, and torchrun sets it to 1 for several ranks'}.",  # noqa: E501
            usable,
        )
        return
    sentence = (
        f"OMP_NUM_THREADS is not set, and srun does not set it: {launch.nproc} ranks take {usable}"
        " threads each."
    )
    fix = f"export OMP_NUM_THREADS={max(1, usable // launch.nproc)}"
    results.add("lim.omp", "warn", sentence, usable, fix=fix)
