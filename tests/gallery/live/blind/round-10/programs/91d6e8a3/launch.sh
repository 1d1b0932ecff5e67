#!/bin/bash
# three single-process nodes, each with its own local scratch disk
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 WORLD_SIZE=3 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 HF_HUB_OFFLINE=1
export MASTER_PORT=$((20000 + RANDOM % 20000))
rm -rf scratch
$PYTHON unpack_run.py scratch/node0/runs/gpt-small
for n in 0 1 2; do
  RANK=$n LOCAL_SCRATCH=scratch/node$n $PYTHON -u finetune.py --run gpt-small &
done
wait
