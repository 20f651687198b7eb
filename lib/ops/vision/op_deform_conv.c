/* lib/ops/vision/op_deform_conv.c -- DeformConv: a convolution whose taps lie at computed places between pixels.
 *
 * For a block of output pixels the values under all taps are interpolated into rows [tap][channel of the group]; a
 * product with the weights follows. Channels last, one to three spatial dimensions. */
#include "kernels/sgemm/sgemm.h"
#include "kernels/rows.h"
#include "ops/core/args.h"
#include "ops/nn/window.h"
#include "ops/vision/sample.h"

#include <string.h>

enum { X, W, OFFSET, BIAS, MASK, BLOCK = 32 };

static const oct_operand *input(const oct_step *s, int slot)
{
    return slot < s->n_in ? s->in[slot] : NULL;
}

typedef struct deform {
    oct_window w;
    int64_t groups, offset_groups;
    int64_t channels, outputs; /* of a group */
    int64_t taps, pixels, source_pixels;
    oct_sgemm gemm;
    size_t packed;                                   /* bytes of one group's packed weights */
    char *weights;                                   /* packed, or NULL: packed in each run, at packed_at */
    size_t packed_at, sorted_at, kernel_at, rows_at; /* scratch; the last two once a thread, `slot` apart */
    size_t slot;
    int threads;
} deform;

static oct_status deform_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, X), w = oct_in_shape(c, W), o = oct_in_shape(c, OFFSET);
    const int64_t groups = oct_node_int(oct_in_node(c), "group", 1),
                  og = oct_node_int(oct_in_node(c), "offset_group", 1);
    oct_window win;
    oct_out_dtype(c, 0, oct_in_dtype(c, X));
    if (x.rank < 0 || w.rank < 0)
        return OCT_OK;
    if (w.rank < 3 || x.rank != w.rank || (o.rank >= 0 && o.rank != x.rank))
        return oct_fail(err, OCT_EMALFORMED, "input, weights and offsets have %d, %d and %d dimensions", x.rank, w.rank,
                        o.rank);
    if (groups < 1 || og < 1 || groups > INT32_MAX || og > INT32_MAX ||
        (x.d[1].n >= 0 && (x.d[1].n % og != 0 || x.d[1].n % groups != 0)) ||
        (x.d[1].n >= 0 && w.d[1].n >= 0 && x.d[1].n / groups != w.d[1].n) || (w.d[0].n >= 0 && w.d[0].n % groups != 0))
        return oct_fail(err, OCT_EMALFORMED,
                        "%lld channels and weights for %lld do not divide into %lld groups, or %lld of offsets",
                        (long long)x.d[1].n, (long long)w.d[1].n, (long long)groups, (long long)og);
    OCT_TRY(oct_window_of_weights(oct_in_node(c), w, &win, err));
    return oct_window_infer(c, &win, w.d[0], 0, err);
}

/* ------------------------------------------------------------------ preparing */

static oct_status check_side(const oct_step *s, const deform *d, int slot, int64_t channels, oct_err *err)
{
    const oct_operand *t = input(s, slot), *y = s->out[0];
    bool ok = t == NULL || (t->rank == y->rank && t->dims[0] == y->dims[0] && t->dims[1] == channels);
    for (int i = 2; ok && t != NULL && i < y->rank; i++)
        ok = t->dims[i] == y->dims[i];
    return ok ? OCT_OK
              : oct_fail(err, OCT_EMALFORMED, "input %d does not have %lld channels of the output's size", slot,
                         (long long)channels);
}

static oct_status deform_read(const oct_step *s, deform *d, oct_err *err)
{
    const oct_operand *x = s->in[X], *w = s->in[W], *y = s->out[0];
    oct_dim wd[OCT_MAX_RANK];
    int64_t size;
    for (int i = 0; i < w->rank; i++)
        wd[i] = oct_dim_of(w->dims[i]);
    OCT_TRY(oct_window_of_weights(s->node, (oct_shape){ w->rank, wd }, &d->w, err));
    for (int i = 0; i < d->w.n; i++)
        OCT_TRY(oct_window_fit(&d->w, i, x->dims[2 + i], &size, err)); /* fills the pads of auto_pad */
    d->groups = oct_node_int(s->node, "group", 1);
    d->offset_groups = oct_node_int(s->node, "offset_group", 1);
    d->channels = x->dims[1] / d->groups;
    d->outputs = w->dims[0] / d->groups;
    if (!oct_count(d->w.kernel, d->w.n, &d->taps) || !oct_count(y->dims + 2, d->w.n, &d->pixels) ||
        !oct_count(x->dims + 2, d->w.n, &d->source_pixels))
        return oct_nomem(err);
    OCT_TRY(check_side(s, d, OFFSET, d->offset_groups * d->taps * d->w.n, err));
    OCT_TRY(check_side(s, d, MASK, d->offset_groups * d->taps, err));
    if (input(s, BIAS) != NULL && input(s, BIAS)->count != w->dims[0])
        return oct_fail(err, OCT_EMALFORMED, "the bias does not have one value for each of %lld channels",
                        (long long)w->dims[0]);
    return OCT_OK;
}

