#!/bin/bash
export PET_NNODES=3 PET_NPROC_PER_NODE=1 PET_MAX_RESTARTS=5
export PET_RDZV_BACKEND=c10d PET_RDZV_ENDPOINT=node1:29400 PET_RDZV_ID=llama-sft-7f9c2
exec torchrun finetune.py --lr 2e-5
