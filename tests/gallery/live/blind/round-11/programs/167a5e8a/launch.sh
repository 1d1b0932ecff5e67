#!/bin/bash
cd "$(dirname "$0")"
export TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1
exec $PYTHON -m torch.distributed.run --nproc-per-node 3 --master-port 0 \
  --rdzv-backend c10d --rdzv-endpoint localhost:0 \
  run_tagger.py --output_dir "${OUT_DIR:-/tmp/tagger-$$}" --eval_steps 40
