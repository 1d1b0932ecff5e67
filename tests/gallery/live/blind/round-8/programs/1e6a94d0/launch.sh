#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
for r in 0 1; do
  RANK=$r WORLD_SIZE=2 "$PYTHON" -u learner.py --actors 3 --seed 12 &
done
wait
