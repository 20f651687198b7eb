/* Dead leaves and correlated noise, by basic arithmetic alone, so that no C library changes a number. */
#include "data/source/synthetic.h"

#include "data/source/choice.h"

#include <math.h>

enum { LEAVES = 160, OPEN_SIDE = 224, MOST_CHANNELS = 4 };

/* ---- random numbers ---- */

typedef struct dice {
    uint64_t seed, thrown;
} dice;

/* In [0, 1). */
static float throw_between(dice *d, float lo, float hi)
{
    const uint64_t h = oct_place_hash(d->seed + ++d->thrown * 0x9E3779B97F4A7C15u);
    return lo + (hi - lo) * (float)(h >> 40) * 0x1p-24f;
}

/* Of mean 0 and deviation 1, nearly normal: a sum of twelve. */
static float throw_normal(dice *d)
{
    float sum = -6;
    for (int i = 0; i < 12; i++)
        sum += throw_between(d, 0, 1);
    return sum;
}

static dice new_dice(uint64_t index)
{
    return (dice){ oct_place_hash(index + 1), 0 };
}

/* ---- pictures ---- */

typedef struct leaf {
    bool disc;
    float x, y, radius, across; /* across: of a rectangle, relative to its radius */
    float cos, sin;             /* of its direction */
    float colour[MOST_CHANNELS], shade_x, shade_y;
    float texture, wave_x, wave_y, phase;
} leaf;

/* A direction from the rational points of the circle. */
static void turn(dice *d, float *c, float *s)
{
    const float t = throw_between(d, -1, 1), n = 1 + t * t;
    *c = (1 - t * t) / n;
    *s = 2 * t / n;
}

static float within(float x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

/* at: 0 of the hindmost, which is the largest. Radii have density r^-3 nearly, as sizes in photographs. */
static leaf throw_leaf(dice *d, int at, int h, int w, int c, const float *palette)
{
    const float side = (float)(h > w ? h : w), order = ((float)at + throw_between(d, 0, 1)) / LEAVES;
    leaf l = { .disc = at % 2 == 0, .x = throw_between(d, 0, (float)w), .y = throw_between(d, 0, (float)h) };
    l.radius = fmaxf(0.6f * side / (1 + order * (side / 4 - 1)), 1.5f);
    l.across = throw_between(d, 0.2f, 1);
    turn(d, &l.cos, &l.sin);
    const float bright = 0.15f * throw_normal(d);
    for (int k = 0; k < c; k++)
        l.colour[k] = within(0.5f * palette[k] + throw_between(d, 0, 0.5f) + bright);
    l.shade_x = 0.15f * throw_normal(d) / (l.radius + 1);
    l.shade_y = 0.15f * throw_normal(d) / (l.radius + 1);
    l.texture = throw_between(d, 0, 0.15f);
    float cos, sin;
    turn(d, &cos, &sin);
    const float wave = throw_between(d, 0.05f, 0.32f); /* of a period in a pixel */
    l.wave_x = wave * cos;
    l.wave_y = wave * sin;
    l.phase = throw_between(d, 0, 1);
    return l;
}

/* A wave of straight flanks between -1 and 1. */
static float triangle(float x)
{
    const float t = x - floorf(x);
    return fabsf(4 * t - 2) - 1;
}

static bool covers(const leaf *l, float x, float y)
{
    if (l->disc)
        return x * x + y * y < l->radius * l->radius;
    return fabsf(x * l->cos + y * l->sin) < l->radius && fabsf(y * l->cos - x * l->sin) < l->radius * l->across;
}

static int bounded(float x, int most)
{
    return x < 0 ? 0 : x > (float)most ? most : (int)x;
}

static void paint(const leaf *l, int h, int w, int c, uint8_t *pixels)
{
    const float reach = l->disc ? l->radius : 1.42f * l->radius;
    const int y0 = bounded(l->y - reach, h), y1 = bounded(l->y + reach + 1, h), x0 = bounded(l->x - reach, w),
              x1 = bounded(l->x + reach + 1, w);
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) {
            const float dx = (float)x - l->x, dy = (float)y - l->y;
            if (!covers(l, dx, dy))
                continue;
            const float light =
                dx * l->shade_x + dy * l->shade_y + l->texture * triangle(dx * l->wave_x + dy * l->wave_y + l->phase);
            for (int k = 0; k < c; k++)
                pixels[((size_t)y * (size_t)w + (size_t)x) * (size_t)c + (size_t)k] =
                    (uint8_t)(255 * within(l->colour[k] + light) + 0.5f);
        }
}

void oct_synthetic_picture(uint64_t index, int h, int w, int c, uint8_t *pixels)
{
    dice d = new_dice(index);
    const size_t n = (size_t)h * (size_t)w * (size_t)c;
    float palette[MOST_CHANNELS], ground[MOST_CHANNELS];
    for (int k = 0; k < c; k++) {
        palette[k] = throw_between(&d, 0, 1);
        ground[k] = throw_between(&d, 0, 1);
    }
    for (size_t i = 0; i < n; i++)
        pixels[i] = (uint8_t)(255 * ground[i % (size_t)c]);
    for (int i = 0; i < LEAVES; i++) {
        const leaf l = throw_leaf(&d, i, h, w, c, palette);
        paint(&l, h, w, c, pixels);
    }
    for (size_t i = 0; i < n; i++) /* noise of a sensor, a fiftieth of the range */
        pixels[i] = (uint8_t)(255 * within((float)pixels[i] / 255 + throw_between(&d, -0.035f, 0.035f)) + 0.5f);
}

bool oct_synthetic_is_picture(const oct_input_desc *in, int *h, int *w, int *c)
{
    if (in->rank != 4 || (in->dtype != OCT_F32 && in->dtype != OCT_F16 && in->dtype != OCT_U8))
        return false;
    const int64_t *d = in->dims, first = d[1], last = d[3];
    const bool front = first >= 1 && first <= MOST_CHANNELS;
    if (!front && !(last >= 1 && last <= MOST_CHANNELS))
        return false;
    const int64_t high = front ? d[2] : d[1], wide = front ? d[3] : d[2];
    *c = (int)(front ? first : last);
    *h = high > 0 && high <= 1 << 14 ? (int)high : OPEN_SIDE;
    *w = wide > 0 && wide <= 1 << 14 ? (int)wide : OPEN_SIDE;
    return true;
}

/* ---- rows ---- */

/* How strong a feature is varies: an amplitude for each run of neighbours, of mean square 1, gives numbers the longer
 * tails of activations (a kurtosis of 4, where a normal distribution has 3). */
void oct_synthetic_row(uint64_t index, bool mirrored, size_t n, size_t length, float *x)
{
    dice d = new_dice(index);
    const float sign = mirrored ? -1 : 1;
    float last = 0, amplitude = 1;
    for (size_t i = 0; i < n; i++) {
        const float fresh = throw_normal(&d);
        if (i % length == 0)
            amplitude = sign * throw_between(&d, 0.4f, 1.497f);
        last = i % length == 0 ? fresh : 0.9f * last + 0.43588989f * fresh; /* the square root of 1 - 0.9^2 */
        x[i] = amplitude * last;
    }
}
