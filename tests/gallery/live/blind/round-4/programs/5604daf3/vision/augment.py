import random


class RandomFog:
    def __init__(self, lower, upper, particles=24, radius=3):
        self.lower, self.upper = lower, upper
        self.particles, self.radius = particles, radius

    def _haze_points(self, height, width, horizon):
        points = []
        while len(points) < self.particles:
            x = random.randint(0, width - 1)
            y = random.randint(0, height - 1)
            if y <= horizon:
                continue
            if (x, y) not in points:
                points.append((x, y))
        return points

    def __call__(self, img, horizon):
        alpha = random.uniform(self.lower, self.upper)
        _, h, w = img.shape
        for x, y in self._haze_points(h, w, horizon):
            y0, y1 = max(0, y - self.radius), min(h, y + self.radius)
            x0, x1 = max(0, x - self.radius), min(w, x + self.radius)
            img[:, y0:y1, x0:x1] = img[:, y0:y1, x0:x1] * (1 - alpha * 0.2) + alpha * 0.2
        return img
