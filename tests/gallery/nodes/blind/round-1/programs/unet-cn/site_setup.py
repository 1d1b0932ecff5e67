import os
import signal


def before(rig):
    rig.several_on_one()


def later(rig):
    """Somebody looked at the task of cn02 with a debugger and left it stopped."""
    for host, pid, line in rig.pids("segment.py"):
        env = rig.environ(pid)
        if env.get("SLURMD_NODENAME") == "cn02" and env.get("SLURM_PROCID") == "1" and "srun" not in line.split()[0]:
            os.kill(pid, signal.SIGSTOP)
