#!/bin/bash -l
#SBATCH --partition=gpu
#SBATCH --nodes=2 --ntasks-per-node=1
#SBATCH --gres=gpu:a100:4 --cpus-per-task=32
#SBATCH --time=1-00:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -1)
export MASTER_PORT=$(expr 10000 + $(echo -n $SLURM_JOBID | tail -c 4))
CMD="torchrun --nnodes=2 --nproc_per_node=4 --rdzv_id=$SLURM_JOB_ID --rdzv_backend=c10d --rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT finetune.py"
srun --ntasks-per-node=4 --cpus-per-task=32 apptainer exec --nv -B /work:/work /work/images/torch.sif bash -c "$CMD"
