#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
export TRACKING_PORT_FILE="$(mktemp -d)/port"
$PYTHON tracking_server.py --backend-store memory &
exec $PYTHON fit.py --devices 3
