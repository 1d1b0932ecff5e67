#!/bin/sh
# HealthCheckProgram=/etc/slurm/trainprobe-health-check.sh   (slurm.conf, with HealthCheckInterval=300 and HealthCheckNodeState=IDLE)
# SLURM does nothing with its code, so it drains the node by itself: --drain asks scontrol for the node's state first, and leaves a node
# alone that is drained or down already. Nothing is ever undrained. Without --drain SLURM is not asked at all.
# It also writes metrics for the textfile collector of Prometheus' node_exporter, whole or not at all.
TRAINPROBE=/opt/trainprobe/bin/trainprobe # on the node's own disk
LOG=/var/log/trainprobe.log
METRICS=/var/lib/prometheus/node-exporter/trainprobe.prom
PATH=/usr/sbin:/usr/bin:/sbin:/bin
SLURM_CONF=/etc/slurm/slurm.conf
export PATH SLURM_CONF

timeout --kill-after=2 55 "$TRAINPROBE" ready --slot healthcheck --quiet --drain "$SLURMD_NODENAME" --format prometheus \
    </dev/null >"$METRICS.$$" 2>>"$LOG"
CODE=$?
if [ -s "$METRICS.$$" ]; then mv "$METRICS.$$" "$METRICS"; else rm -f "$METRICS.$$"; fi
[ "$CODE" -ne 10 ]
