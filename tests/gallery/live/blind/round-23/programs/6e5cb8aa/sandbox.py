import subprocess
import threading


def run_command(command, limit=3.0):
    """Run one shell action and return (exit status, output)."""
    proc = subprocess.Popen(["sh", "-c", command], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    timer = threading.Timer(limit, proc.kill)
    timer.daemon = True
    timer.start()
    try:
        out, _ = proc.communicate()
    finally:
        timer.cancel()
    return proc.returncode, out[-2000:]


def reward(task):
    status, out = run_command(task["action"])
    if status != 0:
        return -1.0
    return 1.0 if out.strip() == task["expect"] else 0.0
