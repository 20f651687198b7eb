/* Counts the pixels of each class, sample by sample. */
#include "eval/sets/maps.h"

#include "eval/sets/boxes.h"
#include "eval/metrics/class_sums.h"
#include "base/bytes.h"

#include "base/mem.h"

#include <math.h>

enum { MOST_CLASSES = 1 << 20 };

typedef struct counted {
    uint32_t sample, class_number, hit, extra, missed;
} counted;

typedef struct maps {
    oct_set base;
    counted *v;
    size_t n, cap, classes;
    uint32_t *sums; /* [3][room]: counts of a sample */
    size_t room;
} maps;

/* What is read from an output: scores [classes][h][w] or [h][w][classes], or class numbers [h][w]. */
typedef struct plane {
    const float *v;
    size_t classes, h, w, class_step, pixel_step; /* classes is 0 for class numbers */
    const oct_decode *rule;
} plane;

static oct_status open_plane(const oct_decode *r, const oct_set_view *v, plane *p, oct_err *err)
{
    const oct_set_tensor *t;
    OCT_TRY(oct_output_find(&r->output, 0, v->out, v->n_out, &t, err));
    if (t->rank != 2 && t->rank != 3)
        return oct_fail(err, OCT_EUSAGE,
                        "output '%s' has %d dimensions for a sample; a map has [C,H,W], or [H,W] of class numbers",
                        t->name, t->rank);
    const int64_t *d = t->dims, none = 0;
    const bool last = t->rank == 3 && r->classes_last;
    const int64_t c = t->rank == 2 ? none : last ? d[2] : d[0];
    *p = (plane){ .v = t->v, .classes = (size_t)c, .rule = r };
    p->h = (size_t)(t->rank == 2 || last ? d[0] : d[1]);
    p->w = (size_t)(t->rank == 2 || last ? d[1] : d[2]);
    p->class_step = last ? 1 : p->h * p->w;
    p->pixel_step = last ? p->classes : 1;
    if (p->classes == 1 && !r->has_threshold)
        p->classes = 0;
    return p->h && p->w ? OCT_OK : oct_fail(err, OCT_EMALFORMED, "output '%s' is empty", t->name);
}

static double score_at(const plane *p, size_t c, size_t y, size_t x)
{
    return p->v[c * p->class_step + (y * p->w + x) * p->pixel_step];
}

/* A position that is on a pixel except for rounding is moved onto it. So classes with equal scores, as quantized ones
 * often have, stay equal. */
static double on_pixel(double x)
{
    const double near = rint(x);
    return fabs(x - near) < 1e-9 ? near : x;
}

/* Interpolates between pixels as PyTorch does without aligned corners. u and v: 0 to 1 across the map. */
static double score_between(const plane *p, size_t c, double u, double v)
{
    const double x = on_pixel(fmax(u * (double)p->w - 0.5, 0)), y = on_pixel(fmax(v * (double)p->h - 0.5, 0));
    const size_t x0 = (size_t)x < p->w ? (size_t)x : p->w - 1, y0 = (size_t)y < p->h ? (size_t)y : p->h - 1;
    const size_t x1 = x0 + 1 < p->w ? x0 + 1 : x0, y1 = y0 + 1 < p->h ? y0 + 1 : y0;
    const double fx = x - (double)x0, fy = y - (double)y0;
    return (1 - fy) * ((1 - fx) * score_at(p, c, y0, x0) + fx * score_at(p, c, y0, x1)) +
           fy * ((1 - fx) * score_at(p, c, y1, x0) + fx * score_at(p, c, y1, x1));
}

/* The class at a position; -1: the number there is not a class, or no score is a number. */
static int64_t class_at(const plane *p, double u, double v)
{
    const size_t x = (size_t)(u * (double)p->w), y = (size_t)(v * (double)p->h);
    size_t best = 0;
    double most = NAN;
    if (!p->classes) {
        const double number = rint(score_at(p, 0, y, x));
        return number >= 0 && number < MOST_CLASSES ? (int64_t)number : -1;
    }
    for (size_t c = 0; c < p->classes; c++) {
        const double s = p->rule->bilinear ? score_between(p, c, u, v) : score_at(p, c, y, x);
        if (s > most || (isnan(most) && !isnan(s))) {
            most = s;
            best = c;
        }
    }
    if (isnan(most))
        return -1;
    return p->classes == 1 ? most > p->rule->threshold : (int64_t)best;
}

