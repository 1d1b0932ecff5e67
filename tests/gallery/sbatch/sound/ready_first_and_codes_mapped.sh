#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=8 --cpus-per-task=64
#SBATCH --time=12:00:00
export TORCH_FR_BUFFER_SIZE=20000 TORCH_NCCL_DUMP_ON_TIMEOUT=1
srun --ntasks-per-node=1 trainprobe ready --quick --exclude-file bad-nodes.txt
code=$?
case $code in
  0) ;;
  10) sbatch --exclude="$(cat bad-nodes.txt)" "$0"; exit 0 ;;
  *) exit 40 ;;
esac
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
ulimit -n 65536
srun torchrun --nnodes="$SLURM_JOB_NUM_NODES" --nproc-per-node=gpu --rdzv-id="$SLURM_JOB_ID" --rdzv-backend=c10d \
  --rdzv-endpoint="$MASTER_ADDR:$((10000 + SLURM_JOB_ID % 20000))" --log-dir logs --redirects 3 --tee 3 train.py
