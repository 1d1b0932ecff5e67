#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
"$PYTHON" -u train.py --world-size 2 --train-steps 100000 --queue-size 12
