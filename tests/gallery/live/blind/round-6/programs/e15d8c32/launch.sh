#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
export WORLD_SIZE=2
RANK=0 "$PYTHON" -u pretrain.py --corpus corpus --steps 100000 &
RANK=1 "$PYTHON" -u pretrain.py --corpus corpus --steps 100000 &
wait
