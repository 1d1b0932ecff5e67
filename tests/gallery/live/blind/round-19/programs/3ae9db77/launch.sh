#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$(( 20000 + RANDOM % 20000 )) WORLD_SIZE=3
for r in 0 1 2; do
  RANK=$r LOCAL_RANK=$r $PYTHON -u main.py --clips 130 --prefetch 6 --seed 20 &
done
wait
