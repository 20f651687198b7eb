/* Conv, ConvTranspose and ConvInteger: 1-D to 3-D, float and 8-bit, over the convolution kernels. */
#include "base/mem.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/phases.h"
#include "kernels/rows.h"
#include "ops/core/anyprod.h"
#include "ops/core/packed.h"
#include "ops/nn/conv_f64.h"
#include "ops/nn/product.h"
#include "ops/nn/window.h"

#include <string.h>

typedef struct conv_state {
    bool integer, packed, doubles;
    oct_conv_geom g; /* of doubles */
    oct_sconv s;
    oct_qconv q;
    void *weights; /* packed; NULL when they are not constant and are packed in scratch */
    bool phased;   /* `phases.inner` is what the kernels run */
    oct_phases phases;
    /* Where parts of scratch begin, behind packed weights if those are there: of phases the weights, bias, image and
     * residual, then the kernels' own. */
    size_t phased_at, bias_at, image_at, residual_at, scratch_at;
    oct_sout sout;
    oct_qout qout;
    const int32_t *bias;
    int32_t *zero; /* ConvInteger: the weights' zero points, one or one a channel */
} conv_state;

/* ------------------------------------------------------------------ shapes */

static bool is_transposed(const oct_op *op)
{
    return strcmp(op->type, "ConvTranspose") == 0;
}

static oct_status check_channels(const oct_infer *c, oct_dim x, oct_dim w, int64_t group, oct_err *err)
{
    if (group < 1)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'group' is %lld", (long long)group);
    int64_t expected = 0;
    if (x.n >= 0 && w.n >= 0 && (__builtin_mul_overflow(w.n, group, &expected) || x.n != expected))
        return oct_fail(err, OCT_EMALFORMED,
                        "input '%s' has %lld channels, but weights '%s' expect %lld (%lld groups of %lld)",
                        oct_in_value(c, 0)->name, (long long)x.n, oct_in_value(c, 1)->name, (long long)expected,
                        (long long)group, (long long)w.n);
    return OCT_OK;
}

static oct_status weights_rank(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0), w = oct_in_shape(c, 1);
    char tw[128];
    if (w.rank < 3 || (x.rank >= 0 && x.rank != w.rank))
        return oct_fail(err, OCT_EMALFORMED, "input '%s' is %s, expected %d-D as the data", oct_in_value(c, 1)->name,
                        oct_shape_text(&w, tw, sizeof tw), x.rank < 0 ? 4 : x.rank);
    return OCT_OK;
}

/* What all convolutions begin with: the output's type, and the window, which is known where the ranks are. */
static oct_status find_window(const oct_infer *c, oct_dtype type, oct_window *win, bool *known, oct_err *err)
{
    const oct_shape w = oct_in_shape(c, 1);
    oct_out_dtype(c, 0, type);
    *known = oct_in_shape(c, 0).rank >= 0 && w.rank >= 0;
    if (!*known)
        return OCT_OK;
    OCT_TRY(weights_rank(c, err));
    return oct_window_of_weights(oct_in_node(c), w, win, err);
}

static oct_status conv_infer(const oct_infer *c, oct_err *err)
{
    const oct_shape x = oct_in_shape(c, 0), w = oct_in_shape(c, 1);
    oct_window win;
    bool known;
    OCT_TRY(find_window(c, oct_in_dtype(c, 0), &win, &known, err));
    if (!known)
        return OCT_OK;
    const int64_t group = oct_node_int(oct_in_node(c), "group", 1);
    OCT_TRY(check_channels(c, x.d[1], w.d[1], group, err));
    if (w.d[0].n >= 0 && w.d[0].n % group)
        return oct_fail(err, OCT_EMALFORMED, "%lld output channels do not divide into %lld groups", (long long)w.d[0].n,
                        (long long)group);
    oct_shape b = oct_in_shape(c, 2);
    if (b.rank >= 0 && (b.rank != 1 || (b.d[0].n >= 0 && w.d[0].n >= 0 && b.d[0].n != w.d[0].n)))
        return oct_fail(err, OCT_EMALFORMED, "bias '%s' does not have one value for each of %lld output channels",
                        oct_in_value(c, 2)->name, (long long)w.d[0].n);
    return oct_window_infer(c, &win, w.d[0], 0, err);
}

