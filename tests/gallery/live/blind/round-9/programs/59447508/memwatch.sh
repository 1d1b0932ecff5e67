#!/bin/bash
# per-process memory limit (MiB) for shared nodes, same policy as the batch system
limit_kb=$(($1 * 1024)); shift
while sleep 0.5; do
  for p in "$@"; do
    rss=$(ps -o rss= -p "$p" 2>/dev/null) || continue
    [ -n "$rss" ] && [ "$rss" -gt "$limit_kb" ] && kill -KILL "$p" 2>/dev/null
  done
done
