#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
exec $PYTHON run_forecast.py --ranks 4 --eval-interval 40
