#!/bin/bash
#SBATCH --job-name=gpt
#SBATCH --partition=gpu
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --mem=900G
#SBATCH --time=1-00:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@300
#SBATCH --output=gpt-%j.log

requeue() {
    echo "$(date): out of time, once more"
    scontrol requeue "$SLURM_JOB_ID"
}
trap requeue USR1

source /work/envs/gpt/bin/activate
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((12000 + SLURM_JOB_ID % 10000))

srun --cpu-bind=cores bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    exec python -u pretrain.py --resume latest --save-every 500' &
wait $!
