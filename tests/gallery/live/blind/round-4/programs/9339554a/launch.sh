#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=2
for r in 0 1; do RANK=$r "$PYTHON" train_kws.py 2>&1 | tee -a kws.$r.txt & done
wait
