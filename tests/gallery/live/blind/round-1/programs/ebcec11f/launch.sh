#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29628 WORLD_SIZE=2 OMP_NUM_THREADS=1
for r in 0 1; do
    RANK=$r LOCAL_RANK=$r "$PYTHON" train_rl.py --eval-every 10 &
done
wait
