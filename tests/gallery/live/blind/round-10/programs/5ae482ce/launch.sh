#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=4 OMP_NUM_THREADS=1
rm -rf .ckpt
for RANK in 0 1 2 3; do
    RANK=$RANK LOCAL_RANK=$RANK $PYTHON -m lm.train --ckpt "$PWD/.ckpt" &
done
wait
