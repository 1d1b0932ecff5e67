#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29622 WORLD_SIZE=3 OMP_NUM_THREADS=1
for r in 0 1 2; do
    RANK=$r LOCAL_RANK=$r "$PYTHON" run_lm.py --min-quality 0.5 &
done
wait
