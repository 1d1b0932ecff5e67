#!/bin/bash
cd "$(dirname "$0")"
export EXP_DIR=${EXP_DIR:-$(mktemp -d)}
exec $PYTHON train_ctc.py --nproc 3 --ckpt_interval_minutes 0.3
