/* Attention of many heads. */
#include "ops/attention/attention.h"

#include "base/mem.h"
#include "kernels/binary.h"
#include "kernels/math.h"
#include "kernels/reduce.h"
#include "kernels/unary.h"
#include "ops/core/anyprod.h"
#include "ops/core/nd.h"

#include <string.h>

enum { BLOCK = 64, SHARED_BLOCK = 256, ALIGN = 64 };

/* ------------------------------------------------------------------ sizes */

static bool add_bytes(size_t *sum, int64_t a, int64_t b, size_t elem, size_t *bytes)
{
    size_t n;
    if (!oct_mul_size((size_t)a, (size_t)b, &n) || !oct_mul_size(n, elem, bytes) ||
        !oct_add_size(*bytes, ALIGN - 1, bytes))
        return false;
    *bytes &= ~(size_t)(ALIGN - 1);
    return oct_add_size(*sum, *bytes, sum);
}

bool oct_attn_scratch(size_t *scratch, int64_t rows, int64_t cols, size_t elem, size_t *at)
{
    size_t bytes;
    *at = *scratch;
    return add_bytes(scratch, rows, cols, elem, &bytes);
}

oct_status oct_attn_prepare(oct_attn *a, int threads, size_t *scratch, oct_err *err)
{
    const size_t elem = a->type == OCT_F64 ? sizeof(double) : sizeof(float);
    int64_t groups;
    a->threads = threads < 1 ? 1 : threads;
    if (!oct_count((const int64_t[]){ a->batch, a->kv_heads }, 2, &groups) || a->keys == INT64_MAX)
        return oct_nomem(err);
    a->by_head = groups >= a->threads;
    a->block = a->by_head ? BLOCK : SHARED_BLOCK;
    a->block = a->rows < a->block ? a->rows : a->block;
    a->ld = a->keys + a->sink;
    a->packed_k = a->packed_v = a->kernel = a->slot = 0;
    if (a->type == OCT_F32 && groups > 0) {
        const int inside = a->by_head ? 1 : a->threads;
        OCT_TRY(oct_sgemm_prepare(&a->qk, (size_t)a->rows, (size_t)a->keys, (size_t)a->depth, inside, err));
        OCT_TRY(oct_sgemm_prepare(&a->pv, (size_t)a->rows, (size_t)a->depth_v, (size_t)a->keys, inside, err));
        size_t kernel = a->qk.scratch_size > a->pv.scratch_size ? a->qk.scratch_size : a->pv.scratch_size;
        if (!add_bytes(&a->slot, 1, (int64_t)a->qk.packed_size, 1, &a->packed_k) ||
            !add_bytes(&a->slot, 1, (int64_t)a->pv.packed_size, 1, &a->packed_v) ||
            !add_bytes(&a->slot, 1, (int64_t)kernel, 1, &a->kernel))
            return oct_nomem(err);
    }
    if (!add_bytes(&a->slot, a->block, a->ld, elem, &a->scores) || !add_bytes(&a->slot, 1, a->ld, elem, &a->bias) ||
        !oct_mul_size(a->slot, a->by_head ? (size_t)a->threads : 1, scratch))
        return oct_nomem(err);
    return OCT_OK;
}

/* ------------------------------------------------------------------ heads in tensors */

oct_status oct_heads_read(const oct_operand *t, int64_t heads, oct_heads *h, oct_err *err)
{
    if (t->rank == 4) {
        *h = (oct_heads){ t->dims[0], t->dims[1], t->dims[2], t->dims[3], { 0 } };
        h->part = (oct_attn_part){ t->data, t->dims[1] * t->dims[2] * t->dims[3], t->dims[2] * t->dims[3], t->dims[3] };
        return OCT_OK;
    }
    if (t->rank != 3 || heads < 1 || t->dims[2] % heads != 0)
        return oct_fail(err, OCT_EMALFORMED, "a tensor of %d dimensions does not split into %lld heads", t->rank,
                        (long long)heads);
    *h = (oct_heads){ t->dims[0], heads, t->dims[1], t->dims[2] / heads, { 0 } };
    h->part = (oct_attn_part){ t->data, t->dims[1] * t->dims[2], t->dims[2] / heads, t->dims[2] };
    return OCT_OK;
}

static void copy_heads(oct_pool *pool, oct_dtype type, const oct_heads *h, int64_t total, int64_t first, void *to)
{
    const int64_t dims[4] = { h->batch, h->heads, h->length, h->depth };
    const int64_t out[4] = { h->heads * total * h->depth, total * h->depth, h->depth, 1 };
    const int64_t in[4] = { h->part.batch, h->part.head, h->part.row, 1 };
    const size_t size = oct_elem_size(type);
    oct_nd d = { .rank = 4, .arrays = 1 };
    memcpy(d.dims, dims, sizeof dims);
    memcpy(d.stride[0], out, sizeof out);
    oct_nd_add_strides(&d, in);
    oct_nd_copy(&d, pool, (char *)to + (size_t)(first * h->depth) * size, h->part.data, size, NULL);
}

