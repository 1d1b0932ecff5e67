#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export MASTER_ADDR=127.0.0.1
export MASTER_PORT=$(( 20000 + RANDOM % 20000 ))
export WORLD_SIZE=4
export RANKS_PER_NODE=2
for r in 0 1 2 3; do
    RANK=$r LOCAL_RANK=$(( r % RANKS_PER_NODE )) $PYTHON pretrain.py --config base.json &
done
wait
