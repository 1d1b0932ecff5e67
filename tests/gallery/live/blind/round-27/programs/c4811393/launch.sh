#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 ACCELERATE_USE_CPU=true
exec $PYTHON -m torch.distributed.run --standalone --nproc_per_node=3 finetune_retriever.py
