/* What the attentions of com.microsoft have in common: masks of integers, keys and values behind those of the past. */
#include "ops/attention/merged.h"

#include <math.h>

static oct_status mask_prepare(const oct_operand *m, const oct_attn *a, oct_merged_mask *k, size_t *scratch,
                               oct_err *err)
{
    *k = (oct_merged_mask){ .lengths = false };
    if (m == NULL)
        return OCT_OK;
    if (m->dtype != OCT_S32)
        return oct_fail(err, OCT_EMALFORMED, "a mask of %s, expected int32", oct_dtype_name(m->dtype));
    if (m->rank == 1 && (m->dims[0] == a->batch || m->dims[0] == 2 * a->batch)) {
        k->lengths = true;
        k->starts = m->dims[0] != a->batch;
        return oct_attn_scratch(scratch, a->batch, 1, sizeof(int64_t), &k->lengths_at) &&
                       oct_attn_scratch(scratch, a->batch, 1, sizeof(int64_t), &k->starts_at)
                   ? OCT_OK
                   : oct_nomem(err);
    }
    const bool plain = m->rank == 2 && m->dims[0] == a->batch && m->dims[1] == a->keys;
    const bool by_row = m->rank == 3 && m->dims[0] == a->batch && m->dims[1] == a->rows && m->dims[2] == a->keys;
    if (!plain && !by_row)
        return oct_fail(err, OCT_EUNSUPPORTED, "a mask of %d dimensions that does not fit %lld keys of %lld samples",
                        m->rank, (long long)a->keys, (long long)a->batch);
    k->keys = (oct_operand){
        .dtype = OCT_BOOL, .rank = 4, .dims = { a->batch, 1, by_row ? a->rows : 1, a->keys }, .count = m->count
    };
    return oct_attn_scratch(scratch, m->count, 1, 1, &k->keys_at) ? OCT_OK : oct_nomem(err);
}

static void mask_run(const oct_operand *m, const oct_merged_mask *k, char *scratch, oct_operand *keys, oct_attn_io *io)
{
    if (m == NULL)
        return;
    const int32_t *v = m->data;
    if (k->lengths) {
        int64_t *lengths = (int64_t *)(void *)(scratch + k->lengths_at),
                *starts = (int64_t *)(void *)(scratch + k->starts_at);
        const int64_t batch = k->starts ? m->count / 2 : m->count;
        for (int64_t b = 0; b < batch; b++) {
            lengths[b] = v[b];
            starts[b] = k->starts ? v[batch + b] : 0;
        }
        io->valid = lengths;
        io->first = k->starts ? starts : NULL;
    } else if (k->keys.rank != 0) {
        *keys = k->keys;
        keys->data = scratch + k->keys_at;
        for (int64_t i = 0; i < m->count; i++)
            ((uint8_t *)keys->data)[i] = v[i] != 0;
        io->mask[0] = keys;
    }
}

oct_status oct_merged_prepare(oct_merged *t, const oct_operand *m, const oct_operand *bias, size_t *scratch,
                              const oct_prep *p, oct_err *err)
{
    const oct_attn *a = &t->a;
    OCT_TRY(oct_attn_prepare(&t->a, p->threads, scratch, err));
    OCT_TRY(mask_prepare(m, a, &t->mask, scratch, err));
    if (bias != NULL) {
        bool ok = bias->rank == 4 && bias->dtype == OCT_F32 && (bias->dims[0] == 1 || bias->dims[0] == a->batch) &&
                  (bias->dims[1] == 1 || bias->dims[1] == a->heads) && bias->dims[2] == a->rows &&
                  bias->dims[3] == a->keys;
        if (!ok)
            return oct_fail(err, OCT_EMALFORMED, "the attention bias does not fit %lld x %lld x %lld x %lld scores",
                            (long long)a->batch, (long long)a->heads, (long long)a->rows, (long long)a->keys);
    }
    int64_t keys;
    if (!oct_count((const int64_t[]){ a->batch, a->kv_heads, a->keys }, 3, &keys) ||
        !oct_attn_scratch(scratch, a->batch, 1, sizeof(int64_t), &t->offset_at) ||
        !oct_attn_scratch(scratch, keys, a->depth, sizeof(float), &t->k_at) ||
        !oct_attn_scratch(scratch, keys, a->depth_v, sizeof(float), &t->v_at))
        return oct_nomem(err);
    return OCT_OK;
}

oct_attn_part oct_merged_join(const oct_run *r, const oct_heads *past, const oct_heads *fresh, void *to)
{
    const int64_t step = (past->length + fresh->length) * fresh->depth;
    oct_heads_join(r->pool, OCT_F32, past->part.data != NULL ? past : NULL, fresh, to);
    return (oct_attn_part){ to, fresh->heads * step, step, fresh->depth };
}

void oct_merged_io(const oct_merged *t, const oct_step *s, const oct_run *r, const oct_operand *m,
                   const oct_operand *bias, oct_operand *keys, oct_attn_io *io)
{
    int64_t *offset = (int64_t *)(void *)((char *)r->scratch + t->offset_at);
    for (int64_t b = 0; b < t->a.batch; b++)
        offset[b] = t->past_k.length;
    io->scale = (double)oct_node_float(s->node, "scale", 0.0f);
    if (io->scale == 0.0)
        io->scale = 1.0 / sqrt((double)t->a.depth);
    io->masked = (double)oct_node_float(s->node, "mask_filter_value", -10000.0f);
    io->mask[1] = bias;
    io->left = -1;
    io->right = oct_node_int(s->node, "unidirectional", 0) != 0 ? 0 : -1;
    io->offset = offset;
    mask_run(m, &t->mask, r->scratch, keys, io);
}

oct_status oct_merged_heads(const oct_node *n, int64_t *heads, oct_err *err)
{
    *heads = oct_node_int(n, "num_heads", 0);
    return *heads > 0 ? OCT_OK : oct_fail(err, OCT_EMALFORMED, "attribute 'num_heads' is missing or below 1");
}
