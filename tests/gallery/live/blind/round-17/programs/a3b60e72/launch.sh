#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
pids=()
for r in 0 1 2 3; do
  RANK=$r WORLD_SIZE=4 $PYTHON run.py --epochs 4 &
  pids+=($!)
done
wait "${pids[@]}"