void oct_heads_join(oct_pool *pool, oct_dtype type, const oct_heads *past, const oct_heads *fresh, void *to)
{
    const int64_t before = past ? past->length : 0, total = before + fresh->length;
    if (past)
        copy_heads(pool, type, past, total, 0, to);
    copy_heads(pool, type, fresh, total, before, to);
}

/* ------------------------------------------------------------------ rows of scores, of either type */

typedef struct job {
    const oct_attn *a;
    const oct_attn_io *io;
    oct_pool *pool; /* inside of products; NULL when threads take heads */
    char *scratch;
    int64_t mask_stride[OCT_ATTN_MASKS][4];
    bool biased;
} job;

/* Where the parts of a thread's scratch are. */
typedef struct slot {
    char *k, *v, *kernel, *scores, *bias;
} slot;

static slot slot_of(const job *j, size_t thread)
{
    const oct_attn *a = j->a;
    char *at = j->scratch + thread * a->slot;
    slot s = { at, at + a->packed_k, at + a->packed_k + a->packed_v, NULL, NULL };
    s.scores = s.kernel + a->kernel;
    s.bias = s.scores + a->scores;
    return s;
}

static void *element(const oct_attn *a, oct_attn_part p, int64_t b, int64_t h, int64_t i)
{
    int64_t at = b * p.batch + h * p.head + i * p.row;
    return (char *)p.data + at * (int64_t)oct_elem_size(a->type);
}

