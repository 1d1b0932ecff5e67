#!/bin/bash
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=2
for R in 0 1; do
    RANK=$R LOCAL_RANK=$R "$PYTHON" -u train_pp.py --steps 2000 --warmup-steps 40 > rank$R.log 2>&1 &
done
tail -n +1 -F rank0.log &
wait %1 %2
