/* lib/ops/vision/op_col2im.c -- Col2Im: blocks laid back into an image of one to six dimensions, overlaps added in the
 * order of the block's elements. */
#include "ops/core/args.h"
#include "ops/core/elem.h"
#include "ops/core/nd.h"
#include "ops/nn/window.h"

#include <string.h>

enum { DIMS = OCT_MAX_RANK - 2 };

typedef struct fold {
    int n;
    int64_t image[DIMS], block[DIMS], stride[DIMS], pad[DIMS], dilation[DIMS], blocks[DIMS];
    int64_t pixels, taps, count; /* products of image, block and blocks */
} fold;

/* Reads everything for an image and blocks of n sizes. */
static oct_status read_fold(const oct_node *node, int n, const int64_t *image, const int64_t *block, fold *f,
                            oct_err *err)
{
    int64_t pads[2 * DIMS];
    f->n = n;
    OCT_TRY(oct_window_list(node, "strides", n, 1, 1, f->stride, err));
    OCT_TRY(oct_window_list(node, "dilations", n, 1, 1, f->dilation, err));
    OCT_TRY(oct_window_list(node, "pads", 2 * n, 0, 0, pads, err));
    for (int i = 0; i < n; i++) {
        f->pad[i] = pads[i];
        f->image[i] = image[i];
        f->block[i] = block[i];
        if (image[i] < 1 || block[i] < 1 || image[i] > INT32_MAX || block[i] > INT32_MAX)
            return oct_fail(err, OCT_EMALFORMED, "dimension %d: blocks of %lld in an image of %lld", i,
                            (long long)block[i], (long long)image[i]);
        int64_t room = image[i] + pads[i] + pads[n + i] - f->dilation[i] * (block[i] - 1) - 1;
        if (room < 0)
            return oct_fail(err, OCT_EMALFORMED, "dimension %d: a block of %lld does not fit an image of %lld", i,
                            (long long)block[i], (long long)image[i]);
        f->blocks[i] = room / f->stride[i] + 1;
    }
    if (!oct_count(f->image, n, &f->pixels) || !oct_count(f->block, n, &f->taps) || !oct_count(f->blocks, n, &f->count))
        return oct_fail(err, OCT_EMALFORMED, "the image is too large");
    return OCT_OK;
}

static oct_status col2im_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    int64_t image[DIMS + 1], block[DIMS + 1];
    oct_dim d[OCT_MAX_RANK];
    fold f;
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    int n = oct_in_consts(c, 1, image, DIMS + 1), m = oct_in_consts(c, 2, block, DIMS + 1);
    if (x.rank >= 0 && x.rank != 3)
        return oct_fail(err, OCT_EMALFORMED, "the input has %d dimensions, expected 3", x.rank);
    if (x.rank < 0 || n < 0 || m < 0)
        return OCT_OK;
    if (n != m || n < 1 || n > DIMS)
        return oct_fail(err, OCT_EMALFORMED, "%d sizes of the image, %d of the blocks", n, m);
    OCT_TRY(read_fold(oct_in_node(c), n, image, block, &f, err));
    if (x.d[1].n >= 0 && x.d[1].n % f.taps != 0)
        return oct_fail(err, OCT_EMALFORMED, "%lld channels are no multiple of a block of %lld", (long long)x.d[1].n,
                        (long long)f.taps);
    if (x.d[2].n >= 0 && x.d[2].n != f.count)
        return oct_fail(err, OCT_EMALFORMED, "%lld blocks, expected %lld", (long long)x.d[2].n, (long long)f.count);
    d[0] = x.d[0];
    d[1] = x.d[1].n >= 0 ? oct_dim_of(x.d[1].n / f.taps) : f.taps == 1 ? x.d[1] : (oct_dim){ -1, NULL };
    for (int i = 0; i < n; i++)
        d[2 + i] = oct_dim_of(image[i]);
    return oct_out_shape(c, 0, n + 2, d, err);
}

typedef struct job {
    fold f;
    const oct_operand *x, *y;
} job;

