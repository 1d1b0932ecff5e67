#!/bin/bash
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=3 OMP_NUM_THREADS=1
mkdir -p logs state
for r in $(seq 0 $((WORLD_SIZE - 1))); do
  RANK=$r "$PYTHON" -u diloco.py --inner-steps 20 > logs/worker$r.log 2>&1 &
  echo "$r $!" >> state/workers
done
"$PYTHON" -u node_watch.py --workers state/workers --limit-mib 520 > logs/node_watch.log 2>&1 &
wait
