/* lib/ops/attention/op_rope.c -- RotaryEmbedding, of the default domain and of com.microsoft. */
#include "ops/attention/rope.h"
#include "ops/core/args.h"
#include "ops/core/elem.h"

#include <string.h>

/* The two forms order their inputs differently. */
typedef struct slots {
    int cos, sin, positions;
} slots;

static slots slots_of(const oct_step *s)
{
    return s->op->domain[0] == 0 ? (slots){ 1, 2, 3 } : (slots){ 2, 3, 1 };
}

typedef struct state {
    oct_heads x;
    oct_rope rope; /* without tables */
} state;

static const oct_operand *positions_of(const oct_step *s)
{
    const int slot = slots_of(s).positions;
    return slot < s->n_in ? s->in[slot] : NULL;
}

/* Heads of a 3-D input: the attribute, or (com.microsoft) as many as tables for whole heads allow. */
static int64_t heads_of(const oct_step *s, int64_t half)
{
    int64_t heads = oct_node_int(s->node, "num_heads", 0);
    if (heads == 0 && s->op->domain[0] != 0 && half > 0 && s->in[0]->rank == 3)
        heads = s->in[0]->dims[2] / (2 * half);
    return heads;
}

static oct_status check_tables(const oct_step *s, const state *t, oct_err *err)
{
    const oct_operand *cos = s->in[slots_of(s).cos], *sin = s->in[slots_of(s).sin], *at = positions_of(s);
    const int64_t half = t->rope.half, tokens = t->x.batch * t->x.length;
    if (half < 1 || 2 * half > t->x.depth)
        return oct_fail(err, OCT_EMALFORMED, "%lld of %lld values of a head are to be rotated", (long long)(2 * half),
                        (long long)t->x.depth);
    for (int i = 0; i < 2; i++) {
        const oct_operand *table = i == 0 ? cos : sin;
        bool ok =
            table->rank == (at != NULL ? 2 : 3) && table->dims[table->rank - 1] == half && table->count == cos->count;
        if (!ok || (at == NULL && table->count != tokens * half))
            return oct_fail(err, OCT_EMALFORMED, "the tables do not fit %lld values to be rotated",
                            (long long)(2 * half));
    }
    const bool base = s->op->domain[0] != 0 && at != NULL && at->count == 1;
    if (at != NULL && (at->dtype != OCT_S64 || (at->count != tokens && !base)))
        return oct_fail(err, OCT_EMALFORMED, "there is not one int64 position for each token");
    return OCT_OK;
}

static oct_status rope_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    state *t = oct_arena_calloc(p->arena, 1, sizeof *t);
    if (t == NULL)
        return oct_nomem(err);
    s->state = t;
    const slots at = slots_of(s);
    for (int i = 0; i < s->n_in; i++)
        if (i != at.positions && (s->in[i] == NULL || s->in[i]->dtype != OCT_F32))
            return oct_fail(err, OCT_EUNSUPPORTED, "input %d is missing or of a type other than float32", i);
    if (oct_node_int(s->node, "is_packed_batching", 0) != 0 || oct_node_float(s->node, "scale", 1.0f) != 1.0f)
        return oct_fail(err, OCT_EUNSUPPORTED, "packed batches or a scale");
    const int64_t width = s->in[at.cos]->rank > 0 ? s->in[at.cos]->dims[s->in[at.cos]->rank - 1] : 0;
    OCT_TRY(oct_heads_read(s->in[0], heads_of(s, width), &t->x, err));
    if (s->in[0]->count == 0)
        return OCT_OK;
    int64_t rotary_dim = oct_node_int(s->node, "rotary_embedding_dim", 0);
    t->rope.half = (rotary_dim != 0 ? rotary_dim : t->x.depth) / 2;
    t->rope.interleaved = oct_node_int(s->node, "interleaved", 0) != 0;
    if (s->op->domain[0] != 0 && rotary_dim == 0)
        t->rope.half = width; /* tables narrower than half a head rotate a part of it */
    OCT_TRY(check_tables(s, t, err));
    t->rope.positions = oct_product(s->in[at.cos]->dims, s->in[at.cos]->rank - 1);
    if (!oct_mul_size((size_t)(t->x.batch * t->x.length), sizeof(int64_t), &s->scratch))
        return oct_nomem(err);
    return OCT_OK;
}

static oct_status rope_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const state *t = s->state;
    const oct_operand *at = positions_of(s);
    const int64_t tokens = s->in[0]->count == 0 ? 0 : t->x.batch * t->x.length;
    int64_t *row = r->scratch;
    oct_heads x = t->x;
    oct_attn_part y = t->x.part;
    oct_rope rope = t->rope;
    rope.cos = s->in[slots_of(s).cos]->data;
    rope.sin = s->in[slots_of(s).sin]->data;
    if (s->in[0]->count == 0)
        return OCT_OK;
    for (int64_t i = 0; i < tokens; i++) {
        if (at == NULL || at->count == tokens)
            row[i] = at == NULL ? i : ((const int64_t *)at->data)[i];
        else /* the position of the first token */
            row[i] =
                ((const int64_t *)at->data)[0] > rope.positions ? -1 : ((const int64_t *)at->data)[0] + i % t->x.length;
    }
    x.part.data = s->in[0]->data;
    y.data = s->out[0]->data;
    return oct_rope_run(&rope, r->pool, &x, y, row, err);
}

const oct_op oct_op_rotary_embedding = {
    OCT_SCHEMA("RotaryEmbedding", "", 23, 3, 4, 1, 1),
    .infer = oct_infer_like,
    .prepare = rope_prepare,
    .run = rope_run,
    .widens = true,
};
const oct_op oct_op_rotary_embedding_ms = {
    OCT_SCHEMA("RotaryEmbedding", "com.microsoft", 1, 4, 4, 1, 1),
    .infer = oct_infer_like,
    .prepare = rope_prepare,
    .run = rope_run,
    .widens = true,
};
