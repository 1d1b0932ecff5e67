#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=3
export RUN_DIR=$(mktemp -d -t run-XXXXXX)
for r in 0 1 2; do
  RANK=$r LOCAL_RANK=$r $PYTHON -u main.py --run-dir "$RUN_DIR" &
done
wait
