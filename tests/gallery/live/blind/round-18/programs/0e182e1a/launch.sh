#!/bin/bash
cd "$(dirname "$0")"
export TILE_CACHE=$(mktemp -d /tmp/tilecache.XXXXXX)
exec $PYTHON prun.py -n 3 -x TILE_CACHE -- $PYTHON -u main.py
