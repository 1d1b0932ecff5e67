#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export MASTER_ADDR=localhost MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=3
mkdir -p log
for r in 0 1 2; do
  RANK=$r LOCAL_RANK=$r "$PYTHON" train_encoder.py --config base.json > log/rank$r.log 2>&1 &
done
wait
