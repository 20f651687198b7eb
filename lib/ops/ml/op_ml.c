/* Of ai.onnx.ml: Binarizer and ArrayFeatureExtractor. */
#include "ops/core/elem.h"
#include "ops/core/infer.h"

#include <string.h>

#define ML "ai.onnx.ml"

/* ------------------------------------------------------------------ Binarizer */

static oct_status binarizer_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const double threshold = (double)oct_node_float(s->node, "threshold", 0.0f);
    for (int64_t i = 0; i < s->in[0]->count; i++) {
        const int64_t above = oct_elem_double(s->in[0], i) > threshold;
        oct_elem_store(s->out[0]->dtype, s->out[0]->data, i, 1, 1, OCT_DOM_I, &above);
    }
    return OCT_OK;
}

const oct_op oct_op_binarizer = {
    OCT_SCHEMA("Binarizer", ML, 1, 1, 1, 1, 1),
    .infer = oct_infer_like,
    .prepare = oct_elem_prepare,
    .run = binarizer_run,
    .decision = OCT_DECIDES,
};

/* ------------------------------------------------------------------ ArrayFeatureExtractor */

/* Places of the last dimension; the result of a row has two dimensions. */
static oct_status extractor_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0), at = oct_in_shape(c, 1);
    oct_dim d[OCT_MAX_RANK], places = oct_dim_of(1);
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (x.rank < 0 || at.rank < 0)
        return OCT_OK;
    if (x.rank == 0)
        return oct_fail(err, OCT_EMALFORMED, "the input is a single number and has no features");
    for (int i = 0; i < at.rank; i++)
        places = oct_dim_mul(places, at.d[i]);
    if (x.rank == 1)
        return oct_out_shape(c, 0, 2, (oct_dim[]){ oct_dim_of(1), places }, err);
    for (int i = 0; i < x.rank; i++)
        d[i] = i < x.rank - 1 ? x.d[i] : places;
    return oct_out_shape(c, 0, x.rank, d, err);
}

static oct_status extractor_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    if (oct_elem_size(s->in[0]->dtype) == 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->in[0]->dtype));
    if (s->in[1]->dtype != OCT_S64 || s->in[0]->rank < 1)
        return oct_fail(err, OCT_EMALFORMED, "places of %s in an input of %d dimensions",
                        oct_dtype_name(s->in[1]->dtype), s->in[0]->rank);
    return OCT_OK;
}

static oct_status extractor_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0];
    const int64_t *at = s->in[1]->data, places = s->in[1]->count, n = x->dims[x->rank - 1];
    const size_t size = oct_elem_size(x->dtype);
    uint8_t *to = s->out[0]->data;
    for (int64_t k = 0; k < places; k++)
        if (at[k] < 0 || at[k] >= n)
            return oct_fail(err, OCT_EMALFORMED, "feature %lld of %lld", (long long)at[k], (long long)n);
    for (int64_t row = 0; row < (places > 0 ? s->out[0]->count / places : 0); row++)
        for (int64_t k = 0; k < places; k++, to += size)
            memcpy(to, (const uint8_t *)x->data + (size_t)(row * n + at[k]) * size, size);
    return OCT_OK;
}

const oct_op oct_op_array_feature_extractor = {
    OCT_SCHEMA("ArrayFeatureExtractor", ML, 1, 2, 2, 1, 1),
    .infer = extractor_infer,
    .prepare = extractor_prepare,
    .run = extractor_run,
    .moves = true,
    .chooses = 1u << 1,
};
