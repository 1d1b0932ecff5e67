#!/bin/sh
# Epilog=/etc/slurm/trainprobe-epilog.sh   (slurm.conf; as root, on each node, after a job's last step)
# A code other than 0 drains the node. As in the prolog, 10 is the only one that counts.
TRAINPROBE=/opt/trainprobe/bin/trainprobe # on the node's own disk
LOG=/var/log/trainprobe.log
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH

timeout --kill-after=2 40 "$TRAINPROBE" ready --slot epilog --quiet </dev/null >/dev/null 2>>"$LOG"
[ $? -ne 10 ]
