/* lib/ops/vision/op_col2im.c -- Col2Im: blocks laid back into an image of one to six dimensions, overlaps added in the
 * order of the block's elements. */
#include "ops/core/args.h"
#include "ops/core/elem.h"
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

/* Which column holds element `tap` of the block that covers a pixel; -1: none does. */
static int64_t column_of(const fold *f, int64_t pixel, int64_t tap)
{
    int64_t at = 0, step = 1;
    for (int i = f->n - 1; i >= 0; i--) {
        int64_t pos = pixel % f->image[i] + f->pad[i] - tap % f->block[i] * f->dilation[i];
        if (pos < 0 || pos % f->stride[i] != 0 || pos / f->stride[i] >= f->blocks[i])
            return -1;
        at += pos / f->stride[i] * step;
        step *= f->blocks[i];
        pixel /= f->image[i];
        tap /= f->block[i];
    }
    return at;
}

#define ADD_UP(type, member)                                                                                      \
    do {                                                                                                          \
        type sum = 0;                                                                                             \
        for (int64_t k = 0; k < f->taps; k++) {                                                                   \
            int64_t at = column_of(f, pixel, k);                                                                  \
            if (at >= 0)                                                                                          \
                sum += *(const type *)oct_elem_load(j->x->dtype, j->x->data, base + k * f->count + at, 1, 1, &c); \
        }                                                                                                         \
        c.member[0] = sum;                                                                                        \
    } while (0)

static void fold_pixels(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *j = arg;
    const fold *f = &j->f;
    oct_dom dom = oct_dom_of(j->y->dtype);
    oct_chunk c;
    for (size_t i = begin; i < end; i++) {
        int64_t pixel = (int64_t)i % f->pixels, base = (int64_t)i / f->pixels * f->taps * f->count;
        switch (dom) {
        case OCT_DOM_F: ADD_UP(float, f); break;
        case OCT_DOM_D: ADD_UP(double, d); break;
        default: ADD_UP(uint64_t, u); break;
        }
        oct_elem_store(j->y->dtype, j->y->data, (int64_t)i, 1, 1, dom, &c);
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
    oct_pool_for(r->pool, (size_t)j.y->count, 4096, fold_pixels, &j);
    return OCT_OK;
}

const oct_op oct_op_col2im = {
    OCT_SCHEMA("Col2Im", "", 18, 3, 3, 1, 1),
    .infer = col2im_infer,
    .prepare = oct_elem_prepare,
    .run = col2im_run,
};
