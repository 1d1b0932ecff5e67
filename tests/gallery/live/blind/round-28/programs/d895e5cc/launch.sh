#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
export SHARD_CACHE="$(mktemp -d)"
exec $PYTHON run_workers.py -n 3 -- train_lm.py --epochs-per-shard 4
