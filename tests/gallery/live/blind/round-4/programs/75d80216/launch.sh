#!/bin/bash
#SBATCH --job-name=tts --ntasks=3 --signal=USR1@90
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export SLURM_JOB_ID=5519 SLURM_NTASKS=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
for i in 0 1 2; do
  SLURM_PROCID=$i SLURM_LOCALID=$i "$PYTHON" -m tts.train --out runs/5519 > slurm-5519.$i.out 2>&1 &
  pids[$i]=$!
done
( sleep 28; kill -USR1 "${pids[0]}" ) &
wait "${pids[@]}"
