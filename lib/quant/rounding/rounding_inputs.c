/* Gathers the inputs of the layers that are rounded, from the float model. A hash chooses positions spread over the
 * samples. */
#include "quant/rounding/rounding_int.h"

#include "quant/simulate/simulate_int.h"

#include <string.h>

static uint64_t mix(uint64_t x) /* the finalizer of splitmix64 */
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/* Copies the inputs at some positions to columns of x from `row` on. They are copied for several positions at once,
 * because the inputs of one position are far apart there. at: by position, the start in each dimension; t has type
 * f32. */
enum { PATCHES = 16 };
static void take_patches(const rlayer *x, const oct_window *w, const oct_operand *t, const int64_t *strides,
                         int64_t (*at)[OCT_MAX_RANK], int n, int64_t row)
{
    const float *data = t->data, *from[PATCHES];
    const int64_t ins = x->l.ins / x->l.groups;
    for (int64_t tap = 0; tap < x->l.taps; tap++) {
        for (int i = 0; i < n; i++) {
            int64_t rest = tap, offset = at[i][0] * strides[0];
            bool inside = true;
            for (int d = w->n - 1; d >= 0; d--) {
                const int64_t p = at[i][d + 2] + rest % w->kernel[d] * w->dilation[d];
                rest /= w->kernel[d];
                inside &= p >= 0 && p < t->dims[d + 2];
                offset += p * strides[d + 2];
            }
            from[i] = inside ? data + offset : NULL;
        }
        for (int64_t c = 0, at_group = 0, of_group = 0; c < x->l.ins; c++) {
            float *to = x->x + (at_group + of_group * x->l.taps + tap) * x->rows + row;
            for (int i = 0; i < n; i++)
                to[i] = from[i] ? from[i][c * strides[1]] : 0;
            if (++of_group == ins) {
                of_group = 0;
                at_group += x->depth;
            }
        }
    }
}

static bool collect_conv(const rlayer *x, const rmember *m, const oct_operand *t, uint64_t seed, int64_t first,
                         int64_t rows)
{
    int64_t strides[OCT_MAX_RANK], out[OCT_SPATIAL_MAX], at[PATCHES][OCT_MAX_RANK], positions = 1;
    oct_window w = m->window;
    if (t->rank != w.n + 2 || t->dims[1] != x->l.ins)
        return false;
    for (int d = 0; d < w.n; d++) {
        if (oct_window_fit(&w, d, t->dims[d + 2], &out[d], NULL) != OCT_OK)
            return false;
        positions *= out[d];
    }
    oct_operand_strides(t, strides);
    for (int64_t i = 0; i < rows; i++) {
        int64_t *to = at[i % PATCHES], p = (int64_t)(mix(seed + (uint64_t)i) % (uint64_t)(positions * t->dims[0]));
        for (int d = w.n - 1; d >= 0; d--) {
            to[d + 2] = p % out[d] * w.stride[d] - w.before[d];
            p /= out[d];
        }
        to[0] = p;
        if (i % PATCHES == PATCHES - 1 || i == rows - 1)
            take_patches(x, &w, t, strides, at, (int)(i % PATCHES) + 1, first + i - i % PATCHES);
    }
    return true;
}

static bool collect_rows(const rlayer *x, const rmember *m, const oct_operand *t, uint64_t seed, int64_t first,
                         int64_t rows)
{
    int64_t strides[OCT_MAX_RANK];
    const int axis = m->axis < 0 ? t->rank + m->axis : m->axis;
    const float *data = t->data;
    if (axis < 0 || axis >= t->rank || t->dims[axis] != x->l.ins)
        return false;
    oct_operand_strides(t, strides);
    for (int64_t i = 0; i < rows; i++) {
        int64_t p = (int64_t)(mix(seed + (uint64_t)i) % (uint64_t)(t->count / t->dims[axis])), offset = 0;
        for (int d = t->rank - 1; d >= 0; d--)
            if (d != axis) {
                offset += p % t->dims[d] * strides[d];
                p /= t->dims[d];
            }
        for (int64_t c = 0; c < x->l.ins; c++)
            x->x[c * x->rows + first + i] = data[offset + c * strides[axis]];
    }
    return true;
}

const bool *oct_rounder_wants(rounder *r)
{
    memset(r->wanted, 0, r->j->n_values * sizeof *r->wanted);
    for (size_t i = r->from; i < r->to; i++)
        for (size_t k = 0; k < r->layer[i].n_member; k++)
            r->wanted[r->j->g->node[r->layer[i].member[k].node].in[0]] = true;
    return r->wanted;
}

/* The rows of a share: member k of sample i has share i * n_member + k. */
static void find_rows(const rounder *r, const rlayer *x, size_t part, int64_t *first, int64_t *rows)
{
    const int64_t parts = (int64_t)(r->s->n_samples * x->n_member);
    *first = (int64_t)part * x->rows / parts;
    *rows = ((int64_t)part + 1) * x->rows / parts - *first;
}

/* May run on any thread: each sample has rows of its own. */
void oct_rounder_collect(void *arg, size_t sample, size_t tap, const oct_operand *t)
{
    rounder *r = arg;
    for (size_t i = r->from; i < r->to; i++) {
        rlayer *x = &r->layer[i];
        for (size_t k = 0; k < x->n_member; k++) {
            const rmember *m = &x->member[k];
            const size_t part = sample * x->n_member + k;
            if (m->tap != tap || t->dtype != OCT_F32 || t->count == 0)
                continue;
            int64_t first, rows;
            const uint64_t seed = mix((uint64_t)m->node) + ((uint64_t)sample << 32);
            find_rows(r, x, part, &first, &rows);
            x->collected[part] = (x->kernel ? collect_conv : collect_rows)(x, m, t, seed, first, rows);
        }
    }
}

void oct_rounder_clear_missing(const rounder *r, const rlayer *x)
{
    int64_t first, rows;
    if (r->s->n_samples == 0) /* one sample alone judges */
        memset(x->x, 0, (size_t)(x->l.groups * x->depth * x->rows) * sizeof *x->x);
    for (size_t i = 0; i < r->s->n_samples * x->n_member; i++) {
        find_rows(r, x, i, &first, &rows);
        for (int64_t c = 0; !x->collected[i] && c < x->l.groups * x->depth; c++)
            memset(x->x + c * x->rows + first, 0, (size_t)rows * sizeof *x->x);
    }
}
