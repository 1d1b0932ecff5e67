#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
WORK=$(mktemp -d)
$PYTHON prepare.py --out $WORK || exit 1
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 2 finetune.py \
  --data $WORK/train.jsonl --output_dir $WORK/out --resume_from $WORK/out/step_108 --num_train_epochs 500
