#!/usr/bin/env bash
set -e
mkdir -p exp/log
"$PYTHON" -m torch.distributed.run --nproc-per-node 3 --master-port $((20000 + RANDOM % 20000)) \
    asr_train.py --exp exp --max_epoch 500 2>&1 | tee exp/log/train.log
