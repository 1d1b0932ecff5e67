#!/bin/bash
# usage: push_checkpoint.sh CHECKPOINT_FILE MIRROR_DIR
set -e
file="$1"
mirror="$2"
mkdir -p "$mirror"
if [ ! -e "$mirror/.agent.pid" ]; then
    (
        while sleep 2; do
            for f in "$mirror"/*.part; do
                [ -e "$f" ] && mv "$f" "${f%.part}"
            done
        done
    ) &
    echo $! > "$mirror/.agent.pid"
    echo "mirror agent started"
fi
cp "$file" "$mirror/$(basename "$file").part"
echo "queued $(basename "$file") $(stat -c %s "$file") bytes"
