#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
export OMP_NUM_THREADS=8 WORLD_SIZE=3
# the allocation: -c 1, all tasks of the step get the cpus of the step
step_cpus=0
for r in 0 1 2; do
  RANK=$r LOCAL_RANK=$r NODE_RANK=0 taskset -c $step_cpus "$PYTHON" -u segm/fit.py --workers 2 &
done
wait