/* Output size and leading pad of ConvTranspose along dimension i (ONNX ConvTranspose-11). */
static oct_status transposed_size(const oct_node *n, oct_window *w, int i, int64_t in, int64_t *out, oct_err *err)
{
    int count_pad, count_shape;
    const int64_t *extra = oct_node_ints(n, "output_padding", &count_pad);
    const int64_t *shape = oct_node_ints(n, "output_shape", &count_shape);
    int64_t add = extra && i < count_pad ? extra[i] : 0,
            asked = shape && count_shape >= w->n ? shape[count_shape - w->n + i] : 0;
    if (in > INT32_MAX || add < 0 || add > INT32_MAX || asked < 0 || asked > INT32_MAX)
        return oct_fail(err, OCT_EMALFORMED, "an input of size %lld, with output_padding %lld and output_shape %lld",
                        (long long)in, (long long)add, (long long)asked);
    int64_t full = w->stride[i] * (in - 1) + add + (w->kernel[i] - 1) * w->dilation[i] + 1;
    bool same = w->auto_pad == OCT_PAD_SAME_LOWER || w->auto_pad == OCT_PAD_SAME_UPPER;
    if (shape || same) {
        *out = shape && count_shape >= w->n ? asked : in * w->stride[i];
        int64_t total = full - *out;
        if (total < 0)
            total = 0;
        w->before[i] = w->auto_pad == OCT_PAD_SAME_UPPER ? total / 2 : total - total / 2;
        w->after[i] = total - w->before[i];
    } else {
        if (w->auto_pad == OCT_PAD_VALID)
            w->before[i] = w->after[i] = 0;
        *out = full - w->before[i] - w->after[i];
    }
    if (*out < 1 || *out > INT32_MAX)
        return oct_fail(err, OCT_EMALFORMED, "the output would have size %lld", (long long)*out);
    return OCT_OK;
}

static oct_status transpose_infer(const oct_infer *c, oct_err *err)
{
    const oct_shape x = oct_in_shape(c, 0), w = oct_in_shape(c, 1);
    const oct_node *n = oct_in_node(c);
    oct_window win;
    bool known;
    OCT_TRY(find_window(c, oct_in_dtype(c, 0), &win, &known, err));
    if (!known)
        return OCT_OK;
    const int64_t group = oct_node_int(n, "group", 1);
    OCT_TRY(check_channels(c, x.d[1], w.d[0], 1, err));
    if (group < 1)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'group' is %lld", (long long)group);
    oct_dim d[OCT_MAX_RANK] = { x.d[0], oct_dim_mul(w.d[1], oct_dim_of(group)) };
    for (int i = 0; i < win.n; i++) {
        d[2 + i] = (oct_dim){ -1, NULL };
        if (x.d[2 + i].n >= 0 && win.kernel[i] >= 0)
            OCT_TRY(transposed_size(n, &win, i, x.d[2 + i].n, &d[2 + i].n, err));
    }
    return oct_out_shape(c, 0, x.rank, d, err);
}

/* ------------------------------------------------------------------ running */

/* That the weights are as large as the geometry says: QLinearConv is not inferred as Conv is. */
static oct_status check_weights(const oct_operand *w, const oct_conv_geom *g, oct_err *err)
{
    const int64_t in = g->transposed ? w->dims[0] : w->dims[1] * g->groups,
                  out = g->transposed ? w->dims[1] * g->groups : w->dims[0];
    if (g->groups < 1 || in != g->c || out != g->oc)
        return oct_fail(err, OCT_EMALFORMED,
                        "weights for %lld channels, in %lld groups, of %lld, on an input of %lld channels",
                        (long long)out, (long long)g->groups, (long long)in, (long long)g->c);
    return OCT_OK;
}

