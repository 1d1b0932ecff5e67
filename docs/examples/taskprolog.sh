#!/bin/sh
# TaskProlog=/etc/slurm/trainprobe-taskprolog.sh   (slurm.conf; as the job's user, before each task; only the first task of a node looks)
# SLURM reads stdout: `print …` goes to the job's output, `export NAME=value` to the task's environment. trainprobe writes nothing else there.
# A code other than 0 ends the task, so none is passed on: the user reads what is wrong and decides.
TRAINPROBE=/opt/trainprobe/bin/trainprobe # on the node's own disk

timeout --kill-after=2 30 "$TRAINPROBE" ready --slot taskprolog --quiet </dev/null 2>/dev/null
exit 0
