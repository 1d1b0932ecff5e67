#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=3 OMP_NUM_THREADS=1
export MASTER_PORT=$((20000 + RANDOM % 30000))
export RUN_DIR=$(mktemp -d -t pool-XXXXXX)
trap 'kill $(jobs -p) 2>/dev/null' TERM INT
for r in 0 1 2; do RANK=$r $PYTHON -u trainer.py & done
wait
