import subprocess


def snapshot():
    return [subprocess.Popen(["true"]), subprocess.Popen(["uname", "-a"], stdout=subprocess.DEVNULL)]
