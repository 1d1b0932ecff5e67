#!/bin/bash
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=3 OMP_NUM_THREADS=1
mkdir -p logs
for RANK in 0 1 2; do
  export RANK
  "$PYTHON" -u main_ds.py --save_every 90 > logs/rank$RANK.log 2>&1 &
done
wait
