#!/bin/bash
set -u
export MASTER_ADDR=127.0.0.1
export MASTER_PORT=$((20000 + RANDOM % 20000))
export TRACKING_PORT=$((MASTER_PORT + 1))
export OMP_NUM_THREADS=1
mkdir -p logs runs

"$PYTHON" -u tracking/server.py --port "$TRACKING_PORT" --root runs > logs/server.log 2>&1 &
"$PYTHON" -u tracking/dashboard.py --port "$TRACKING_PORT" --every 40 > logs/dashboard.log 2>&1 &

pids=()
for r in 0 1 2; do
  RANK=$r LOCAL_RANK=$r WORLD_SIZE=3 "$PYTHON" -u train_vla.py --max-steps 20000 2>&1 | sed -u "s/^/[$r] /" &
  pids+=($!)
done
wait "${pids[@]}"
