"""A limit of address space, or giant thread stacks, makes allocation fail while memory is free.

`ulimit -v` or a scheduler's vmem limit counts reserved addresses, not used memory. CUDA reserves
hundreds of gigabytes of them, and each thread reserves a stack. Then `pthread_create`, `mmap` or
`malloc` fail: "std::bad_alloc", MemoryError, "failed to map segment". The number of mappings of a
process is limited too (`vm.max_map_count`, 65530 by default), and each tensor that a loader worker
shares is one.

It is recognised by those words together with the host check of the limit. Without a limit that was
found, only a mapping that the kernel refused says something by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import fixes, short, size
from trainprobe.causes.processes.process_limit import HUGE, reported_limit
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import checked, first_to_fail, quote, statement
from trainprobe.signatures.messages import message
from trainprobe.stacks.frames import Frame

SEGMENT = r"failed to map segment from shared object"
# ENOMEM of mmap(2): no addresses or too many mappings. A full /dev/shm says ENOSPC or SIGBUS.
MAPPING = r"unable to mmap\b.{0,200}Cannot allocate memory"
UNLIMITED = 2**62
WORDING = message("address-space-limit")
CHECKS = ("lim.as", "lim.stack")
NUMBERS = (  # a fork that lacks memory says ENOMEM
    r"fork: (?:retry: )?Resource temporarily unavailable|pids controller"
)


def _shares(frames: Sequence[Frame]) -> bool:
    """Whether what failed takes over what another process has put into shared memory."""
    return any("multiprocessing/" in frame.file for frame in frames)


def _weigh(scene: Scene) -> Weighings:
    found = statement(scene, WORDING)
    limits = scene.checks(*CHECKS)
    given, reported = scene.given("limit.as_bytes"), reported_limit(scene)
    shown = next(iter(scene.events("address-space-limit")), None)
    if found is not None and given is None and shown is not None:
        says = f"The output names a limit of addresses: {short(shown.line, 100)}"
        yield weighing(26, "environment-and-limits", says, shown)
        yield from first_to_fail(scene)
    if (
        found is not None
        and given is not None
        and given.number is not None
        and 0 < given.number < UNLIMITED
    ):
        says = f"The address space is limited to {size(given.number)}"
        yield weighing(26, "environment-and-limits", says, given)
        yield quote(10, "Allocation fails while that limit holds", found)
        yield from first_to_fail(scene)
    elif given is not None and given.value == "unlimited":
        yield weighing(-26, "environment-and-limits", "The address space is not limited", given)
    elif (
        found is not None
        and reported is not None
        and not 0 <= reported[1] < HUGE
        and not limits
        and statement(scene, NUMBERS) is None
    ):
        # Threads are refused though their number is not limited: addresses for stacks, or the pids
        # of a container.
        number = reported[1] if reported[1] >= 0 else "any number"
        says = f"Threads cannot be started though {number} may run"
        yield weighing(13, "suspects-log", says, found.fact, reported[0])
    segment = statement(scene, SEGMENT)
    if segment is not None and not limits and given is None:
        yield quote(13, "A library could not be mapped", segment)
        yield from first_to_fail(scene)
    mapping = statement(scene, MAPPING)
    if mapping is not None and not limits:
        yield quote(13, "The kernel refused a mapping of memory that is shared", mapping)
        raised = scene.origin
        if mapping.origin and raised is not None and _shares(raised.frames[-4:]):
            says = f"It was to map a tensor that another process shares: {raised.frames[-1].where}"
            yield weighing(3, "suspects-stack", says, raised)
        yield from first_to_fail(scene)
    yield from checked(scene, *CHECKS, corroborates=found is not None)
    if found is not None and limits:
        # The words alone belong to memory that ran out; beside a limit of addresses they belong
        # here.
        points = 26 if any(check.status == "fail" for check in limits) else 13
        yield quote(points, "Allocation fails while that limit holds", found)
        yield from first_to_fail(scene)
    unlimited = [check for check in scene.checks("lim.as", bad_only=False) if check.status == "ok"]
    if unlimited and not limits:
        yield weighing(-26, "environment-and-limits", unlimited[0].says.rstrip("."), *unlimited)


def _summary(scene: Scene) -> str:
    check, found = scene.failed_check(*CHECKS), statement(scene, WORDING)
    given = scene.given("limit.as_bytes")
    mapping = statement(scene, MAPPING)
    if mapping is not None and check is None and given is None:
        return (
            "The kernel refused a mapping, as where a process has too many of them or no addresses"
            f" left: {short(mapping.text, 100)}"
        )
    limit = check.says.rstrip(".") if check is not None else "The address space is limited"
    limit += (
        f" to {size(given.number)}" if check is None and given is not None and given.number else ""
    )
    return (
        f"{limit}, so allocation fails while memory is"
        f" free{f': {short(found.text, 100).rstrip(chr(58))}' if found else ''}"
    )


CAUSE = Cause(
    id="address-space-limit",
    title="A limit of address space is in the way",
    weigh=_weigh,
    summary=_summary,
    fixes=fixes("""
        Lift the limit
            ulimit -v unlimited; ulimit -s 8192   (in the script that starts the job)
            verify: ulimit -a | grep -E 'virtual|stack'
            for a mapping that was refused: sysctl vm.max_map_count; wc -l /proc/<PID>/maps
        [admin] Ask the scheduler for memory, not for vmem
            sbatch --mem=… ; no h_vmem or pvmem limit in the queue
    """),
    ranks=nobody,
    would_settle="ulimit -v and ulimit -s in the job itself",
    refines="user-exception",
    accounts_for=("import-failure",),
    wording=WORDING,
    ready=ReadySigns(
        says=("limits the address space", "limit the address space"),
        checks=("lim.as", "lim.stack"),
        values=("limit.as", "limit.stack"),
    ),
)