static bool take(size_t *sum, size_t bytes, size_t *at)
{
    *at = *sum;
    return oct_add_size(bytes, 63, &bytes) && oct_add_size(*sum, bytes & ~(size_t)63, sum);
}

/* The weights of a group: f32[outputs][channels][taps] to [taps][channels][outputs], packed. sorted: room for them. */
static void pack_group(const deform *d, const float *w, int64_t group, float *sorted, void *packed)
{
    const int64_t n = d->outputs, c = d->channels;
    w += group * n * c * d->taps;
    for (int64_t o = 0; o < n; o++)
        for (int64_t i = 0; i < c; i++)
            for (int64_t t = 0; t < d->taps; t++)
                sorted[(t * c + i) * n + o] = w[(o * c + i) * d->taps + t];
    oct_sgemm_pack(&d->gemm, sorted, (ptrdiff_t)n, 1, packed);
}

static oct_status pack_weights(const oct_step *s, deform *d, const oct_prep *p, oct_err *err)
{
    size_t bytes;
    oct_arena *temp = oct_arena_create();
    float *sorted =
        temp != NULL ? oct_arena_alloc(temp, (size_t)(d->taps * d->channels * d->outputs) * sizeof(float) + 1) : NULL;
    if (sorted != NULL && oct_mul_size(d->packed, (size_t)d->groups, &bytes))
        d->weights = oct_arena_aligned(p->arena, bytes + 1, 64);
    for (int64_t g = 0; sorted != NULL && d->weights != NULL && g < d->groups; g++)
        pack_group(d, s->in[W]->data, g, sorted, d->weights + (size_t)g * d->packed);
    oct_arena_destroy(temp);
    return d->weights != NULL ? OCT_OK : oct_nomem(err);
}

static oct_status deform_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    deform *d = oct_arena_calloc(p->arena, 1, sizeof *d);
    if (d == NULL)
        return oct_nomem(err);
    s->state = d;
    OCT_TRY(oct_step_types(s, OCT_F32, 0, err));
    if (s->out[0]->count == 0)
        return OCT_OK;
    OCT_TRY(deform_read(s, d, err));
    const int64_t depth = d->taps * d->channels;
    size_t row;
    d->threads = p->threads;
    OCT_TRY(oct_sgemm_prepare(&d->gemm, 0, (size_t)d->outputs, (size_t)depth, 1, err));
    d->packed = oct_round_up(d->gemm.packed_size, 64);
    if (s->in[W]->constant)
        OCT_TRY(pack_weights(s, d, p, err));
    const bool fixed = d->weights != NULL;
    size_t all;
    if (!oct_mul_size(d->packed, (size_t)d->groups, &all) ||
        !oct_mul_size((size_t)depth, BLOCK * sizeof(float), &row) ||
        !take(&s->scratch, fixed ? 0 : all, &d->packed_at) ||
        !take(&s->scratch, fixed ? 0 : (size_t)(depth * d->outputs) * sizeof(float), &d->sorted_at) ||
        !take(&d->slot, d->gemm.scratch_size, &d->kernel_at) || !take(&d->slot, row, &d->rows_at) ||
        !oct_mul_size(d->slot, (size_t)p->threads, &all) || !take(&s->scratch, all, &d->kernel_at))
        return oct_nomem(err);
    d->rows_at = d->kernel_at + oct_round_up(d->gemm.scratch_size, 64);
    return OCT_OK;
}

/* ------------------------------------------------------------------ running */

typedef struct job {
    const deform *d;
    const oct_step *s;
    char *scratch;
    const char *weights;
    int64_t blocks; /* of an image */
} job;