#define ADD(type)                   \
    for (int64_t i = 0; i < m; i++) \
        ((type *)sum)[i] = ((const type *)t)[i] + ((const type *)v)[i];

/* Adds n elements of x to n of y that lie `step` apart. */
static void add_row(const job *j, int64_t from, int64_t to, int64_t step, int64_t n)
{
    const oct_operand *x = j->x, *y = j->y;
    const oct_dom dom = oct_dom_of(y->dtype);
    oct_chunk bv, bt, bs;
    for (int64_t at = 0, m; at < n; at += m) {
        m = n - at < OCT_ND_CHUNK ? n - at : OCT_ND_CHUNK;
        const void *v = oct_elem_load(x->dtype, x->data, from + at, 1, m, &bv);
        const void *t = oct_elem_load(y->dtype, y->data, to + at * step, step, m, &bt);
        void *sum = oct_elem_buffer(y->dtype, y->data, to + at * step, step, &bs);
        switch (dom) {
        case OCT_DOM_F: ADD(float) break;
        case OCT_DOM_D: ADD(double) break;
        default: ADD(uint64_t) break;
        }
        oct_elem_store(y->dtype, y->data, to + at * step, step, m, dom, sum);
    }
}

/* Element after element of the blocks, so that each pixel's sum is in their order, a row of blocks at a time. */
static void fold_planes(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *j = arg;
    const fold *f = &j->f;
    const size_t size = oct_elem_size(j->y->dtype);
    const int last = f->n - 1;
    const int64_t length = f->blocks[last], rows = f->count / length, step = f->stride[last];
    for (int64_t plane = (int64_t)begin; plane < (int64_t)end; plane++) {
        memset((uint8_t *)j->y->data + (size_t)(plane * f->pixels) * size, 0, (size_t)f->pixels * size);
        for (int64_t k = 0; k < f->taps * rows; k++) {
            int64_t tap = k / rows, row = k % rows, at = plane * f->pixels, width = f->image[last];
            const int64_t start = tap % f->block[last] * f->dilation[last] - f->pad[last],
                          room = f->image[last] - start;
            const int64_t first = start < 0 ? (step - 1 - start) / step : 0, fit = room > 0 ? (room - 1) / step + 1 : 0;
            const int64_t n = (fit < length ? fit : length) - first;
            bool inside = true;
            tap /= f->block[last];
            for (int i = last - 1; i >= 0; i--) {
                const int64_t pos = row % f->blocks[i] * f->stride[i] + tap % f->block[i] * f->dilation[i] - f->pad[i];
                inside &= pos >= 0 && pos < f->image[i];
                at += pos * width;
                width *= f->image[i];
                row /= f->blocks[i];
                tap /= f->block[i];
            }
            if (inside)
                add_row(j, (plane * f->taps * rows + k) * length + first, at + start + first * step, step, n);
        }
    }
}

static oct_status col2im_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    int64_t image[DIMS], block[DIMS];
    job j = { .x = s->in[0], .y = s->out[0] };
    int n = oct_step_ints(s, NULL, 1, image, DIMS), m = oct_step_ints(s, NULL, 2, block, DIMS);
    if (n != m || n != s->out[0]->rank - 2)
        return oct_fail(err, OCT_EMALFORMED, "%d sizes of the image, %d of the blocks", n, m);
    OCT_TRY(read_fold(s->node, n, image, block, &j.f, err));
    int64_t planes = j.y->dims[0] * j.y->dims[1];
    if (j.y->count != planes * j.f.pixels || j.x->count != planes * j.f.taps * j.f.count)
        return oct_fail(err, OCT_EMALFORMED, "the input does not have the blocks of this image");
    oct_pool_for(r->pool, (size_t)planes, 1, fold_planes, &j);
    return OCT_OK;
}

const oct_op oct_op_col2im = {
    OCT_SCHEMA("Col2Im", "", 18, 3, 3, 1, 1),
    .infer = col2im_infer,
    .prepare = oct_elem_prepare,
    .run = col2im_run,
    .widens = true,
};
