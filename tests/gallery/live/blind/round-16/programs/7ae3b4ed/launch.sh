#!/bin/bash
cd "$(dirname "$0")"
exec $PYTHON -u train.py --nproc 3 --epochs 500 --project runs/exp
