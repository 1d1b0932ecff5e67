#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
export WORLD_SIZE=3
pids=()
for r in 0 1 2; do
  RANK=$r "$PYTHON" -u train.py --out ckpt --width 64 &
  pids+=($!)
done
# the node manager announces maintenance on one host only
( until [ -s progress ]; do sleep 1; done; sleep 12; kill -USR1 ${pids[1]} ) &
wait
