/* lib/ops/tensor/op_cast.c -- Cast and CastLike between all types but strings and complex numbers. */
#include "kernels/half.h"
#include "kernels/math.h"
#include "ops/core/args.h"
#include "ops/core/elem.h"
#include "ops/core/nd.h"
#include "ops/core/small.h"
#include "ops/text/strings.h"

#include <math.h>
#include <string.h>

static oct_status cast_infer(const oct_infer *c, oct_err *err)
{
    int64_t to = oct_node_int(oct_in_node(c), "to", 0);
    if (to <= 0 || to >= OCT_DTYPE_COUNT)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'to' is %lld", (long long)to);
    OCT_TRY(oct_out_like(c, 0, 0, err));
    oct_out_dtype(c, 0, (oct_dtype)to);
    return oct_known_copy(c, 0, err);
}

static oct_status like_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    oct_out_dtype(c, 0, oct_in_dtype(c, 1));
    OCT_TRY(oct_out_shape(c, 0, in.rank, in.d, err));
    return oct_known_copy(c, 0, err);
}

typedef struct walk {
    const oct_operand *x, *y;
    bool saturate;
    oct_small_round round;
} walk;

#define TAKE(type, expr)                     \
    for (int64_t i = 0; i < n; i++) {        \
        const type v = ((const type *)x)[i]; \
        to[i] = (int32_t)(expr);             \
    }

/* x[n] as 32-bit integers, truncated; false where these would not tell all that is needed of x. */
static bool as_s32(oct_dtype t, const void *x, int64_t n, int32_t *to)
{
    const int32_t last = oct_bits_of(0x1p31f) - 1;
    int32_t over = 0;
    bool inside = true;
    switch (t) {
    case OCT_BOOL: TAKE(uint8_t, v != 0) break;
    case OCT_U8: TAKE(uint8_t, v) break;
    case OCT_S8: TAKE(int8_t, v) break;
    case OCT_U16: TAKE(uint16_t, v) break;
    case OCT_S16: TAKE(int16_t, v) break;
    case OCT_S32: TAKE(int32_t, v) break;
    case OCT_F32:
        for (int64_t i = 0; i < n; i++)
            over |= last - oct_bits_of(oct_absf(((const float *)x)[i])); /* negative: too large, or NaN */
        inside = over >= 0;
        if (inside)
            TAKE(float, v)
        break;
    default: inside = false;
    }
    return inside;
}

#define GIVE(type, expr)                \
    for (int64_t i = 0; i < n; i++) {   \
        const int32_t v = x[i];         \
        ((type *)to)[i] = (type)(expr); \
    }

static void of_s32(oct_dtype t, const int32_t *x, int64_t n, void *to)
{
    switch (t) {
    case OCT_BOOL: GIVE(uint8_t, v != 0) break;
    case OCT_U8:
    case OCT_S8: GIVE(uint8_t, v) break;
    case OCT_U16:
    case OCT_S16: GIVE(uint16_t, v) break;
    case OCT_S32:
    case OCT_U32: GIVE(uint32_t, v) break;
    case OCT_S64:
    case OCT_U64: GIVE(int64_t, v) break;
    case OCT_F64: GIVE(double, v) break;
    default: GIVE(float, v)
    }
}

static void row(void *arg, const int64_t *o, const int64_t *st, int64_t n)
{
    const walk *w = arg;
    const oct_dtype from = w->x->dtype, to = w->y->dtype;
    oct_chunk c;
    int32_t v32[OCT_ND_CHUNK];
    if (st[0] == 1 && st[1] == 1 && !oct_is_half(to) &&
        !(from == OCT_F32 && (to == OCT_BOOL || oct_dom_of(to) != OCT_DOM_I)) &&
        as_s32(from, (const uint8_t *)w->x->data + o[1] * (int64_t)oct_elem_size(from), n, v32)) {
        of_s32(to, v32, n, (uint8_t *)w->y->data + o[0] * (int64_t)oct_elem_size(to));
        return;
    }
    const void *v = oct_elem_load(w->x->dtype, w->x->data, o[1], st[1], n, &c);
    oct_elem_store(w->y->dtype, w->y->data, o[0], st[0], n, oct_dom_of(w->x->dtype), v);
}

