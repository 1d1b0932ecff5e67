#!/bin/bash
export OMP_NUM_THREADS=1
"$PYTHON" -u run_local.py --tasks 3 -- train_lang_id.py --shards shards --nnet_dir exp/lid
