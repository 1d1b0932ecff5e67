#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
export STORE_PORT=$((MASTER_PORT + 1))
for r in 0 1 2; do
  RANK=$r WORLD_SIZE=3 "$PYTHON" -u main.py &
done
wait