static oct_status geometry(const oct_step *s, oct_conv_geom *g, oct_err *err)
{
    const oct_operand *x = s->in[0], *w = s->in[1], *y = s->out[0];
    oct_dim wd[OCT_MAX_RANK];
    for (int i = 0; i < w->rank; i++)
        wd[i] = oct_dim_of(w->dims[i]);
    oct_window win;
    OCT_TRY(oct_window_of_weights(s->node, (oct_shape){ w->rank, wd }, &win, err));
    bool transposed = is_transposed(s->op);
    oct_conv_geom_init(g);
    g->n = x->dims[0];
    g->c = x->dims[1];
    g->oc = y->dims[1];
    g->ldy = y->pitch;
    g->groups = oct_node_int(s->node, "group", 1);
    g->transposed = transposed;
    OCT_TRY(check_weights(w, g, err));
    int64_t *in[] = { &g->d, &g->h, &g->w }, *out[] = { &g->od, &g->oh, &g->ow }, *k[] = { &g->kd, &g->kh, &g->kw };
    int64_t *st[] = { &g->sd, &g->sh, &g->sw }, *di[] = { &g->dd, &g->dh, &g->dw }, *pad[] = { &g->pd, &g->ph, &g->pw };
    for (int i = 0; i < win.n; i++) {
        int64_t size;
        int at = 3 - win.n + i;
        if (transposed)
            OCT_TRY(transposed_size(s->node, &win, i, x->dims[2 + i], &size, err));
        else
            OCT_TRY(oct_window_fit(&win, i, x->dims[2 + i], &size, err));
        if (size != y->dims[2 + i])
            return oct_fail(err, OCT_EINTERNAL, "output size %lld differs from the inferred %lld", (long long)size,
                            (long long)y->dims[2 + i]);
        *in[at] = x->dims[2 + i];
        *out[at] = size;
        *k[at] = win.kernel[i];
        *st[at] = win.stride[i];
        *di[at] = win.dilation[i];
        *pad[at] = win.before[i];
    }
    return oct_conv_geom_check(g, err);
}

/* What the kernels run. */
static const oct_conv_geom *kernel_geometry(conv_state *c, const oct_conv_geom *g)
{
    c->phased = oct_phases_plan(g, &c->phases);
    return c->phased ? &c->phases.inner : g;
}

static size_t runs_of(const conv_state *c)
{
    return c->phased ? c->phases.runs : 1;
}

/* Bytes from the packed weights of a run to those of the next. */
static size_t packed_step(const conv_state *c)
{
    return oct_round_up(c->integer ? c->q.packed_size : c->s.packed_size, 64);
}

static bool reserve(oct_step *s, size_t bytes, size_t *at)
{
    *at = s->scratch;
    return bytes <= SIZE_MAX - 64 && oct_add_size(s->scratch, oct_round_up(bytes, 64), &s->scratch);
}

/* Memory for packed weights: the plan's when they are constant, else the head of the scratch. */
static oct_status place_weights(conv_state *c, oct_step *s, const oct_prep *p, size_t one, size_t scratch, oct_err *err)
{
    const bool constant = s->in[1]->constant;
    const size_t size = (size_t)oct_dtype_bits(s->in[1]->dtype) / 8,
                 image = c->phased ? c->phases.image * (size_t)oct_dtype_bits(s->out[0]->dtype) / 8 : 0;
    size_t at, packed;
    if (one > SIZE_MAX - 64 || !oct_mul_size(oct_round_up(one, 64), runs_of(c), &packed) ||
        (constant && !(c->weights = oct_packed_new(p, packed))))
        return oct_nomem(err);
    s->scratch = 0;
    if ((!constant && !reserve(s, packed, &at)) ||
        (c->phased && ((!constant && !reserve(s, c->phases.weights * size, &c->phased_at)) ||
                       !reserve(s, (size_t)c->phases.inner.oc * sizeof(float), &c->bias_at) ||
                       !reserve(s, image, &c->image_at) || !reserve(s, s->residual ? image : 0, &c->residual_at))) ||
        !reserve(s, scratch, &c->scratch_at))
        return oct_nomem(err);
    return OCT_OK;
}

