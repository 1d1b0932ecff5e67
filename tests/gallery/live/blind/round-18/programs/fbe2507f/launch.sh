#!/bin/bash
cd "$(dirname "$0")"
export OUT_DIR=${OUT_DIR:-$(mktemp -d /tmp/seg.XXXXXX)}
exec $PYTHON main.py --nprocs 3 --epochs 60 --out "$OUT_DIR"
