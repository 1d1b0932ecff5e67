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

# Where the log cannot be written, slurmd is told instead; the node is looked at all the same.
if { true >>"$LOG"; } 2>/dev/null; then exec 2>>"$LOG"; fi
FRESH=$METRICS.$$
if ! { true >"$FRESH"; } 2>/dev/null; then FRESH=/dev/null; fi
timeout --kill-after=2 55 "$TRAINPROBE" ready --slot healthcheck --quiet --drain "$SLURMD_NODENAME" --format prometheus \
    </dev/null >"$FRESH"
CODE=$?
if [ -s "$FRESH" ]; then mv "$FRESH" "$METRICS"; else rm -f "$METRICS.$$"; fi
[ "$CODE" -ne 10 ]