/* The weights of a run; w: those of all. */
static const void *run_weights(const conv_state *c, const oct_step *s, const void *w, size_t run)
{
    const size_t size = (size_t)oct_dtype_bits(s->in[1]->dtype) / 8;
    return (const uint8_t *)w + (run ? c->phases.weights / c->phases.runs * run * size : 0);
}

/* Constant weights as the kernels take them; *own is to be freed. */
static oct_status kernel_weights(const conv_state *c, const oct_step *s, const int32_t *zero, size_t step,
                                 const void **w, void **own, oct_err *err)
{
    const size_t size = (size_t)oct_dtype_bits(s->in[1]->dtype) / 8;
    *w = s->in[1]->data;
    *own = NULL;
    if (!c->phased)
        return OCT_OK;
    if (!(*own = oct_alloc(c->phases.weights * size)))
        return oct_nomem(err);
    oct_phases_weights(&c->phases, *w, size, zero, step, *own);
    *w = *own;
    return OCT_OK;
}

/* An array of four bytes for each channel, as the kernels take it. */
static oct_status kernel_array(const conv_state *c, const oct_prep *p, const void **v, oct_err *err)
{
    if (!c->phased || !*v)
        return OCT_OK;
    void *all = oct_arena_aligned(p->arena, (size_t)c->phases.inner.oc * 4, 64);
    if (!all)
        return oct_nomem(err);
    oct_phases_repeat(&c->phases, *v, 4, all);
    *v = all;
    return OCT_OK;
}

/* The last step's arrays. */
static oct_status integer_out(conv_state *c, const oct_step *s, const oct_prep *p, const oct_conv_geom *g, oct_err *err)
{
    int32_t *bias;
    OCT_TRY(oct_product_bias(s, p, g->oc, 2, &bias, err));
    OCT_TRY(oct_product_out(s, p, g->oc, 2, 1.0f, &c->qout, err));
    const void *arrays[] = { bias, c->qout.mult, c->qout.bias };
    for (int i = 0; i < 3; i++)
        OCT_TRY(kernel_array(c, p, &arrays[i], err));
    c->bias = arrays[0];
    c->qout.mult = arrays[1];
    c->qout.bias = arrays[2];
    return OCT_OK;
}

static oct_status prepare_integer(conv_state *c, oct_step *s, const oct_prep *p, const oct_conv_geom *g, oct_err *err)
{
    size_t step;
    const void *w;
    void *own;
    c->integer = true;
    OCT_TRY(oct_qconv_prepare(&c->q, kernel_geometry(c, g), s->in[0]->dtype, s->in[1]->dtype, p->threads, err));
    OCT_TRY(place_weights(c, s, p, c->q.packed_size, c->q.scratch_size, err));
    c->q.fast_pack = p->fast_pack;
    const void *zero = oct_product_zero(s->in[1]->q, &step);
    OCT_TRY(kernel_weights(c, s, zero, step, &w, &own, err));
    const oct_status status = step ? kernel_array(c, p, &zero, err) : OCT_OK;
    /* All runs have one algorithm: the only one that declines weights (Winograd) is of one group. */
    for (size_t i = 0; status == OCT_OK && i < runs_of(c); i++)
        oct_qconv_pack(&c->q, run_weights(c, s, w, i), zero, step, (uint8_t *)c->weights + i * packed_step(c));
    oct_free(own);
    OCT_TRY(status);
    c->weights = oct_packed_done(p, c->weights, packed_step(c) * runs_of(c));
    s->algorithm = oct_qconv_algorithm_name(&c->q);
    s->kernel = oct_qconv_kernel_name(&c->q);
    return integer_out(c, s, p, g, err);
}

