#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=3 OMP_NUM_THREADS=1
rm -rf "$PWD/.outputs"
for RANK in 0 1 2; do
    RANK=$RANK LOCAL_RANK=$RANK $PYTHON pretrain.py --out "$PWD/.outputs" --save-every 60 &
    sleep 2   # keep the imports from hitting the file server all at once
done
wait
