#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 4 finetune_no_trainer.py
