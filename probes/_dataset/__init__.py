"""The parts of `scaled_dataset` that take the user's own data.

`course`, `children` and `safe` run in the probe, which imports neither torch nor anything of the user's. `cell` is the program of one child, with
`objects`, `samples`, `reading` and `checks`. `looks` serves both.
"""

import _memory  # noqa: F401 - loaded now, since `_emit`, which some of these import first, takes the folder of the probes off the path
