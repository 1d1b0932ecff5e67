import os
import signal


def later(rig):
    """The pod on node3 is evicted: everything in it is gone at once."""
    mine = rig.host("node3").pids()
    for host, pid, line in rig.pids("finetune.py"):
        if host.name == "node3":
            os.kill(pid, signal.SIGKILL)