/* From or to a small type, through float; integers go to small integers as such. */
static void small_row(void *arg, const int64_t *o, const int64_t *st, int64_t n)
{
    const walk *w = arg;
    oct_chunk c, f;
    oct_dom from = oct_dom_of(w->x->dtype);
    const void *v = &f;
    if (from == OCT_DOM_NONE) {
        for (int64_t k = 0; k < n; k++)
            f.f[k] = oct_small_get(w->x->dtype, w->x->data, o[1] + k * st[1]);
        from = OCT_DOM_F;
    } else {
        v = oct_elem_load(w->x->dtype, w->x->data, o[1], st[1], n, &c);
    }
    if (!oct_is_small(w->y->dtype)) {
        oct_elem_store(w->y->dtype, w->y->data, o[0], st[0], n, from, v);
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t to = o[0] + k * st[0];
        double x = from == OCT_DOM_F ? ((const float *)v)[k] : from == OCT_DOM_D ? ((const double *)v)[k] : 0;
        if (from != OCT_DOM_F && from != OCT_DOM_D && oct_is_small_int(w->y->dtype))
            oct_small_set_int(w->y->dtype, w->y->data, to, ((const int64_t *)v)[k]);
        else if (from == OCT_DOM_I)
            oct_small_set(w->y->dtype, w->y->data, to, (float)((const int64_t *)v)[k], w->saturate, w->round);
        else if (from == OCT_DOM_U)
            oct_small_set(w->y->dtype, w->y->data, to, (float)((const uint64_t *)v)[k], w->saturate, w->round);
        else if (oct_is_small_int(w->y->dtype))
            oct_small_set_int(w->y->dtype, w->y->data, to, fabs(x) < 0x1p62 ? (int64_t)x : 0);
        else
            oct_small_set(w->y->dtype, w->y->data, to, (float)x, w->saturate, w->round);
    }
}

static bool castable(oct_dtype t)
{
    return oct_dom_of(t) != OCT_DOM_NONE || oct_is_small(t);
}

static oct_status cast_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    if (!castable(s->in[0]->dtype) || !castable(s->out[0]->dtype))
        return oct_fail(err, OCT_EUNSUPPORTED, "from %s to %s", oct_dtype_name(s->in[0]->dtype),
                        oct_dtype_name(s->out[0]->dtype));
    return OCT_OK;
}

static oct_status cast_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const char *round = oct_node_str(s->node, "round_mode", "up");
    walk w = { s->in[0], s->out[0], oct_node_int(s->node, "saturate", 1) != 0,
               strcmp(round, "up") == 0     ? OCT_SMALL_UP
               : strcmp(round, "down") == 0 ? OCT_SMALL_DOWN
                                            : OCT_SMALL_NEAREST };
    bool small = oct_is_small(w.x->dtype) || oct_is_small(w.y->dtype);
    oct_nd d;
    if (oct_is_small(w.y->dtype))
        oct_small_begin(w.y->dtype, w.y->data, w.y->count);
    oct_nd_init(&d, s->out[0]);
    oct_nd_add(&d, s->in[0]);
    oct_nd_run(&d, small ? NULL : r->pool, small ? small_row : row, &w); /* packed neighbours share bytes */
    return OCT_OK;
}

const oct_op oct_op_cast = {
    OCT_SCHEMA("Cast", "", 6, 1, 1, 1, 1),
    .infer = cast_infer,
    .prepare = cast_prepare,
    .run = cast_run,
    .exec = oct_strings_cast,
    .layout = OCT_RULE_ANY,
    .converts = true,
};

const oct_op oct_op_cast_like = {
    OCT_SCHEMA("CastLike", "", 15, 2, 2, 1, 1),
    .infer = like_infer,
    .prepare = cast_prepare,
    .run = cast_run,
    .exec = oct_strings_cast,
    .layout = OCT_RULE_ANY,
};
