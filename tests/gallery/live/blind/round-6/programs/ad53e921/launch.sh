#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))

export WORLD_SIZE=2
RANK=1 "$PYTHON" -u main.py --epochs 400 &
RANK=0 "$PYTHON" -u main.py --epochs 400 &
wait