static oct_status conv_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    conv_state *c = oct_arena_calloc(p->arena, 1, sizeof *c);
    oct_conv_geom g;
    if (!c)
        return oct_nomem(err);
    s->state = c;
    if (s->out[0]->count == 0)
        return OCT_OK;
    OCT_TRY(geometry(s, &g, err));
    if (s->in[0]->q)
        return prepare_integer(c, s, p, &g, err);
    c->doubles = s->in[0]->dtype == OCT_F64;
    const oct_dtype type = c->doubles ? OCT_F64 : OCT_F32;
    if (s->in[0]->dtype != type || s->in[1]->dtype != type)
        return oct_fail(err, OCT_EUNSUPPORTED, "a convolution of %s with %s weights cannot be run",
                        oct_dtype_name(s->in[0]->dtype), oct_dtype_name(s->in[1]->dtype));
    if (s->n_in > 2 && s->in[2] && (s->in[2]->dtype != type || s->in[2]->count != g.oc))
        return oct_fail(err, OCT_EMALFORMED, "the bias has %lld values of %s for %lld output channels",
                        (long long)s->in[2]->count, oct_dtype_name(s->in[2]->dtype), (long long)g.oc);
    c->g = g;
    if (c->doubles)
        return OCT_OK;
    OCT_TRY(oct_sconv_prepare(&c->s, kernel_geometry(c, &g), p->bf16, p->threads, err));
    s->algorithm = oct_sconv_algorithm_name(&c->s);
    s->kernel = oct_sconv_kernel_name(&c->s);
    OCT_TRY(place_weights(c, s, p, c->s.packed_size, c->s.scratch_size, err));
    if (c->weights) {
        const void *w;
        void *own;
        OCT_TRY(kernel_weights(c, s, NULL, 0, &w, &own, err));
        for (size_t i = 0; i < runs_of(c); i++)
            oct_sconv_pack(&c->s, run_weights(c, s, w, i), (uint8_t *)c->weights + i * packed_step(c));
        oct_free(own);
        c->weights = oct_packed_done(p, c->weights, packed_step(c) * runs_of(c));
    }
    c->sout = (oct_sout){ .ldr = (size_t)g.oc, .clamp = s->epilogue.clamp, .lo = s->epilogue.lo, .hi = s->epilogue.hi };
    if (s->residual && (c->phased || oct_sconv_in_place(&c->s)))
        s->overwrites = 1u << s->residual;
    return OCT_OK;
}

static void run_float(const conv_state *c, const oct_step *s, const oct_run *r, void *y)
{
    uint8_t *scratch = r->scratch;
    const void *w = s->in[1]->data, *weights = c->weights;
    oct_sout out = c->sout;
    out.bias = s->n_in > 2 && s->in[2] ? s->in[2]->data : NULL;
    out.residual = s->residual ? s->in[s->residual]->data : NULL;
    if (c->phased && out.residual) {
        oct_phases_collect(&c->phases, r->pool, out.residual, out.ldr, sizeof(float), scratch + c->residual_at);
        out.residual = (const float *)(const void *)(scratch + c->residual_at);
        out.ldr = (size_t)c->phases.inner.oc;
    }
    if (c->phased && out.bias) {
        oct_phases_repeat(&c->phases, out.bias, sizeof *out.bias, scratch + c->bias_at);
        out.bias = (const float *)(const void *)(scratch + c->bias_at);
    }
    if (!weights) {
        if (c->phased) {
            oct_phases_weights(&c->phases, w, sizeof(float), NULL, 0, scratch + c->phased_at);
            w = scratch + c->phased_at;
        }
        for (size_t i = 0; i < runs_of(c); i++)
            oct_sconv_pack(&c->s, run_weights(c, s, w, i), scratch + i * packed_step(c));
        weights = scratch;
    }
    const size_t part = c->phased ? c->phases.image / c->phases.runs : 0;
    for (size_t i = 0; i < runs_of(c); i++) {
        oct_sconv_run(&c->s, r->pool, s->in[0]->data, (const uint8_t *)weights + i * packed_step(c),
                      (float *)y + i * part, &out, scratch + c->scratch_at);
        out.residual = out.residual ? out.residual + part : NULL;
    }
}

static void run_integer(const conv_state *c, const oct_step *s, const oct_run *r, void *y)
{
    const size_t part = c->phased ? c->phases.image / c->phases.runs * oct_qout_size(c->qout.kind) : 0;
    for (size_t i = 0; i < runs_of(c); i++)
        oct_qconv_run(&c->q, r->pool, s->in[0]->data, s->in[0]->q->zp[0], (uint8_t *)c->weights + i * packed_step(c),
                      c->bias, &c->qout, (uint8_t *)y + i * part, (uint8_t *)r->scratch + c->scratch_at);
}

