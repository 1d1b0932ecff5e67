"""Word vectors. They are worked out once, when the module is imported; what is kept is small."""

import numpy


def _counted(words=4000, contexts=24000):
    """Which word stands beside which; the table itself is needed for a moment only."""
    table = numpy.ones((words, contexts), dtype=numpy.float64)
    table *= numpy.arange(1, words + 1)[:, None]
    numpy.log(table, out=table)
    numpy.sin(table, out=table)
    return table.sum(axis=1)


VECTORS = _counted()
