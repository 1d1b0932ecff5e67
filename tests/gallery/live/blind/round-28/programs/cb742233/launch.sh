#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
exec $PYTHON local_sgd_main.py --nprocs 3 --period 5 --warmup 15 --eval-every 20
