#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 HF_DATASETS_OFFLINE=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 3 sft.py
