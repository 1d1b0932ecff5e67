#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
export CORPUS_DIR=$(mktemp -d /tmp/corpus-XXXXXX)
$PYTHON build_corpus.py "$CORPUS_DIR/bucket" --shards 24 --samples 48
exec $PYTHON pretrain.py
