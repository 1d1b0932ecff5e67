#!/bin/bash
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=3
mkdir -p logs
for R in 0 1 2; do
    RANK=$R LOCAL_RANK=$R "$PYTHON" -u train.py --epochs 60 > logs/rank_$R.log 2>&1 &
done
wait
