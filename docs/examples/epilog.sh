#!/bin/sh
# Epilog=/etc/slurm/trainprobe-epilog.sh   (slurm.conf; as root, on each node, after a job's last step)
# A code other than 0 drains the node. As in the prolog, 10 is the only one that counts.
TRAINPROBE=/opt/trainprobe/bin/trainprobe # on the node's own disk
LOG=/var/log/trainprobe.log
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH

# Where the log cannot be written, slurmd is told instead; the node is looked at all the same.
if { true >>"$LOG"; } 2>/dev/null; then exec 2>>"$LOG"; fi
timeout --kill-after=2 40 "$TRAINPROBE" ready --slot epilog --quiet </dev/null >/dev/null
[ $? -ne 10 ]
