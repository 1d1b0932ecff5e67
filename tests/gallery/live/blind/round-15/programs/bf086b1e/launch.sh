#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=2
exec $PYTHON main.py --num-processes 3 --max-episodes 100000
