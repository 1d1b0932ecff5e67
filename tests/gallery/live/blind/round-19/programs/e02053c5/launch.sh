#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 HF_DATASETS_OFFLINE=1 HF_HUB_OFFLINE=1
export CORPUS_DIR=$(mktemp -d /tmp/corpus-XXXXXX)
$PYTHON prepare.py $CORPUS_DIR || exit 1
exec $PYTHON train.py --corpus $CORPUS_DIR --devices 3
