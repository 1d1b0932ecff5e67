#!/bin/bash
export OMP_NUM_THREADS=1
exec "$PYTHON" -u run_local.py 3 finetune.py --epochs 40 --refresh-every 2
