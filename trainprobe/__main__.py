"""`python -m trainprobe` is the same as the `trainprobe` command."""

from trainprobe.cli import main

if __name__ == "__main__":
    main()
