#!/bin/bash
cd "$(dirname "$0")"
exec $PYTHON main.py --nprocs 3 --steps 200000 --preview-every 40
