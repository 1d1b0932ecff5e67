#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
export WORLD_SIZE=2
for r in 0 1; do
  RANK=$r "$PYTHON" -u finetune.py --epochs 20 --encode-threads 24 --loader-procs 1 &
done
wait
