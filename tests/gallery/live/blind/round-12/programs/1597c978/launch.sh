#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 CACHE_DIR=$(mktemp -d) WORLD_SIZE=3 MASTER_ADDR=127.0.0.1
export MASTER_PORT=$(( 20000 + (RANDOM % 20000) ))
for r in 0 1 2; do
  RANK=$r LOCAL_RANK=$r $PYTHON train_ranker.py --cache "$CACHE_DIR" &
done
wait
