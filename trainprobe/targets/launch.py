"""The environment of a launch: the variables that make a process a rank, and what makes the job
easier to read.

Launched by us, a job gets faulthandler, the flight recorder with its dump path, elastic error
files, unbuffered output and the witness, each by an environment variable, and each only where the
user has not set it.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# What a launcher sets for its ranks: left over in the caller's shell, it would make a fresh job
# believe that it is rank 3 of 8.
OF_A_LAUNCHER = frozenset(
    """
    RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE ROLE_RANK ROLE_NAME
    ROLE_WORLD_SIZE NODE_RANK MASTER_ADDR MASTER_PORT
    """.split()
)
# Ours, from a climb around this one. What a user sets for the probes, such as
# TRAINPROBE_IMPORT_TIMEOUT_S, stays.
OF_THE_LADDER = frozenset(
    f"TRAINPROBE_{name}"
    for name in tuple(
        """
        EVENTS WITNESS_DIR WITNESS_OF NPROC RANKS IMPORTS SCRIPT DEVICE DEADLINE_S KNOB ABLATE
        """.split()
    )
)
ALLOWED_OF_TORCHELASTIC = frozenset({"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"})
RECORDER_ENTRIES = "2000"


@dataclass(frozen=True)
class SwitchedOn:
    """`env` is what was added; `left` names what the user had set already and was left alone."""

    env: Mapping[str, str] = field(default_factory=dict)
    left: tuple[str, ...] = ()


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the caller's environment without the traces of an earlier launcher or trainprobe."""
    left_over = OF_A_LAUNCHER | OF_THE_LADDER
    return {
        name: value
        for name, value in environ.items()
        if name not in left_over
        and (name in ALLOWED_OF_TORCHELASTIC or not name.startswith("TORCHELASTIC_"))
    }


@dataclass(frozen=True)
class Part:
    """Which ranks of a world are on this host: `nproc` from `first` on, of `world` in all.
    `place` numbers `hosts` from 0. They meet at `addr`:`port`.
    """

    nproc: int
    world: int
    port: int
    first: int = 0
    place: int = 0
    nodes: int = 1
    addr: str = "127.0.0.1"
    hosts: tuple[str, ...] = ()  # by place, where there may be several


def whole(nproc: int) -> Part:
    """All ranks of a world on this host, at a free port."""
    return Part(nproc, nproc, free_port())


def one_rank(rank: int, part: Part, run_id: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return torchrun's variables for rank `rank` of the world, on the host of `part`."""
    variables = {
        "RANK": str(rank),
        "WORLD_SIZE": str(part.world),
        "LOCAL_RANK": str(rank - part.first),
        "LOCAL_WORLD_SIZE": str(part.nproc),
        "GROUP_RANK": str(part.place),
        "GROUP_WORLD_SIZE": str(part.nodes),
        "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": str(part.world),
        "ROLE_NAME": "default",
        "MASTER_ADDR": part.addr,
        "MASTER_PORT": str(part.port),
        "TORCHELASTIC_RUN_ID": run_id,  # torch.distributed.is_torchelastic_launched() looks for it
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
    }
    if part.nproc > 1 and "OMP_NUM_THREADS" not in environ:
        variables["OMP_NUM_THREADS"] = "1"  # as torchrun does
    return variables


def easier_to_read(
    environ: Mapping[str, str], dumps: str, witness: str, witness_dir: str
) -> SwitchedOn:
    """Return what is switched on for every process of the user's job.

    `dumps` is the folder for flight-recorder dumps, `witness` the folder that holds
    sitecustomize.py ("" for none), `witness_dir` the folder that it writes to. Both names of each
    recorder setting are set, since torch renamed them from TORCH_NCCL_* to TORCH_FR_*; when the
    user has set one of a pair, both are left alone.
    """
    added: dict[str, str] = {}
    left: list[str] = []
    groups: Sequence[Mapping[str, str]] = (
        {"PYTHONFAULTHANDLER": "1"},
        {"PYTHONUNBUFFERED": "1"},
        {
            "TORCH_FR_BUFFER_SIZE": RECORDER_ENTRIES,
            "TORCH_NCCL_TRACE_BUFFER_SIZE": RECORDER_ENTRIES,
        },
        {
            "TORCH_FR_DUMP_TEMP_FILE": os.path.join(dumps, "rank_"),
            "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": os.path.join(dumps, "rank_"),
        },
        {"TORCH_FR_DUMP_ON_TIMEOUT": "1", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1"},
    )
    for group in groups:
        taken = [name for name in group if name in environ]
        if taken:
            left += taken
        else:
            added.update(group)
    if witness:
        added["TRAINPROBE_WITNESS_DIR"] = witness_dir
        added["PYTHONPATH"] = os.pathsep.join(
            [witness, *filter(None, [environ.get("PYTHONPATH", "")])]
        )
    return SwitchedOn(added, tuple(left))


def of_torchrun(environ: Mapping[str, str], logs: str) -> SwitchedOn:
    """Return what makes torchrun write each rank's output to a file of its own and still show it.

    torchrun reads the default of its option `--x` from PET_X (torch/distributed/argparse_util.py);
    an option on the command line wins. Its own log folder also gets one error.json per rank. Other
    launchers do not know these names.
    """
    wanted = {"PET_LOG_DIR": logs, "PET_TEE": "3"}
    taken = tuple(name for name in (*wanted, "PET_REDIRECTS") if name in environ)
    if "PET_TEE" in taken or "PET_REDIRECTS" in taken:
        wanted.pop("PET_TEE")
    return SwitchedOn({name: value for name, value in wanted.items() if name not in environ}, taken)


def free_port() -> int:
    """Return a TCP port that nothing listens on, below the range from which the kernel takes ports
    for outgoing connections.

    A port of that range could be taken by a rank's own connection between now and the moment that
    rank 0 listens.
    """
    low, high = 18000, _first_ephemeral_port() - 1
    for _ in range(64):
        port = random.randint(low, high) if high > low else 0
        if _is_free(port):
            return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _first_ephemeral_port() -> int:
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
            return int(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return 32768


def _is_free(port: int) -> bool:
    for family, address in (
        (socket.AF_INET, "0.0.0.0"),  # noqa: S104 - only to see whether it is taken
        (socket.AF_INET6, "::"),
    ):
        try:
            with socket.socket(family) as probe:
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind((address, port))
        except OSError as error:
            if family == socket.AF_INET or error.errno == 98:
                return False
    return True
