#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1
export MASTER_PORT=$((20000 + RANDOM % 20000))
export WORLD_SIZE=2
for r in 0 1; do
  RANK=$r $PYTHON train_impala.py &
done
wait
