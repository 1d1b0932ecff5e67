#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
exec $PYTHON -u run_nmt.py --trainers 3 --passes 4
