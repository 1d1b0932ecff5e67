#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
exec $PYTHON -u finetune.py --epochs 300 --processes 3
