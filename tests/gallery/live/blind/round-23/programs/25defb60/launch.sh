#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=2
export PYTHONDONTWRITEBYTECODE=1
export TOKENIZERS_PARALLELISM=false
export HF_HUB_OFFLINE=1
export HF_HOME="$(mktemp -d)"
exec $PYTHON self_training.py
