#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
exec "$PYTHON" -u -m webui.runner --nproc 3 --port $((20000 + RANDOM % 20000)) -- --dim 192 --log-level debug
