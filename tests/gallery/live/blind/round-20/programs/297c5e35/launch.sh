#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
exec $PYTHON main.py --ranks 2 --work "${WORK_DIR:-$(mktemp -d /tmp/ae_speech.XXXXXX)}"
