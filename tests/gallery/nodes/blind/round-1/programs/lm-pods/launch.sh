#!/bin/bash
export PET_NNODES=3 PET_NPROC_PER_NODE=1 PET_RDZV_BACKEND=c10d PET_RDZV_ENDPOINT=node1:29400 PET_RDZV_ID=lm-stream
[ $POD_INDEX = 0 ] && python producer.py > producer.log 2>&1 &
exec torchrun stream_lm.py
