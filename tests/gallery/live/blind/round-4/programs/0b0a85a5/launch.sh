#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
set -a
. k8s/pytorchjob.env
set +a
export MASTER_PORT=$((20000 + RANDOM % 20000))
mkdir -p pod-logs
for r in 0 1; do
  RANK=$r "$PYTHON" benchmark.py --backend gloo > pod-logs/optimizer-$r.log 2>&1 &
done
wait