/* Where a tap of an output pixel looks: joined taps, weighted by the mask. */
static int place(const job *j, int64_t image, int64_t pixel, int64_t og, int64_t tap, oct_tap *taps)
{
    const deform *d = j->d;
    const oct_operand *x = j->s->in[X], *y = j->s->out[0], *mask = input(j->s, MASK);
    const float *offset =
        (const float *)j->s->in[OFFSET]->data + ((image * d->offset_groups + og) * d->taps + tap) * d->w.n * d->pixels;
    oct_axis_taps axis[OCT_SAMPLE_DIMS];
    int64_t at = pixel, in_kernel = tap;
    for (int i = d->w.n - 1; i >= 0; i--) {
        const int64_t o = at % y->dims[2 + i], k = in_kernel % d->w.kernel[i];
        const int64_t whole = o * d->w.stride[i] - d->w.before[i] + k * d->w.dilation[i];
        oct_taps_linear((double)((float)whole + offset[i * d->pixels + pixel]), x->dims[2 + i], &axis[i]);
        at /= y->dims[2 + i];
        in_kernel /= d->w.kernel[i];
    }
    const int n = oct_taps_join(axis, x->dims + 2, d->w.n, taps);
    for (int i = 0; mask != NULL && i < n; i++)
        taps[i].weight *=
            (double)((const float *)mask->data)[((image * d->offset_groups + og) * d->taps + tap) * d->pixels + pixel];
    return n;
}

/* One row [tap][channel] of a group. */
static void gather(const job *j, int64_t image, int64_t pixel, int64_t group, float *row)
{
    const deform *d = j->d;
    const int64_t all = j->s->in[X]->dims[1], per_offset = all / d->offset_groups;
    const float *x = (const float *)j->s->in[X]->data + image * d->source_pixels * all;
    memset(row, 0, (size_t)(d->taps * d->channels) * sizeof *row);
    for (int64_t t = 0; t < d->taps; t++)
        for (int64_t c = 0; c < d->channels;) { /* channels of one offset group at a time */
            const int64_t first = group * d->channels + c, og = first / per_offset;
            const int64_t rest = (og + 1) * per_offset - first, n = rest < d->channels - c ? rest : d->channels - c;
            oct_tap taps[OCT_SAMPLE_TAPS];
            float *to = row + t * d->channels + c;
            for (int k = 0, count = place(j, image, pixel, og, t, taps); k < count; k++) {
                const float *from = x + taps[k].pixel * all + first, w = (float)taps[k].weight;
                for (int64_t i = 0; i < n; i++)
                    to[i] += w * from[i];
            }
            c += n;
        }
}

static void blocks(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *j = arg;
    const deform *d = j->d;
    const int64_t depth = d->taps * d->channels, all = d->groups * d->outputs;
    char *kernel = j->scratch + d->kernel_at + thread * d->slot;
    float *rows = (float *)(void *)(j->scratch + d->rows_at + thread * d->slot);
    for (size_t item = begin; item < end; item++) {
        const int64_t image = (int64_t)item / j->blocks, first = (int64_t)item % j->blocks * BLOCK;
        const int64_t n = d->pixels - first < BLOCK ? d->pixels - first : BLOCK;
        for (int64_t g = 0; g < d->groups; g++) {
            oct_sout out = { .bias = NULL };
            if (input(j->s, BIAS) != NULL)
                out.bias = (const float *)j->s->in[BIAS]->data + g * d->outputs;
            for (int64_t i = 0; i < n; i++)
                gather(j, image, first + i, g, rows + i * depth);
            oct_sgemm_run(&d->gemm, NULL, (size_t)n, rows, (size_t)depth, j->weights + (size_t)g * d->packed,
                          (float *)j->s->out[0]->data + (image * d->pixels + first) * all + g * d->outputs, (size_t)all,
                          &out, kernel);
        }
    }
}

static oct_status deform_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const deform *d = s->state;
    if (s->out[0]->count == 0)
        return OCT_OK;
    job j = { d, s, r->scratch, d->weights, (d->pixels + BLOCK - 1) / BLOCK };
    if (d->weights == NULL) {
        for (int64_t g = 0; g < d->groups; g++)
            pack_group(d, s->in[W]->data, g, (float *)(void *)(j.scratch + d->sorted_at),
                       j.scratch + d->packed_at + (size_t)g * d->packed);
        j.weights = j.scratch + d->packed_at;
    }
    oct_pool_for(oct_pool_threads(r->pool) > d->threads ? NULL : r->pool, (size_t)(s->out[0]->dims[0] * j.blocks), 1,
                 blocks, &j);
    return OCT_OK;
}

const oct_op oct_op_deform_conv = {
    OCT_SCHEMA("DeformConv", "", 19, 3, 5, 1, 1),
    .work = OCT_WORK_OUTPUTS,
    .weights = { .slots = 1u << 1, .out = 0, .in = 1, .data = 1, .kernel = true, .bias = 3 },
    .infer = deform_infer,
    .prepare = deform_prepare,
    .run = deform_run,
    .layout = OCT_RULE_SPATIAL,
    .widens = true,
};
