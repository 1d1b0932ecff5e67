"""What a scheduler, a cloud or a user says when it ends a job, and what to do in each case."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainprobe.causes.phrases import Fixes, fixes
from trainprobe.causes.scene import Scene
from trainprobe.facts import LogEvent
from trainprobe.facts.outside_ends import OUTSIDE


@dataclass(frozen=True)
class End:
    """One way in which a job is ended from outside: `words` of the line that states it, one
    sentence, and what to do.
    """

    words: re.Pattern[str]
    says: str
    fixes: Fixes


@dataclass(frozen=True)
class Stated:
    """The first line that states an end, and which end it is."""

    event: LogEvent
    end: End


def stated(scene: Scene) -> Stated | None:
    """The end that the output states, where it is the first failure; a lack of memory is another
    cause's.
    """
    first = scene.first_failure
    if first is None or first.echo or first.what != "event" or first.kind not in OUTSIDE:
        return None
    event = next((one for one in scene.events(first.kind) if one.place == first.place), None)
    if event is None:
        return None
    lines = [event, *(one for one in scene.events(*OUTSIDE) if one.place != event.place)]
    for line in lines:  # a second line may say more, as that of the job beside that of its step
        end = next((end for end in ENDS if end.words.search(line.line)), None)
        if end is not None:
            return Stated(line, end)
    return None


ENDS = (
    End(
        re.compile(
            r"(?i)time limit|TERM_RUNLIMIT|job killed: (?:walltime|cput)|type=\"?timeout"
            r"|MaxRuntimeExceeded|MaxWaitTimeExceeded|hard wallclock"
        ),
        "The job reached its time limit, and the scheduler ended it",
        fixes("""
            Submit it again from its last checkpoint
                sbatch --time=… job.sh   (scontrol show partition tells the most that is allowed)
                bsub -W, qsub -l walltime=… or -l h_rt=…, flux batch -t   (other schedulers)
            Save before the limit, and go on in a next job
                #SBATCH --requeue --signal=B:USR1@300
                trap 'touch stop.$SLURM_JOB_ID' USR1; srun … & wait $!; wait   (the program saves
                    and leaves when it sees that file after a step)
        """),
    ),
    End(
        re.compile(r"(?i)\bNODE FAILURE|\bNode failure"),
        "A node of the job failed, and the scheduler ended the job",
        fixes("""
            Submit it again from its last checkpoint, without that node
                sbatch --exclude=NODE job.sh
            [admin] See what befell the node
                scontrol show node NODE   (Reason, BootTime)
                journalctl -k -b -1   (on the node: the kernel's last words)
        """),
    ),
    End(
        re.compile(r"(?i)JOB REQUEUE|requeue"),
        "The job was put back into the queue",
        fixes("""
            Let it go on from its last checkpoint when it starts again
                scontrol show job $SLURM_JOB_ID | grep -E 'Restarts|Requeue|Reason'
                #SBATCH --open-mode=append   (keeps the output of each start)
            Keep it from being started again
                scontrol update JobId=$SLURM_JOB_ID Requeue=0, or #SBATCH --no-requeue
        """),
    ),
    End(
        re.compile(
            r"(?i)spot|preemptible|maintenance event|will be terminated soon|instance-action"
        ),
        "The cloud took the machine back",
        fixes("""
            Start again from the last checkpoint on another machine, of a pool that stays where the
                    run must not stop
            Save when the notice comes: AWS gives 120 s, Google Cloud and Azure 30 s
                curl -s http://169.254.169.254/latest/meta-data/spot/instance-action   (AWS)
        """),
    ),
    End(
        re.compile(r"(?i)PREEMPT"),
        "A job of higher priority took its place",
        fixes("""
            Submit it again from its last checkpoint, or let the scheduler do so
                #SBATCH --requeue --open-mode=append
            Save when the warning comes
                #SBATCH --signal=B:USR1@120   (comes where the partition has a GraceTime)
                scontrol show partition | grep -E 'PartitionName|PreemptMode|GraceTime'
            Choose a partition or QOS that is not preempted
        """),
    ),
    End(
        re.compile(r"(?i)low on resource|evict|had condition"),
        "Kubernetes evicted the pod from its node",
        fixes("""
            See what ran short
                kubectl describe pod POD   (Message names the resource and who used it)
                kubectl describe node NODE | grep -A8 Conditions
            Ask for what it uses, so that others are evicted before it
                resources.requests equal to limits, for memory and for ephemeral-storage
            Start it again from its last checkpoint
        """),
    ),
    End(
        re.compile(r"CANCELLED AT|Force Terminated|TERM_OWNER|TERM_ADMIN|type=\"?cancel|qdel"),
        "The job was cancelled, by its user, an administrator or a script",
        fixes("""
            Find who cancelled it, unless you did
                sacct -j $SLURM_JOB_ID --format=JobID,State%30,End   (State is CANCELLED by UID)
            Submit it again from its last checkpoint
        """),
    ),
)
