#!/bin/bash
# what the operator puts into each pod
export MASTER_ADDR=bert-pretrain-master-0 MASTER_PORT=23456 WORLD_SIZE=3 RANK=$POD_INDEX
export PET_MASTER_ADDR=bert-pretrain-master-0 PET_MASTER_PORT=23456
export PET_NNODES=3 PET_NPROC_PER_NODE=1 PET_NODE_RANK=$POD_INDEX
exec torchrun pretrain.py