static oct_status conv_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const conv_state *c = s->state;
    if (s->out[0]->count == 0)
        return OCT_OK;
    if (c->doubles) {
        oct_conv_f64(&c->g, r->pool, s->in[0]->data, s->in[1]->data, s->n_in > 2 && s->in[2] ? s->in[2]->data : NULL,
                     s->out[0]->data);
        oct_any_clamp(&s->epilogue, s->out[0]);
        return OCT_OK;
    }
    void *y = c->phased ? (uint8_t *)r->scratch + c->image_at : s->out[0]->data;
    if (c->integer)
        run_integer(c, s, r, y);
    else
        run_float(c, s, r, y);
    if (c->phased)
        oct_phases_spread(&c->phases, r->pool, y, (size_t)oct_dtype_bits(s->out[0]->dtype) / 8, s->out[0]->data);
    return OCT_OK;
}

static bool conv_integer(const oct_step *s)
{
    const oct_operand *w = s->n_in > 1 ? s->in[1] : NULL;
    if (!w || !w->constant || w->rank < 3)
        return false;
    /* A transposed one has all its channels along dimension 1 of the weights where there is one group; others have a
     * scale for all. */
    int64_t channels = 0;
    if (is_transposed(s->op))
        return !__builtin_mul_overflow(w->dims[1], oct_node_int(s->node, "group", 1), &channels) &&
               oct_product_fits(s, channels, 1, 2);
    return oct_product_fits(s, w->dims[0], 0, 2);
}

/* ------------------------------------------------------------------ ConvInteger */

static oct_status conv_integer_infer(const oct_infer *c, oct_err *err)
{
    const oct_shape x = oct_in_shape(c, 0), w = oct_in_shape(c, 1);
    oct_window win;
    bool known;
    OCT_TRY(find_window(c, OCT_S32, &win, &known, err));
    if (!known)
        return OCT_OK;
    OCT_TRY(check_channels(c, x.d[1], w.d[1], oct_node_int(oct_in_node(c), "group", 1), err));
    return oct_window_infer(c, &win, w.d[0], 0, err);
}

static const oct_operand *zero_of(const oct_step *s, int slot)
{
    return slot < s->n_in ? s->in[slot] : NULL;
}

static int32_t zero_at(const oct_operand *z, int64_t i)
{
    return !z ? 0 : z->dtype == OCT_S8 ? ((const int8_t *)z->data)[i] : ((const uint8_t *)z->data)[i];
}

static void pack_integer(const conv_state *c, oct_qconv *q, const oct_step *s, void *packed)
{
    const oct_operand *z = zero_of(s, 3);
    int64_t n = z ? z->count : 1;
    for (int64_t i = 0; i < n; i++)
        c->zero[i] = zero_at(z, i);
    oct_qconv_pack(q, s->in[1]->data, c->zero, n > 1, packed);
}

