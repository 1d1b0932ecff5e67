#!/bin/bash
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=2 OMP_NUM_THREADS=1
"$PYTHON" storage.py init study.db
"$PYTHON" -u dashboard_rollup.py study.db > rollup.log 2>&1 &
for r in 0 1; do RANK=$r "$PYTHON" -u pytorch_distributed_simple.py --storage study.db > trial_rank$r.log 2>&1 & done
wait
