#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
exec $PYTHON launch_local_sgd.py --workers 3 --shards 11
