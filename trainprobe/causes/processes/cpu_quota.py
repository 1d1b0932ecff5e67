"""The ranks of a node may use fewer CPUs than they need, or than the other nodes give.

A container or a batch system gives processor time by a quota or a set of CPUs. `os.cpu_count()`
still shows all, so that libraries start as many threads; they are then stopped for most of each
tenth of a second. Loader workers, the gradient hooks and the network's own threads crawl, and every
rank waits for that node.

It is recognised by the quota and the set of CPUs of the process itself, beside the number of ranks
and what the other nodes have.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody

CAUSE = Cause(
    id="cpu-quota",
    title="A node gives the job too few CPUs",
    would_settle=(
        "cat /sys/fs/cgroup/cpu.max (version 1: cpu.cfs_quota_us) of the job's cgroup, and nproc,"
        " on each node"
    ),
    accounts_for=("cpu-oversubscribed",),
    modes=("check",),
    ranks=nobody,
    ready=ReadySigns(
        says=("gives the job too few CPUs", "give the job too few CPUs"),
        checks=("lim.cgcpu", "lim.cpus"),
        values=("cpu_quota", "cpus"),
        admin=("cat /sys/fs/cgroup/cpu.max; systemctl show -p CPUQuotaPerSecUSec slurmd",),
    ),
)