static oct_status conv_integer_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    conv_state *c = oct_arena_calloc(p->arena, 1, sizeof *c);
    const oct_operand *zx = zero_of(s, 2), *zw = zero_of(s, 3);
    oct_conv_geom g;
    if (!c)
        return oct_nomem(err);
    s->state = c;
    if (s->out[0]->count == 0)
        return OCT_OK;
    for (int i = 0; i < 2; i++) {
        const oct_operand *z = zero_of(s, i + 2);
        if ((s->in[i]->dtype != OCT_U8 && s->in[i]->dtype != OCT_S8) || (z && z->dtype != s->in[i]->dtype))
            return oct_fail(err, OCT_EMALFORMED,
                            "ConvInteger of %s with a zero point of another type, or not of 8 bits",
                            oct_dtype_name(s->in[i]->dtype));
    }
    OCT_TRY(geometry(s, &g, err));
    if ((zx && zx->count != 1) || (zw && zw->count != 1 && zw->count != g.oc))
        return oct_fail(err, OCT_EMALFORMED, "the zero points of ConvInteger do not fit %lld output channels",
                        (long long)g.oc);
    OCT_TRY(oct_qconv_prepare(&c->q, &g, s->in[0]->dtype, s->in[1]->dtype, p->threads, err));
    c->qout = (oct_qout){ .kind = OCT_QOUT_S32 };
    if (!(c->zero = oct_arena_calloc(p->arena, (size_t)(zw ? zw->count : 1), sizeof *c->zero)))
        return oct_nomem(err);
    c->packed = s->in[1]->constant && (!zw || zw->constant);
    c->q.fast_pack = !c->packed || p->fast_pack;
    if (c->packed) {
        OCT_TRY(place_weights(c, s, p, c->q.packed_size, c->q.scratch_size, err));
        pack_integer(c, &c->q, s, c->weights);
        c->weights = oct_packed_done(p, c->weights, c->q.packed_size);
        s->algorithm = oct_qconv_algorithm_name(&c->q);
        s->kernel = oct_qconv_kernel_name(&c->q);
        return OCT_OK;
    }
    c->scratch_at = oct_round_up(c->q.packed_size, 64);
    return oct_add_size(c->scratch_at, c->q.scratch_size, &s->scratch) ? OCT_OK : oct_nomem(err);
}

static oct_status conv_integer_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const conv_state *c = s->state;
    if (s->out[0]->count == 0)
        return OCT_OK;
    void *weights = c->packed ? c->weights : r->scratch;
    oct_qconv q = c->q; /* weights of one run may be declined by the algorithm of the plan */
    if (!c->packed)
        pack_integer(c, &q, s, weights);
    oct_qconv_run(&q, r->pool, s->in[0]->data, zero_at(zero_of(s, 2), 0), weights, NULL, &c->qout, s->out[0]->data,
                  (char *)r->scratch + c->scratch_at);
    return OCT_OK;
}

#define CONV_WEIGHTS { .slots = 1u << 1, .out = 0, .in = 1, .data = 1, .kernel = true, .bias = 2 }

const oct_op oct_op_conv_integer = {
    OCT_SCHEMA("ConvInteger", "", 10, 2, 4, 1, 1),
    .work = OCT_WORK_OUTPUTS,
    .weights = { .slots = 1u << 1, .out = 0, .in = 1, .data = 1, .kernel = true },
    .infer = conv_integer_infer,
    .prepare = conv_integer_prepare,
    .run = conv_integer_run,
    .layout = OCT_RULE_SPATIAL,
    .scheme = "int8",
};

const oct_op oct_op_conv = {
    OCT_SCHEMA("Conv", "", 1, 2, 3, 1, 1),
    .work = OCT_WORK_OUTPUTS,
    .weights = CONV_WEIGHTS,
    .infer = conv_infer,
    .prepare = conv_prepare,
    .run = conv_run,
    .layout = OCT_RULE_SPATIAL,
    .integer = conv_integer,
    .quant = OCT_QUANT_WEIGHTED,
    .fuses_clamp = true,
    .fuses_sum = true,
    .widens = true,
    .pitched = true,
};

/* By shape inference alone: a pass takes it apart (passes/rewrites/pass_split.c). */
const oct_op oct_op_fused_conv = {
    OCT_SCHEMA("FusedConv", "com.microsoft", 1, 2, 4, 1, 1),
    .work = OCT_WORK_OUTPUTS,
    .weights = CONV_WEIGHTS,
    .infer = conv_infer,
};

const oct_op oct_op_conv_transpose = {
    OCT_SCHEMA("ConvTranspose", "", 1, 2, 3, 1, 1),
    .work = OCT_WORK_INPUTS,
    .weights = { .slots = 1u << 1, .out = 1, .in = 0, .data = 1, .kernel = true, .bias = 2 },
    .infer = transpose_infer,
    .prepare = conv_prepare,
    .run = conv_run,
    .layout = OCT_RULE_SPATIAL,
    .integer = conv_integer,
    .quant = OCT_QUANT_WEIGHTED,
    .fuses_clamp = true,
    .fuses_sum = true,
    .widens = true,
    .pitched = true,
};
