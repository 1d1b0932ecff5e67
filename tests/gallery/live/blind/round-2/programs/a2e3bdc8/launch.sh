#!/bin/bash
export OMP_NUM_THREADS=1 MASTER_PORT=$((20000 + RANDOM % 20000))
exec "$PYTHON" -u speech_train.py --ranks 2 --steps 20000
