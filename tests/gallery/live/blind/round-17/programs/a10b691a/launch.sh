#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 WORLD_SIZE=3
export MASTER_PORT=$((20000 + RANDOM % 20000))
for r in 0 1 2; do
  RANK=$r LOCAL_RANK=$r $PYTHON train_asr.py --epochs 200 &
done
wait
