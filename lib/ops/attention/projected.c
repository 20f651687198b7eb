/* Attention whose queries, keys and values are columns of one product: sizes, the past and the present, and what is
 * done with the product's rows. */
#include "ops/attention/projected.h"

#include "ops/core/infer.h"

/* Hidden sizes of queries, keys and values: the attribute, or thirds of the weights' columns. */
static oct_status hidden_sizes(const oct_node *n, int64_t columns, int64_t heads, int64_t h[3], oct_err *err)
{
    int count;
    const int64_t *given = oct_node_ints(n, "qkv_hidden_sizes", &count);
    for (int i = 0; i < 3; i++)
        h[i] = given != NULL && count == 3 ? given[i] : columns / 3;
    bool ok = given == NULL || count == 3;
    for (int i = 0; ok && i < 3; i++)
        ok = h[i] > 0 && h[i] <= columns && h[i] % heads == 0;
    if (!ok || h[0] != h[1] || h[0] + h[1] + h[2] != columns)
        return oct_fail(err, OCT_EMALFORMED,
                        "weights of %lld columns do not split into queries, keys and values of %lld heads",
                        (long long)columns, (long long)heads);
    return OCT_OK;
}

oct_status oct_projected_infer(const oct_infer *c, const oct_projected_slots *at, oct_dtype type, oct_err *err)
{
    const oct_node *n = oct_in_node(c);
    oct_shape x = oct_in_shape(c, at->x), w = oct_in_shape(c, at->weights), past = oct_in_shape(c, at->past);
    int64_t heads, h[3];
    OCT_TRY(oct_merged_heads(n, &heads, err));
    oct_out_dtype(c, 0, type);
    oct_out_dtype(c, 1, type);
    if (x.rank < 0 || w.rank < 0)
        return OCT_OK;
    if (x.rank != 3 || w.rank != 2 || (x.d[2].n >= 0 && w.d[0].n >= 0 && x.d[2].n != w.d[0].n))
        return oct_fail(err, OCT_EMALFORMED, "the input is no 3-D tensor whose last dimension the weights take");
    if (w.d[1].n < 0)
        return OCT_OK;
    OCT_TRY(hidden_sizes(n, w.d[1].n, heads, h, err));
    const oct_dim before = oct_in_value(c, at->past) == NULL ? oct_dim_of(0)
                           : past.rank == 5                  ? past.d[3]
                                                             : (oct_dim){ -1, NULL };
    const oct_dim present[] = { oct_dim_of(2), x.d[0], oct_dim_of(heads), oct_dim_add(before, x.d[1]),
                                oct_dim_of(h[0] / heads) };
    OCT_TRY(oct_out_shape(c, 0, 3, (oct_dim[]){ x.d[0], x.d[1], oct_dim_of(h[2]) }, err));
    return oct_out_shape(c, 1, 5, present, err);
}

static oct_status check(const oct_step *s, const oct_projected *t, oct_err *err)
{
    const oct_operand *x = s->in[t->at->x], *b = oct_input_of(s, t->at->bias), *past = oct_input_of(s, t->at->past);
    const int64_t heads = t->m.a.heads, depth = t->h[0] / heads;
    if (b != NULL && b->count != t->h[0] + t->h[1] + t->h[2])
        return oct_fail(err, OCT_EMALFORMED, "the bias has %lld values for %lld columns", (long long)b->count,
                        (long long)(t->h[0] + t->h[1] + t->h[2]));
    if (past != NULL && (past->rank != 5 || past->dims[0] != 2 || past->dims[1] != x->dims[0] ||
                         past->dims[2] != heads || past->dims[4] != depth || t->h[2] != t->h[0]))
        return oct_fail(err, OCT_EMALFORMED, "the past does not fit %lld heads of %lld values", (long long)heads,
                        (long long)depth);
    if (oct_node_int(s->node, "do_rotary", 0) != 0 || oct_node_int(s->node, "past_present_share_buffer", 0) != 0 ||
        s->n_in > t->at->end)
        return oct_fail(err, OCT_EUNSUPPORTED, "rotary embedding or a shared buffer of keys and values");
    if (oct_output_of(s, 1) != NULL && t->h[2] != t->h[0])
        return oct_fail(err, OCT_EMALFORMED, "a present state of keys and values of different sizes");
    return OCT_OK;
}

