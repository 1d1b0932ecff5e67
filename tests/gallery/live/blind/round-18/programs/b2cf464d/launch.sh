#!/bin/bash
cd "$(dirname "$0")"
RUN=$(mktemp -d /tmp/curric.XXXXXX)
export RUN
bash oomguard.sh "$$" 480 > "$RUN/oomguard.log" 2>&1 &
exec $PYTHON driver.py --workers 3 --run-dir "$RUN"
