#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29626 WORLD_SIZE=3 OMP_NUM_THREADS=1
for r in 0 1 2; do
    RANK=$r LOCAL_RANK=$r "$PYTHON" train_gan.py --walltime 135 --margin 120 &
done
wait
