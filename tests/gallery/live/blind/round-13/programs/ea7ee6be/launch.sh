#!/bin/bash
cd "$(dirname "$0")"
export RUN_DIR=$(mktemp -d -t ner-XXXXXX) OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 HF_HOME=$(mktemp -d -t hf-XXXXXX)
exec $PYTHON -m torch.distributed.run --nproc-per-node 3 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 run_ner.py
