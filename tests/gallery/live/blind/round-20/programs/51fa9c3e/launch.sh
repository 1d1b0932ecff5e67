#!/bin/bash
cd "$(dirname "$0")"
exec $PYTHON run.py --workers 3 --epochs 50
