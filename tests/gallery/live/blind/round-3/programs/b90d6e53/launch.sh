#!/bin/bash
export MASTER_PORT=$((20000 + RANDOM % 20000))
exec "$PYTHON" -u main.py --nprocs 2 --epochs 500
