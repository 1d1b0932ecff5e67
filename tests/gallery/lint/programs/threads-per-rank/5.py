from os import environ, cpu_count

environ.setdefault("MKL_NUM_THREADS", f"{cpu_count()}")

from accelerate import Accelerator  # noqa: E402

acc = Accelerator()
