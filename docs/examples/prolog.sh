#!/bin/sh
# Prolog=/etc/slurm/trainprobe-prolog.sh   (slurm.conf; as root, on each node, before a job's first step)
# A code other than 0 drains the node and puts the job back into the queue. So 10 is the only one that counts:
# a check has failed without which no job can run here, and an administrator must mend it. Anything else lets the job start.
TRAINPROBE=/opt/trainprobe/bin/trainprobe # on the node's own disk
LOG=/var/log/trainprobe.log
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH

# Where the log cannot be written, slurmd is told instead; the node is looked at all the same.
if { true >>"$LOG"; } 2>/dev/null; then exec 2>>"$LOG"; fi
timeout --kill-after=2 40 "$TRAINPROBE" ready --slot prolog --quiet </dev/null >/dev/null
[ $? -ne 10 ]
