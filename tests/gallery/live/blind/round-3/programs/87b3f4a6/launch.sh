#!/bin/bash
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=3 LOCAL_WORLD_SIZE=3 OMP_NUM_THREADS=1
export RUN_NAME=mpt-ift-$RANDOM
mkdir -p logs
run() { RANK=$1 LOCAL_RANK=$1 "$PYTHON" -u scripts/train.py yamls/ift.json > logs/$RUN_NAME-rank$1.log 2>&1; }
for r in 0 1 2; do run $r & done
wait
