#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 ACCELERATE_USE_CPU=true
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=3
export PRM_WORKDIR=$(mktemp -d /tmp/prm-XXXXXX)
for r in 0 1 2; do
    RANK=$r LOCAL_RANK=$r LOCAL_WORLD_SIZE=3 $PYTHON finetune_prm.py &
done
wait
