#!/bin/bash
export DATA=./data
"$PYTHON" tools/make_corpus.py --out $DATA --parts 2 --rows 30000
# the nightly export keeps the local copy up to date
"$PYTHON" -u tools/pull_export.py --dst $DATA --part 1 --rows 21000 --job-log finetune.log --after 12 > pull_export.log 2>&1 &
"$PYTHON" -m torch.distributed.run --nproc-per-node=2 --master-port=$((20000 + RANDOM % 20000)) finetune.py --data $DATA \
  2>&1 | tee finetune.log
