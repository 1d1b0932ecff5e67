NAMES = ["weekday", "weekend", "holiday"]
BOUNDS = {"weekday": (0.0, 0.714), "weekend": (0.714, 0.97), "holiday": (0.97, 1.0)}


class Slice:
    def __init__(self, name, lo, hi, digits):
        self.name, self.lo, self.hi, self.digits = name, lo, hi, digits

    def mask(self, phase):
        return (phase >= self.lo) & (phase < self.hi)


def load_slice(name):
    from report import PRECISION

    lo, hi = BOUNDS[name]
    return Slice(name, lo, hi, PRECISION)
