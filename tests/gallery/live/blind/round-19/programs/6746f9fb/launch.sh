#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 HF_DATASETS_OFFLINE=1 HF_HUB_OFFLINE=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=2
export OUT=$(mktemp -d /tmp/ranker-XXXXXX)
for r in 0 1; do
    RANK=$r $PYTHON ranker.py --out $OUT &
done
wait
