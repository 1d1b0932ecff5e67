#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
"$PYTHON" -u fit.py --devices 2 --workers 4 --save-every 400 --epochs 1000
