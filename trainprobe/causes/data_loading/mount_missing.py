"""A folder that the job needs is not there on one node, or is another one than on the others.

The shared file system is not mounted there, so the folder is an empty one of the node's own disk;
or another disk is mounted in its place, or it may not be written. Ranks of that node find no data,
train on none, or write checkpoints that nobody else sees.

It is recognised by what each node says of the folders that the job was given: whether they exist,
which file system they lie on, and whether a file can be made there. A mount that does not answer at
all is `storage-stall`.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody

CAUSE = Cause(
    id="mount-missing",
    title="A folder of the job is not what it is on the other nodes",
    would_settle="findmnt --target FOLDER on each node, and touch a file there",
    modes=("check",),
    ranks=nobody,
    ready=ReadySigns(
        says=("lacks a folder as the others have it", "lack a folder as the others have it"),
        checks=("fs.mounts", "fs.same"),
        values=("mount.", "writable.", "fs."),
        admin=(
            "findmnt --target FOLDER; mount FOLDER   (as /etc/fstab or the automounter has it)",
        ),
    ),
)