oct_status oct_projected_prepare(oct_projected *t, oct_step *s, const oct_projected_slots *at, const oct_prep *p,
                                 oct_err *err)
{
    const oct_operand *x = s->in[at->x], *past = oct_input_of(s, at->past);
    const int64_t columns = s->in[at->weights]->dims[1];
    int64_t heads;
    t->at = at;
    OCT_TRY(oct_merged_heads(s->node, &heads, err));
    OCT_TRY(hidden_sizes(s->node, columns, heads, t->h, err));
    t->m.a = (oct_attn){ .type = OCT_F32,
                         .batch = x->dims[0],
                         .heads = heads,
                         .kv_heads = heads,
                         .rows = x->dims[1],
                         .keys = x->dims[1],
                         .depth = t->h[0] / heads,
                         .depth_v = t->h[2] / heads };
    OCT_TRY(check(s, t, err));
    if (past != NULL) {
        t->m.past_k = (oct_heads){ x->dims[0], heads, past->dims[3], t->m.a.depth, { 0 } };
        t->m.past_k.part =
            (oct_attn_part){ NULL, heads * past->dims[3] * t->m.a.depth, past->dims[3] * t->m.a.depth, t->m.a.depth };
        t->m.past_v = t->m.past_k;
        t->m.a.keys += past->dims[3];
    }
    OCT_TRY(oct_merged_prepare(&t->m, oct_input_of(s, at->mask), oct_input_of(s, at->scores), &s->scratch, p, err));
    return oct_attn_scratch(&s->scratch, x->dims[0] * x->dims[1], columns, sizeof(float), &t->rows_at) ? OCT_OK
                                                                                                       : oct_nomem(err);
}

/* Columns from `first` on of the projected rows, as heads. */
static oct_heads part_of(const oct_projected *t, float *rows, int64_t first, int64_t hidden)
{
    const int64_t width = t->h[0] + t->h[1] + t->h[2], heads = t->m.a.heads, length = t->m.a.rows;
    return (oct_heads){
        t->m.a.batch, heads, length, hidden / heads, { rows + first, length * width, hidden / heads, width }
    };
}

oct_status oct_projected_run(const oct_projected *t, const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *past = oct_input_of(s, t->at->past), *present = oct_output_of(s, 1);
    char *scratch = r->scratch;
    float *rows = oct_projected_rows(t, r);
    const oct_heads q = part_of(t, rows, 0, t->h[0]), k = part_of(t, rows, t->h[0], t->h[1]),
                    v = part_of(t, rows, t->h[0] + t->h[1], t->h[2]);
    oct_heads past_k = t->m.past_k, past_v = t->m.past_v, y;
    oct_attn_io io = { .stage = OCT_ATTN_WEIGHTS };
    oct_operand keys;
    past_k.part.data = past != NULL ? past->data : NULL;
    past_v.part.data = past != NULL ? (float *)past->data + past->count / 2 : NULL;
    io.q = q.part;
    io.k = past != NULL || present != NULL
               ? oct_merged_join(r, &past_k, &k, present != NULL ? present->data : scratch + t->m.k_at)
               : k.part;
    io.v = past != NULL || present != NULL
               ? oct_merged_join(r, &past_v, &v,
                                 present != NULL ? (float *)present->data + present->count / 2
                                                 : (void *)(scratch + t->m.v_at))
               : v.part;
    oct_merged_io(&t->m, s, r, oct_input_of(s, t->at->mask), oct_input_of(s, t->at->scores), &keys, &io);
    OCT_TRY(oct_heads_read(s->out[0], t->m.a.heads, &y, err));
    io.y = y.part;
    oct_attn_run(&t->m.a, r->pool, &io, scratch);
    return OCT_OK;
}
