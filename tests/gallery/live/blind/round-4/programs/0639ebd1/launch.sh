#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export ROVER_PORT=$((20000 + RANDOM % 20000))
"$PYTHON" launch_radar.py --ranks 3 --trace-root traces
