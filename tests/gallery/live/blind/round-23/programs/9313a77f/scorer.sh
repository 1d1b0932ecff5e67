#!/bin/sh
# usage: scorer.sh seconds < predictions
n=$(wc -l)
sleep "$1"
echo "$n"
