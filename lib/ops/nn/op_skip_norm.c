/* com.microsoft's SkipLayerNormalization, SkipSimplifiedLayerNormalization (x + skip [+ bias], normalised along the
 * last dimension) and EmbedLayerNormalization (the sum of embeddings, normalised), in float. */
#include "kernels/reduce.h"
#include "ops/core/elem.h"
#include "ops/core/infer.h"

#include <string.h>

static const oct_operand *input(const oct_step *s, int slot)
{
    return slot < s->n_in ? s->in[slot] : NULL;
}

static void *out_of(const oct_step *s, int slot)
{
    return slot < s->n_out && s->out[slot] ? s->out[slot]->data : NULL;
}

/* A f32 input of `rank` dimensions of which the last has n elements. */
static oct_status want(const oct_step *s, int slot, int rank, int64_t n, oct_err *err)
{
    const oct_operand *t = input(s, slot);
    if (!t)
        return OCT_OK;
    if (t->dtype != OCT_F32)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s of %s cannot be run", s->op->type, oct_dtype_name(t->dtype));
    if (t->rank != rank || t->dims[rank - 1] != n)
        return oct_fail(err, OCT_EMALFORMED, "input %d of %s does not have rows of %lld values", slot, s->op->type,
                        (long long)n);
    return OCT_OK;
}

static void add_row(float *restrict y, const float *restrict x, size_t n)
{
    for (size_t j = 0; j < n; j++)
        y[j] += x[j];
}

/* ------------------------------------------------------------------ SkipLayerNormalization */

static bool simplified(const oct_step *s)
{
    return strcmp(s->op->type, "SkipSimplifiedLayerNormalization") == 0;
}

static oct_status skip_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    oct_dim d[OCT_MAX_RANK];
    OCT_TRY(oct_out_like(c, 0, 0, err));
    OCT_TRY(oct_out_like(c, 3, 0, err));
    oct_out_dtype(c, 1, OCT_F32);
    oct_out_dtype(c, 2, OCT_F32);
    if (x.rank < 1)
        return OCT_OK;
    memcpy(d, x.d, (size_t)x.rank * sizeof *d);
    d[x.rank - 1] = oct_dim_of(1);
    OCT_TRY(oct_out_shape(c, 1, x.rank, d, err));
    return oct_out_shape(c, 2, x.rank, d, err);
}

static oct_status skip_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *x = s->in[0], *skip = s->in[1];
    if (x->dtype != OCT_F32 || skip->dtype != OCT_F32 || !s->out[0])
        return oct_fail(err, OCT_EUNSUPPORTED, "%s of %s cannot be run", s->op->type, oct_dtype_name(x->dtype));
    bool fits = x->rank >= 1 && skip->rank >= 1 && skip->rank <= x->rank;
    bool broadcast = false; /* leading dimensions of skip may be 1 or missing */
    for (int i = 1; fits && i <= x->rank; i++) {
        int64_t d = i <= skip->rank ? skip->dims[skip->rank - i] : 1, full = x->dims[x->rank - i];
        broadcast |= d != full;
        fits = broadcast ? i > 1 && d == 1 : d == full;
    }
    if (!fits)
        return oct_fail(err, OCT_EMALFORMED, "skip does not broadcast to the input of %s", s->op->type);
    const int64_t n = x->dims[x->rank - 1];
    OCT_TRY(want(s, 2, 1, n, err));
    OCT_TRY(want(s, 3, 1, n, err));
    return simplified(s) ? OCT_OK : want(s, 4, 1, n, err);
}

typedef struct skip_job {
    const float *x, *skip, *bias;
    float *sum;
    size_t n, period; /* rows of skip */
} skip_job;

static void skip_rows(void *arg, size_t begin, size_t end, size_t thread)
{
    const skip_job *j = arg;
    for (size_t i = begin; i < end; i++) {
        const float *x = j->x + i * j->n, *skip = j->skip + i % j->period * j->n;
        float *y = j->sum + i * j->n;
        for (size_t k = 0; k < j->n; k++)
            y[k] = x[k] + skip[k];
        if (j->bias)
            add_row(y, j->bias, j->n);
    }
}