/* Makes room for the counts of n classes, which are zero. */
static oct_status reserve(maps *m, size_t n, oct_err *err)
{
    if (n > m->room) {
        const size_t room = n > 2 * m->room ? n : 2 * m->room;
        uint32_t *sums = oct_calloc(3 * room, sizeof *sums);
        if (!sums)
            return oct_nomem(err);
        for (size_t k = 0; k < 3; k++)
            for (size_t i = 0; i < m->room; i++)
                sums[k * room + i] = m->sums[k * m->room + i];
        oct_free(m->sums);
        m->sums = sums;
        m->room = room;
    }
    m->classes = n > m->classes ? n : m->classes;
    m->base.scratch = OCT_SUMS_OF_CLASS * m->classes;
    return OCT_OK;
}

/* The position of the centre of a pixel of the truth in the output, from 0 to 1. */
typedef struct place {
    double sx, tx, sy, ty;
} place;

/* A map with the size of the stored picture is placed like the picture. Another map covers the model's input. */
static oct_status place_truth(const oct_set_view *v, int64_t h, int64_t w, place *p, oct_err *err)
{
    double in_w, in_h;
    *p = (place){ 1 / (double)w, 0, 1 / (double)h, 0 };
    if (!v->source || !v->batch->pictures[v->row].w || v->batch->pictures[v->row].w != w ||
        v->batch->pictures[v->row].h != h)
        return OCT_OK;
    OCT_TRY(oct_boxes_input_size(v, &in_w, &in_h, err));
    const oct_placing g = oct_source_placing(v->source, v->batch->pictures[v->row]);
    *p = (place){ g.sx / in_w, g.tx / in_w, g.sy / in_h, g.ty / in_h };
    return OCT_OK;
}

static oct_status count_pixels(maps *m, const plane *p, const place *at, const int32_t *truth, int64_t h, int64_t w,
                               oct_err *err)
{
    const int64_t ignore = m->base.judging->rule->ignore;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            const int64_t label = truth[y * w + x];
            const double u = ((double)x + 0.5) * at->sx + at->tx, v = ((double)y + 0.5) * at->sy + at->ty;
            if (label == ignore || label < 0 || !(u >= 0 && u < 1 && v >= 0 && v < 1))
                continue;
            if (label >= MOST_CLASSES || (p->classes > 1 && label >= (int64_t)p->classes))
                return oct_fail(err, OCT_EMALFORMED, "class %lld in the map, and the model has %zu (counted from 0)",
                                (long long)label, p->classes);
            const int64_t got = class_at(p, u, v), most = got > label ? got : label;
            OCT_TRY(reserve(m, (size_t)most + 1, err));
            if (got == label) {
                m->sums[label]++;
                continue;
            }
            m->sums[2 * m->room + (size_t)label]++;
            if (got >= 0)
                m->sums[m->room + (size_t)got]++;
        }
    return OCT_OK;
}

/* Stores the counts of the sample, and zeroes them. */
static oct_status keep_sums(maps *m, oct_err *err)
{
    for (size_t c = 0; c < m->classes; c++) {
        uint32_t *s = m->sums + c;
        const counted k = { (uint32_t)m->base.n, (uint32_t)c, s[0], s[m->room], s[2 * m->room] };
        if (!(k.hit | k.extra | k.missed))
            continue;
        if (!OCT_SET_GROW(m->v, m->n, m->cap))
            return oct_nomem(err);
        m->v[m->n++] = k;
        s[0] = s[m->room] = s[2 * m->room] = 0;
    }
    m->base.n++;
    return OCT_OK;
}

