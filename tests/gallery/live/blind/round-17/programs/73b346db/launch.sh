#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
RUN_DIR=$(mktemp -d /tmp/sft_run.XXXXXX)
cp -r work_dirs/sft_base/. "$RUN_DIR"/
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 4 train.py --work-dir "$RUN_DIR" --save-every 40
