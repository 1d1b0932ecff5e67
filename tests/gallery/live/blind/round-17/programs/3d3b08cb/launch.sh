#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 WORLD_SIZE=3 MASTER_ADDR=127.0.0.1
export MASTER_PORT=$((20000 + RANDOM % 20000))
export RUN_DIR=$(mktemp -d -t charlm-XXXXXX)
for r in 0 1 2; do
  RANK=$r $PYTHON train.py --epochs 3 --out "$RUN_DIR" &
done
wait