static oct_status skip_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0];
    const bool rms = simplified(s);
    const oct_operand *beta = rms ? NULL : input(s, 3), *bias = input(s, rms ? 3 : 4);
    if (x->count == 0)
        return OCT_OK;
    const size_t n = (size_t)x->dims[x->rank - 1], rows = (size_t)x->count / n;
    float *y = s->out[0]->data, *sum = out_of(s, 3);
    skip_job j = { x->data, s->in[1]->data, bias ? bias->data : NULL, sum ? sum : y, n, (size_t)s->in[1]->count / n };
    oct_pool_for(r->pool, rows, n < 4096 ? 4096 / n + 1 : 1, skip_rows, &j);
    oct_layer_norm p = { .rows = rows, .n = n, .eps = oct_node_float(s->node, "epsilon", 1e-12f), .rms = rms };
    p.gamma = s->in[2]->data;
    p.beta = beta ? beta->data : NULL;
    oct_layer_norm_f32(r->pool, &p, j.sum, y, out_of(s, 1), out_of(s, 2));
    return OCT_OK;
}

/* ------------------------------------------------------------------ EmbedLayerNormalization */

enum { IDS, SEGMENTS, WORDS, PLACES, KINDS, GAMMA, BETA, MASK, PLACE_IDS };

static oct_status embed_infer(const oct_infer *c, oct_err *err)
{
    oct_shape ids = oct_in_shape(c, IDS), words = oct_in_shape(c, WORDS);
    oct_out_dtype(c, 0, oct_in_dtype(c, WORDS));
    oct_out_dtype(c, 1, OCT_S32);
    oct_out_dtype(c, 2, oct_in_dtype(c, WORDS));
    if (ids.rank < 0)
        return OCT_OK;
    if (ids.rank != 2 || (words.rank >= 0 && words.rank != 2))
        return oct_fail(err, OCT_EMALFORMED, "ids and word embedding must be 2-D");
    oct_dim d[3] = { ids.d[0], ids.d[1], words.rank == 2 ? words.d[1] : (oct_dim){ -1, NULL } };
    OCT_TRY(oct_out_shape(c, 0, 3, d, err));
    OCT_TRY(oct_out_shape(c, 1, 1, d, err));
    return oct_out_shape(c, 2, 3, d, err);
}

/* An int32 input of the shape of the ids, or of one row of them. */
static oct_status want_ids(const oct_step *s, int slot, bool one_row, oct_err *err)
{
    const oct_operand *t = input(s, slot), *ids = s->in[IDS];
    if (!t)
        return OCT_OK;
    if (t->dtype != OCT_S32)
        return oct_fail(err, OCT_EUNSUPPORTED, "ids of %s cannot be run", oct_dtype_name(t->dtype));
    if (t->rank != 2 || t->dims[1] != ids->dims[1] || (t->dims[0] != ids->dims[0] && !(one_row && t->dims[0] == 1)))
        return oct_fail(err, OCT_EMALFORMED, "input %d of EmbedLayerNormalization does not have the shape of input 0",
                        slot);
    return OCT_OK;
}

static oct_status embed_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    if (s->n_in <= BETA || !s->in[IDS] || !s->in[WORDS] || !s->in[PLACES] || !s->in[GAMMA] || !s->in[BETA] ||
        !s->out[0] || (input(s, SEGMENTS) && !input(s, KINDS)))
        return oct_fail(err, OCT_EMALFORMED, "EmbedLayerNormalization lacks an input");
    OCT_TRY(want_ids(s, IDS, false, err));
    OCT_TRY(want_ids(s, SEGMENTS, false, err));
    OCT_TRY(want_ids(s, MASK, false, err));
    OCT_TRY(want_ids(s, PLACE_IDS, true, err));
    const int64_t n = s->in[WORDS]->rank == 2 ? s->in[WORDS]->dims[1] : 0;
    if (n < 1)
        return oct_fail(err, OCT_EMALFORMED, "the word embedding must be 2-D");
    OCT_TRY(want(s, WORDS, 2, n, err));
    OCT_TRY(want(s, PLACES, 2, n, err));
    OCT_TRY(want(s, KINDS, 2, n, err));
    OCT_TRY(want(s, GAMMA, 1, n, err));
    OCT_TRY(want(s, BETA, 1, n, err));
    return OCT_OK;
}

