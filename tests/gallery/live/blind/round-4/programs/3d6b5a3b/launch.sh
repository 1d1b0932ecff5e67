#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
mkdir -p exp log
exec unshare -m bash -c 'mount -t tmpfs -o size=9m tmpfs exp && exec "$PYTHON" zipformer_train.py --world-size 2 --exp-dir exp' > log/train.txt 2>&1
