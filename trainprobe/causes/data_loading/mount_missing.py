"""A folder that the job needs is not there on one node, or is another one than on the others.

The shared file system is not mounted there, so the folder is an empty one of the node's own disk; or another disk is mounted in its place, or it may not be
written. Ranks of that node find no data, train on none, or write checkpoints that nobody else sees.

It is recognised by what each node says of the folders that the job was given: whether they exist, which file system they lie on, and whether a file can
be made there. A mount that does not answer at all is `storage-stall`.
"""

from __future__ import annotations

from trainprobe.causes.unready import Signs, unready_cause

CAUSE = unready_cause(
    "mount-missing",
    Signs(
        says=("lacks a folder as the others have it", "lack a folder as the others have it"),
        checks=("fs.mounts", "fs.same"),
        values=("mount.", "writable.", "fs."),
        admin=("findmnt --target FOLDER; mount FOLDER   (as /etc/fstab or the automounter has it)",),
    ),
    title="A folder of the job is not what it is on the other nodes",
    means="A folder of data or checkpoints is missing on a node, lies on another file system there, or cannot be written.",
    telling="A given folder does not exist, is no mount, is of another type or device than on the other nodes, or refuses a file.",
    would_settle="findmnt --target FOLDER on each node, and touch a file there",
)
