#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
exec $PYTHON main.py --learners 3 --updates 100000