static oct_status maps_add(oct_set *s, const oct_set_view *v, oct_err *err)
{
    maps *m = (maps *)s;
    plane p = { 0 };
    place at;
    int32_t *truth;
    int64_t h, w;
    OCT_TRY(open_plane(s->judging->rule, v, &p, err));
    OCT_TRY(oct_truth_map(s->judging->truth, v->name, v->index, &truth, &h, &w, err));
    oct_status st = place_truth(v, h, w, &at, err);
    if (st == OCT_OK)
        st = count_pixels(m, &p, &at, truth, h, w, err);
    oct_free(truth);
    return st == OCT_OK ? keep_sums(m, err) : st;
}

static void maps_release(oct_set *s)
{
    oct_free(((maps *)s)->v);
    oct_free(((maps *)s)->sums);
}

/* Writes the counts of classes for each sample. */
static void maps_save(oct_set *s, oct_buf *b)
{
    maps *m = (maps *)s;
    oct_buf_add_u64(b, s->n);
    oct_buf_add_u64(b, m->n);
    for (size_t i = 0; i < m->n; i++) {
        const counted *k = &m->v[i];
        oct_buf_add_u32(b, k->sample);
        oct_buf_add_u32(b, k->class_number);
        oct_buf_add_u32(b, k->hit);
        oct_buf_add_u32(b, k->extra);
        oct_buf_add_u32(b, k->missed);
    }
    s->n = m->n = 0;
}

static oct_status maps_load(oct_set *s, oct_bytes *r, oct_err *err)
{
    maps *m = (maps *)s;
    const size_t before = s->n;
    const uint64_t samples = oct_bytes_u64(r);
    const size_t n = oct_bytes_count(r, 20);
    r->bad |= samples > 1 || (n && !samples) || before >= UINT32_MAX;
    for (size_t i = 0; i < n && !r->bad; i++) {
        counted k = { .sample = oct_bytes_u32(r) };
        k.class_number = oct_bytes_u32(r);
        k.hit = oct_bytes_u32(r);
        k.extra = oct_bytes_u32(r);
        k.missed = oct_bytes_u32(r);
        r->bad |= k.sample != 0 || k.class_number >= MOST_CLASSES;
        if (r->bad)
            return OCT_OK;
        k.sample = (uint32_t)before;
        OCT_TRY(reserve(m, (size_t)k.class_number + 1, err));
        if (!OCT_SET_GROW(m->v, m->n, m->cap))
            return oct_nomem(err);
        m->v[m->n++] = k;
    }
    s->n += r->bad ? 0 : (size_t)samples;
    return OCT_OK;
}

const oct_set_type oct_set_of_maps = { sizeof(maps), maps_add, NULL, maps_release, maps_save, maps_load };

static oct_class_sums sums_of(const maps *m, const double *draws, double *scratch)
{
    const oct_class_sums sums = oct_class_sums_in(scratch, m->classes);
    for (size_t i = 0; i < m->n; i++) {
        const counted *c = &m->v[i];
        const double w = draws ? draws[c->sample] : 1;
        sums.hit[c->class_number] += w * c->hit;
        sums.extra[c->class_number] += w * c->extra;
        sums.missed[c->class_number] += w * c->missed;
    }
    return sums;
}

double oct_maps_miou(const oct_set *s, const double *draws, double *scratch)
{
    const oct_class_sums sums = sums_of((const maps *)s, draws, scratch);
    return oct_share_mean(OCT_SHARE_IOU, &sums);
}

oct_status oct_maps_table(const oct_set *s, oct_arena *arena, oct_class_table *t, oct_err *err)
{
    const maps *m = (const maps *)s;
    *t = (oct_class_table){ .counts = "pixels", .own = "iou" };
    double *scratch = oct_arena_calloc(arena, s->scratch + 1, sizeof *scratch);
    t->row = oct_arena_calloc(arena, m->classes + 1, sizeof *t->row);
    if (!scratch || !t->row)
        return oct_nomem(err);
    const oct_class_sums sums = sums_of(m, NULL, scratch);
    for (size_t i = 0; i < sums.n; i++)
        oct_class_row_add(t, (int64_t)i, sums.hit[i], sums.extra[i], sums.missed[i],
                          oct_share_of(OCT_SHARE_IOU, sums.hit[i], sums.extra[i], sums.missed[i]));
    return OCT_OK;
}