/* Row `id` of an embedding; NULL when there is none. */
static const float *row_of(const oct_operand *table, int64_t id)
{
    return id >= 0 && id < table->dims[0] ? (const float *)table->data + id * table->dims[1] : NULL;
}

static oct_status embed_row(const oct_step *s, int64_t i, float *y, oct_err *err)
{
    const int64_t length = s->in[IDS]->dims[1], n = s->in[WORDS]->dims[1];
    const oct_operand *places = input(s, PLACE_IDS), *segments = input(s, SEGMENTS);
    int64_t place = i % length, word = ((const int32_t *)s->in[IDS]->data)[i];
    if (places)
        place = ((const int32_t *)places->data)[places->dims[0] == 1 ? i % length : i];
    const int64_t kind = segments ? ((const int32_t *)segments->data)[i] : 0;
    const float *a = row_of(s->in[WORDS], word), *b = row_of(s->in[PLACES], place);
    const float *c = segments ? row_of(s->in[KINDS], kind) : NULL;
    if (!a || !b || (segments && !c))
        return oct_fail(err, OCT_EMALFORMED, "an embedding has no row %lld",
                        (long long)(!a   ? word
                                    : !b ? place
                                         : kind));
    for (int64_t k = 0; k < n; k++)
        y[k] = a[k] + b[k];
    if (c)
        add_row(y, c, (size_t)n);
    return OCT_OK;
}

/* How many ones the mask has in each sequence; 0 without one. */
static void count_mask(const oct_step *s, int32_t *y)
{
    const oct_operand *mask = input(s, MASK), *ids = s->in[IDS];
    for (int64_t b = 0; y && b < ids->dims[0]; b++) {
        y[b] = 0;
        for (int64_t i = 0; mask && i < ids->dims[1]; i++)
            y[b] += ((const int32_t *)mask->data)[b * ids->dims[1] + i] == 1;
    }
}

static oct_status embed_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const int64_t n = s->in[WORDS]->dims[1], rows = s->in[IDS]->count;
    float *y = s->out[0]->data, *sum = out_of(s, 2) ? out_of(s, 2) : y;
    count_mask(s, out_of(s, 1));
    for (int64_t i = 0; i < rows; i++)
        OCT_TRY(embed_row(s, i, sum + i * n, err));
    oct_layer_norm p = { .rows = (size_t)rows, .n = (size_t)n, .eps = oct_node_float(s->node, "epsilon", 1e-12f) };
    p.gamma = s->in[GAMMA]->data;
    p.beta = s->in[BETA]->data;
    oct_layer_norm_f32(r->pool, &p, sum, y, NULL, NULL);
    return OCT_OK;
}

const oct_op oct_op_skip_layer_norm = {
    OCT_SCHEMA("SkipLayerNormalization", "com.microsoft", 1, 3, 5, 1, 4),
    .infer = skip_infer,
    .prepare = skip_prepare,
    .run = skip_run,
    .by_rows = oct_elem_by_rows,
    .widens = true,
    .homogeneous = 1 << 2 | 1 << 3,
    .compresses = true,
};

const oct_op oct_op_skip_simplified_layer_norm = {
    OCT_SCHEMA("SkipSimplifiedLayerNormalization", "com.microsoft", 1, 3, 4, 1, 4),
    .infer = skip_infer,
    .prepare = skip_prepare,
    .run = skip_run,
    .by_rows = oct_elem_by_rows,
    .widens = true,
    .homogeneous = 1 << 2,
    .compresses = true,
};

const oct_op oct_op_embed_layer_norm = {
    OCT_SCHEMA("EmbedLayerNormalization", "com.microsoft", 1, 1, 9, 1, 3),
    .infer = embed_infer,
    .prepare = embed_prepare,
    .run = embed_run,
    .widens = true,
    .compresses = true,
};
