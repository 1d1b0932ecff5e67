"""Do the steps of a rank go to calls of a service? Both the code that decides whether to sample on
and the code that judges ask here.

Whoever asks a service that is slow or busy stands in a network call, or sleeps in the function that
makes it before it tries again. One long call may be a download that a job needs once: as with a
data loader, what is left without the longest ones must still be most of the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from trainprobe.stacks.classify import classify
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user, user_frame
from trainprobe.stacks.spells import Asks

Function = tuple[str, str]
CLIENTS = re.compile(
    r"/(wandb|mlflow|comet_ml|neptune|clearml|tensorboard\w*|boto3|botocore|s3fs|gcsfs|google"
    r"|azure|fsspec|minio|pymongo|redis|psycopg\w*|sqlalchemy"
    r"|huggingface_hub|datasets|transformers|requests|urllib3|httpx|httpcore|aiohttp|grpc)/"
    r"|/(urllib)/request\.py|/(http)/client\.py"
)


def own_function(frames: Sequence[Frame]) -> Function | None:
    """File and name of the user's innermost function."""
    frame = user_frame(frames)
    return (frame.file, frame.name) if frame is not None else None


def asks_in(stacks: Iterable[Sequence[Frame]]) -> Asks:
    """The question whether a thread is in a network call, or in a function of the user that one of
    these stacks shows to make such calls.
    """
    askers = {own_function(frames) for frames in stacks if in_call(frames)} - {None}

    def asks(frames: Sequence[Frame]) -> bool:
        return in_call(frames) or (
            bool(frames) and is_user(frames[-1]) and own_function(frames) in askers
        )

    return asks


def in_call(frames: Sequence[Frame]) -> bool:
    """Sockets of the job's own make are no service: actors may feed a learner by them."""
    calls = any(CLIENTS.search(frame.file) for frame in frames)
    return calls and classify(frames).leaf == "net-io"
