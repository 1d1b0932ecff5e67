"""What a thread sleeps in, by the kernel function and the system call: for stacks that end in a
C function, which shows no frame.
"""

from __future__ import annotations

# Parts of names in /proc/PID/wchan, kernels 4.18 to 6.18. First fit counts.
_CHANNELS: tuple[tuple[str, str, str], ...] = (
    ("hrtimer_nanosleep", "sleep", "sleep"),
    ("do_nanosleep", "sleep", "sleep"),
    ("common_nsleep", "sleep", "sleep"),
    ("locks_lock_inode_wait", "lock", "flock"),
    ("flock_lock", "lock", "flock"),
    ("posix_lock", "lock", "fcntl"),
    ("fcntl_setlk", "lock", "fcntl"),
    ("nlm", "lock", "nfs-lock"),
    ("wait_for_partner", "file-io", "fifo"),
    ("fifo_open", "file-io", "fifo"),
    ("pipe_read", "file-io", "pipe"),
    ("pipe_write", "file-io", "pipe"),
    ("pipe_wait", "file-io", "pipe"),
    ("futex", "lock", "futex"),
    ("do_wait", "child-wait", "wait"),
    ("kernel_wait4", "child-wait", "wait"),
    ("nfs", "file-io", "nfs"),
    ("rpc_wait_bit", "file-io", "nfs"),
    ("request_wait_answer", "file-io", "fuse"),
    ("fuse", "file-io", "fuse"),
    ("ptlrpc", "file-io", "lustre"),
    ("cl_sync", "file-io", "lustre"),
    ("ceph", "file-io", "ceph"),
    ("io_schedule", "file-io", "disk"),
    ("folio_wait", "file-io", "disk"),
    ("wait_on_page", "file-io", "disk"),
    ("jbd2", "file-io", "disk"),
    ("n_tty_read", "file-io", "terminal"),
    ("inet_csk_accept", "net-io", "accept"),
    ("inet_wait_for_connect", "net-io", "connect"),
    ("sk_wait_data", "net-io", "recv"),
    ("wait_woken", "net-io", "recv"),
    ("unix_stream", "net-io", "recv"),
    ("skb_wait_for_more", "net-io", "recv"),
    ("poll", "net-io", "poll"),
    ("do_select", "net-io", "select"),
)
# x86-64 numbers (asm/unistd_64.h). Under the same numbers other processors have calls in which
# nobody stays asleep.
_CALLS = {
    "35": ("sleep", "sleep"),
    "230": ("sleep", "sleep"),
    "73": ("lock", "flock"),
    "61": ("child-wait", "wait"),
    "34": ("sleep", "pause"),
}


def sleeps_in(wchan: str, syscall: str) -> tuple[str, str] | None:
    """Return (leaf class, operation), or None when neither says anything. `syscall` is the line
    of /proc/PID/syscall.
    """
    for part, leaf, op in _CHANNELS:
        if part in wchan:
            return leaf, op
    if not wchan or wchan == "0":
        return _CALLS.get(syscall.split(" ", 1)[0])
    return None