static void scale_by(const job *j, void *v, int64_t n, double f)
{
    oct_unary u = { OCT_UNARY_SCALE, (float)f, 0.0f };
    if (j->a->type == OCT_F32)
        oct_unary_f32(j->pool, &u, v, v, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            ((double *)v)[i] *= f;
}

static void cap(const job *j, void *v, int64_t n)
{
    oct_unary u = { OCT_UNARY_TANH, 0, 0 };
    scale_by(j, v, n, 1.0 / j->io->softcap);
    if (j->a->type == OCT_F32)
        oct_unary_f32(j->pool, &u, v, v, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            ((double *)v)[i] = oct_tanh(((double *)v)[i]);
    scale_by(j, v, n, j->io->softcap);
}

static void put(const oct_attn *a, void *row, int64_t at, double v)
{
    if (a->type == OCT_F32)
        ((float *)row)[at] = (float)v;
    else
        ((double *)row)[at] = v;
}

static void add_to(const oct_attn *a, void *row, int64_t at, double v)
{
    if (a->type == OCT_F32)
        ((float *)row)[at] += (float)v;
    else
        ((double *)row)[at] += v;
}

static void add_rows(const oct_attn *a, void *to, const void *from, int64_t n)
{
    if (a->type == OCT_F32)
        oct_binary_f32(NULL, OCT_BINARY_ADD, to, 1, from, 1, to, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            ((double *)to)[i] += ((const double *)from)[i];
}

static void mask_range(const job *j, void *bias, int64_t from, int64_t to, double v)
{
    for (int64_t k = from < 0 ? 0 : from; k < to && k < j->a->keys; k++)
        add_to(j->a, bias, k, v);
}

static void add_mask(const job *j, int m, int64_t b, int64_t h, int64_t i, void *bias)
{
    const oct_operand *t = j->io->mask[m];
    const int64_t *stride = j->mask_stride[m], keys = t->dims[t->rank - 1], n = keys < j->a->keys ? keys : j->a->keys;
    const int64_t at = b * stride[0] + h * stride[1] + i * stride[2];
    oct_chunk raw, same;
    for (int64_t first = 0; first < n; first += OCT_COUNT(raw.f)) {
        int64_t part = n - first < (int64_t)OCT_COUNT(raw.f) ? n - first : (int64_t)OCT_COUNT(raw.f);
        if (t->dtype == OCT_BOOL) {
            const uint8_t *v = (const uint8_t *)t->data + at + first;
            for (int64_t k = 0; k < part; k++)
                if (!v[k])
                    add_to(j->a, bias, first + k, j->io->masked);
            continue;
        }
        const void *v = oct_elem_load(t->dtype, t->data, at + first, 1, part, &raw);
        if (t->dtype != j->a->type) {
            oct_elem_store(j->a->type, &same, 0, 1, part, oct_dom_of(t->dtype), v);
            v = &same;
        }
        add_rows(j->a, (char *)bias + (size_t)first * oct_elem_size(j->a->type), v, part);
    }
    mask_range(j, bias, n, j->a->keys, -(double)INFINITY);
}

/* Fills the bias of a row; false when every key is masked by -INFINITY. */
static bool bias_of(const job *j, int64_t b, int64_t h, int64_t i, void *bias)
{
    const oct_attn_io *io = j->io;
    const int64_t keys = j->a->keys, at = i + (io->offset ? io->offset[b] : 0);
    const double none = -(double)INFINITY;
    memset(bias, 0, (size_t)keys * oct_elem_size(j->a->type));
    for (int m = 0; m < OCT_ATTN_MASKS; m++)
        if (io->mask[m])
            add_mask(j, m, b, h, i, bias);
    if (io->left >= 0)
        mask_range(j, bias, 0, at - io->left, none);
    if (io->right >= 0)
        mask_range(j, bias, at + io->right + 1, keys, none);
    if (io->first)
        mask_range(j, bias, 0, io->first[b], io->masked);
    if (io->valid)
        mask_range(j, bias, io->valid[b], keys, io->masked);
    for (int64_t k = 0; k < keys; k++)
        if (j->a->type == OCT_F32 ? ((float *)bias)[k] != -INFINITY : ((double *)bias)[k] != none)
            return true;
    return false;
}

static void softmax_rows(const job *j, void *s, int64_t rows)
{
    const int64_t n = j->a->ld;
    if (j->a->type == OCT_F32) {
        oct_softmax_f32(j->pool, false, s, (size_t)rows, (size_t)n, 1, s);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        double *x = (double *)s + i * n, most = -(double)INFINITY, sum = 0.0;
        for (int64_t k = 0; k < n; k++)
            most = x[k] > most ? x[k] : most;
        for (int64_t k = 0; k < n; k++)
            sum += x[k] = oct_exp(x[k] - most);
        for (int64_t k = 0; k < n; k++)
            x[k] /= sum;
    }
}

static void show(const job *j, oct_attn_stage stage, int64_t b, int64_t h, int64_t first, int64_t rows, const char *s)
{
    const size_t elem = oct_elem_size(j->a->type);
    if (!j->io->scores.data || j->io->stage != stage)
        return;
    for (int64_t i = 0; i < rows; i++)
        memcpy(element(j->a, j->io->scores, b, h, first + i), s + (size_t)(i * j->a->ld) * elem,
               (size_t)j->a->keys * elem);
}

/* From products to weights: rows [first, first + rows) of a head. */
static void weights(const job *j, const slot *t, int64_t b, int64_t h, int64_t first, int64_t rows)
{
    const oct_attn *a = j->a;
    const size_t step = (size_t)a->ld * oct_elem_size(a->type);
    bool seen[SHARED_BLOCK];
    for (int64_t i = 0; a->sink && i < rows; i++)
        put(a, t->scores + (size_t)i * step, a->keys, 0.0); /* whole blocks are scaled */
    if (j->io->scale != 1.0)
        scale_by(j, t->scores, rows * a->ld, j->io->scale);
    show(j, OCT_ATTN_SCALED, b, h, first, rows, t->scores);
    if (j->io->softcap != 0.0)
        cap(j, t->scores, rows * a->ld);
    show(j, OCT_ATTN_CAPPED, b, h, first, rows, t->scores);
    for (int64_t i = 0; i < rows; i++) {
        seen[i] = !j->biased || bias_of(j, b, h, first + i, t->bias);
        if (j->biased)
            add_rows(a, t->scores + (size_t)i * step, t->bias, a->keys);
        if (a->sink)
            put(a, t->scores + (size_t)i * step, a->keys, j->io->sinks ? (double)j->io->sinks[h] : 0.0);
    }
    show(j, OCT_ATTN_BIASED, b, h, first, rows, t->scores);
    softmax_rows(j, t->scores, rows);
    for (int64_t i = 0; i < rows; i++)
        if (!seen[i])
            memset(t->scores + (size_t)i * step, 0, step);
    show(j, OCT_ATTN_WEIGHTS, b, h, first, rows, t->scores);
}

/* Whether scores become weights in one go: scaled, one bias added, softmax. */
static bool is_plain(const job *j)
{
    return j->a->type == OCT_F32 && !j->a->sink && !j->io->scores.data && j->io->softcap == 0.0;
}

/* The mask of a head as it lies in memory, when it is all there is to add; row i's is `step` floats behind the one
 * before. */
static const float *bias_in_place(const job *j, int64_t b, int64_t h, int64_t first, size_t *step)
{
    const oct_attn_io *io = j->io;
    const oct_operand *t = io->mask[0];
    if (!t || io->mask[1] || t->dtype != OCT_F32 || t->rank < 1 || t->dims[t->rank - 1] != j->a->keys ||
        io->left >= 0 || io->right >= 0 || io->first || io->valid)
        return NULL;
    const int64_t *stride = j->mask_stride[0];
    *step = (size_t)stride[2];
    return (const float *)t->data + b * stride[0] + h * stride[1] + first * stride[2];
}

/* weights(), where scores are plain. */
static void plain_weights(const job *j, const slot *t, int64_t b, int64_t h, int64_t first, int64_t rows)
{
    const oct_attn *a = j->a;
    const size_t keys = (size_t)a->keys, ld = (size_t)a->ld;
    float *scores = (float *)(void *)t->scores;
    size_t step = 0;
    const float *bias = j->biased ? bias_in_place(j, b, h, first, &step) : NULL;
    const float scale = (float)j->io->scale;
    if (!j->biased || bias) {
        oct_softmax_scaled_f32(j->pool, scores, (size_t)rows, keys, ld, scale, bias, step, scores);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        float *row = scores + (size_t)i * ld;
        (void)bias_of(j, b, h, first + i, t->bias);
        oct_softmax_scaled_f32(NULL, row, 1, keys, ld, scale, (const float *)(void *)t->bias, 0, row);
    }
}

/* ------------------------------------------------------------------ heads */

static void block_f32(const job *j, const slot *t, int64_t b, int64_t h, int64_t first, int64_t rows)
{
    const oct_attn *a = j->a;
    oct_sgemm_run(&a->qk, j->pool, (size_t)rows, element(a, j->io->q, b, h, first), (size_t)j->io->q.row, t->k,
                  (float *)(void *)t->scores, (size_t)a->ld, NULL, t->kernel);
    (is_plain(j) ? plain_weights : weights)(j, t, b, h, first, rows);
    oct_sgemm_run(&a->pv, j->pool, (size_t)rows, (const float *)(void *)t->scores, (size_t)a->ld, t->v,
                  element(a, j->io->y, b, h, first), (size_t)j->io->y.row, NULL, t->kernel);
}

static void block_f64(const job *j, const slot *t, int64_t b, int64_t h, int64_t first, int64_t rows)
{
    const oct_attn *a = j->a;
    const oct_attn_io *io = j->io;
    const int64_t g = h / (a->heads / a->kv_heads);
    oct_any_matrix q = { element(a, io->q, b, h, first), io->q.row, 1 },
                   k = { element(a, io->k, b, g, 0), 1, io->k.row };
    oct_any_matrix s = { t->scores, a->ld, 1 }, v = { element(a, io->v, b, g, 0), io->v.row, 1 };
    oct_any_product(j->pool, a->type, rows, a->keys, a->depth, q, k, t->scores, a->ld);
    weights(j, t, b, h, first, rows);
    oct_any_product(j->pool, a->type, rows, a->depth_v, a->keys, s, v, element(a, io->y, b, h, first), io->y.row);
}

/* Items: groups of heads that share keys and values. */
static void groups(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *j = arg;
    const oct_attn *a = j->a;
    const int64_t per_group = a->heads / a->kv_heads;
    const slot t = slot_of(j, thread);
    for (size_t item = begin; item < end; item++) {
        const int64_t b = (int64_t)item / a->kv_heads, g = (int64_t)item % a->kv_heads;
        if (a->type == OCT_F32) {
            oct_sgemm_pack(&a->qk, element(a, j->io->k, b, g, 0), 1, (ptrdiff_t)j->io->k.row, t.k);
            oct_sgemm_pack(&a->pv, element(a, j->io->v, b, g, 0), (ptrdiff_t)j->io->v.row, 1, t.v);
        }
        for (int64_t h = g * per_group; h < (g + 1) * per_group; h++)
            for (int64_t first = 0; first < a->rows; first += a->block) {
                int64_t rows = a->rows - first < a->block ? a->rows - first : a->block;
                (a->type == OCT_F32 ? block_f32 : block_f64)(j, &t, b, h, first, rows);
            }
    }
}

static void mask_strides(const oct_attn *a, const oct_operand *t, int64_t stride[4])
{
    int64_t own[OCT_MAX_RANK] = { 0 };
    oct_operand_strides(t, own);
    for (int i = 0; i < 4; i++) {
        int k = i - (4 - t->rank);
        stride[i] = k < 0 || t->dims[k] == 1 ? 0 : own[k];
    }
}

void oct_attn_run(const oct_attn *a, oct_pool *pool, const oct_attn_io *io, void *scratch)
{
    if (oct_pool_threads(pool) > a->threads)
        pool = NULL;
    job j = { .a = a, .io = io, .pool = a->by_head ? NULL : pool, .scratch = scratch };
    j.biased = io->left >= 0 || io->right >= 0 || io->first || io->valid;
    for (int m = 0; m < OCT_ATTN_MASKS; m++)
        if (io->mask[m]) {
            mask_strides(a, io->mask[m], j.mask_stride[m]);
            j.biased = true;
        }
    if (a->rows > 0)
        oct_pool_for(a->by_head ? pool : NULL, (size_t)(a->batch * a->kv_heads), 1, groups, &j);
}
