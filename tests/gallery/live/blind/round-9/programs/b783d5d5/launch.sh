#!/bin/bash
cd "$(dirname "$0")"
exec $PYTHON -u start.py --workers 3 worker.py --sync-every 6 --eval-every 180
