"""Draws small pictures of textured shapes over clutter: ten classes, any colour, place, size and angle.

Everything comes from one numpy Generator, so a seed gives the same pictures everywhere.
"""
import numpy as np

SIZE = 32
CLASSES = ("disk", "ring", "square", "frame", "triangle", "plus", "star", "crescent", "bar", "dots")


def _polygon(u, v, corners):
    """Signed distance-like value, positive inside the convex polygon of unit inradius."""
    angles = np.arange(corners) * (2 * np.pi / corners)
    return 1 - np.max([u * np.cos(a) + v * np.sin(a) for a in angles], axis=0)


def _star(u, v):
    angle = np.arctan2(v, u) + np.pi
    wave = np.abs((angle * 5 / (2 * np.pi)) % 1 - 0.5) * 2       # 1 at the points, 0 between them
    return 0.5 + 0.62 * wave ** 1.2 - np.hypot(u, v)


def _box(u, v, w, h):
    return np.minimum(w - np.abs(u), h - np.abs(v))


def shape_field(name, u, v):
    """Positive inside the shape; u and v are coordinates in units of its radius."""
    r = np.hypot(u, v)
    if name == "disk":
        return 0.92 - r
    if name == "ring":
        return np.minimum(1 - r, r - 0.55)
    if name == "square":
        return _box(u, v, 0.8, 0.8)
    if name == "frame":
        return np.minimum(_box(u, v, 0.88, 0.88), -_box(u, v, 0.48, 0.48))
    if name == "triangle":
        return _polygon(u, v, 3) - 0.45
    if name == "plus":
        return np.maximum(_box(u, v, 1.0, 0.3), _box(u, v, 0.3, 1.0))
    if name == "star":
        return _star(u, v)
    if name == "crescent":
        return np.minimum(1 - r, np.hypot(u - 0.5, v) - 0.8)
    if name == "bar":
        return _box(u, v, 1.0, 0.36)
    return np.maximum(0.42 - np.hypot(u - 0.56, v), 0.42 - np.hypot(u + 0.56, v))     # dots


def _colour(rng):
    return rng.uniform(0, 255, 3)


def _background(rng, x, y):
    direction = rng.uniform(0, 2 * np.pi)
    t = ((x - 16) * np.cos(direction) + (y - 16) * np.sin(direction)) / 45 + 0.5
    a, b = _colour(rng), _colour(rng)
    return a + (b - a) * t[..., None]


def _clutter(rng, image, x, y):
    """Thin strokes and specks that belong to no class."""
    for _ in range(rng.integers(1, 5)):
        cx, cy, angle = rng.uniform(0, SIZE), rng.uniform(0, SIZE), rng.uniform(0, np.pi)
        along = (x - cx) * np.cos(angle) + (y - cy) * np.sin(angle)
        across = (y - cy) * np.cos(angle) - (x - cx) * np.sin(angle)
        length, width = rng.uniform(1, 7), rng.uniform(0.4, 1.1)
        cover = np.clip(np.minimum(length - np.abs(along), width - np.abs(across)) + 0.5, 0, 1)[..., None]
        image = image * (1 - cover) + _colour(rng) * cover
    return image


def _texture(rng, u, v):
    """A pattern in 0..1 that mixes the two colours of the shape."""
    kind = rng.integers(4)
    frequency, phase = rng.uniform(2, 5), rng.uniform(0, 2 * np.pi)
    if kind == 0:
        return np.zeros_like(u)
    if kind == 1:
        return 0.5 + 0.5 * np.sin(frequency * 2 * u + phase)
    if kind == 2:
        return 0.5 + 0.5 * np.sin(frequency * 1.6 * u + phase) * np.sin(frequency * 1.6 * v)
    return np.clip(0.5 + 0.5 * u, 0, 1)


def draw(rng, label):
    """One picture, u8[32][32][3], of the class."""
    y, x = np.mgrid[0:SIZE, 0:SIZE].astype(np.float64) + 0.5
    image = _clutter(rng, _background(rng, x, y), x, y)
    radius, angle = rng.uniform(7, 13), rng.uniform(0, 2 * np.pi)
    cx, cy = 16 + rng.uniform(-1, 1, 2) * (15 - radius)
    u = ((x - cx) * np.cos(angle) + (y - cy) * np.sin(angle)) / radius
    v = ((y - cy) * np.cos(angle) - (x - cx) * np.sin(angle)) / radius
    behind = image[int(cy), int(cx)]
    first = _colour(rng)
    while np.abs(first - behind).sum() < 165:
        first = _colour(rng)
    second = first + (_colour(rng) - first) * 0.35
    paint = first + (second - first) * _texture(rng, u, v)[..., None]
    cover = np.clip(shape_field(CLASSES[label], u, v) * radius + 0.5, 0, 1)[..., None]
    image = image * (1 - cover) + paint * cover
    image = image + rng.normal(0, rng.uniform(3, 21), image.shape)
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)


def make_set(seed, count):
    """u8[count][32][32][3] and labels; the classes take turns."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % len(CLASSES)
    return np.stack([draw(rng, int(label)) for label in labels]), labels
