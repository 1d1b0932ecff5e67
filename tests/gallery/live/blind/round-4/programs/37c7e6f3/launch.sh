#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export STORE=127.0.0.1:$((20000 + RANDOM % 10000)) MASTER_PORT=$((30000 + RANDOM % 10000))
"$PYTHON" -m store.server "${STORE#*:}" > store.log 2>&1 &
"$PYTHON" train_vae.py > vae.log 2>&1
kill %1
