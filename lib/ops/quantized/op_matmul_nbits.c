/* com.microsoft.MatMulNBits: float activations times weights of 2, 4 or 8 bits with a scale a block, computed as the
 * float product with dequantized weights; with accuracy_level 4 activations are quantized by the same blocks, where the
 * weights are constant, in order (no g_idx) and have whole zero points. B may be quantized in blocks (operand->q)
 * instead of B, scales and zero points; then the node is the product as ONNX has it. */
#include "kernels/nbits/nbits.h"
#include "kernels/rows.h"
#include "ops/core/block_matrix.h"
#include "ops/core/infer.h"
#include "ops/core/packed.h"

/* Inputs. */
enum { IN_A, IN_B, IN_SCALE, IN_ZERO, IN_GROUP, IN_BIAS };

typedef struct nbits_state {
    oct_nbits q;
    oct_sgemm f;  /* where the weights are dequantized first: groups, or weights that are computed */
    bool packs;   /* q is used */
    size_t rows;  /* of A in all */
    void *packed; /* NULL: dequantized in each run */
    size_t at_real, at_packed, at_kernel; /* parts of the scratch */
} nbits_state;

static const oct_operand *input(const oct_step *s, int slot)
{
    return slot < s->n_in ? s->in[slot] : NULL;
}

static oct_status nbits_infer(const oct_infer *c, oct_err *err)
{
    const oct_node *n = oct_in_node(c);
    oct_shape a = oct_in_shape(c, IN_A);
    oct_dim d[OCT_MAX_RANK];
    int64_t k = oct_node_int(n, "K", -1), columns = oct_node_int(n, "N", -1);
    oct_out_dtype(c, 0, oct_in_dtype(c, IN_A));
    if (k < 1 || columns < 1)
        return oct_fail(err, OCT_EMALFORMED, "K is %lld and N is %lld", (long long)k, (long long)columns);
    if (a.rank < 0)
        return OCT_OK;
    if (a.rank == 0 || (a.d[a.rank - 1].n >= 0 && a.d[a.rank - 1].n != k))
        return oct_fail(err, OCT_EMALFORMED, "A does not end in K = %lld values", (long long)k);
    for (int i = 0; i < a.rank; i++)
        d[i] = i + 1 < a.rank ? a.d[i] : oct_dim_of(columns);
    return oct_out_shape(c, 0, a.rank, d, err);
}

/* ------------------------------------------------------------------ preparing */

static bool whole(const oct_operand *o, oct_dtype t, size_t count)
{
    return o && o->dtype == t && o->count >= 0 && (uint64_t)o->count == count;
}

static bool constant(const oct_step *s)
{
    for (int i = IN_B; i <= IN_GROUP; i++)
        if (input(s, i) && !input(s, i)->constant)
            return false;
    return true;
}

/* Whether weights are packed as they are, in their few bits. */
static bool packs(const oct_step *s)
{
    return constant(s) && !input(s, IN_GROUP);
}

static oct_status read_form(const oct_step *s, oct_nbits_form *f, oct_err *err)
{
    const oct_operand *zero = input(s, IN_ZERO);
    if (s->in[IN_B]->q) {
        *f = oct_blocks_form(s->in[IN_B]->q, s->in[IN_B]->dims);
        return OCT_OK;
    }
    int64_t bits = oct_node_int(s->node, "bits", 4), block = oct_node_int(s->node, "block_size", 0);
    *f = (oct_nbits_form){ .n = (size_t)oct_node_int(s->node, "N", 1),
                           .k = (size_t)oct_node_int(s->node, "K", 1),
                           .bits = bits < 0 || bits > 16 ? 0 : (int)bits,
                           .block = block < 0 ? 0 : (size_t)block };
    f->zero = !zero ? OCT_NBITS_MIDDLE : zero->dtype == OCT_F32 ? OCT_NBITS_REAL : OCT_NBITS_WHOLE;
    f->bytes = oct_node_int(s->node, "accuracy_level", 0) == 4 && f->zero != OCT_NBITS_REAL && packs(s);
    if (s->in[IN_A]->dtype != OCT_F32 || s->in[IN_B]->dtype != OCT_U8 || s->in[IN_SCALE]->dtype != OCT_F32 ||
        (zero && zero->dtype != OCT_F32 && zero->dtype != OCT_U8))
        return oct_fail(err, OCT_EUNSUPPORTED, "%s of %s with weights of %s and scales of %s cannot be run",
                        s->op->type, oct_dtype_name(s->in[IN_A]->dtype), oct_dtype_name(s->in[IN_B]->dtype),
                        oct_dtype_name(s->in[IN_SCALE]->dtype));
    return OCT_OK;
}

/* After oct_nbits_prepare, which bounds n and k. */
static oct_status check_inputs(const oct_step *s, const oct_nbits_form *f, oct_err *err)
{
    const oct_operand *zero = input(s, IN_ZERO), *group = input(s, IN_GROUP), *bias = input(s, IN_BIAS);
    const size_t blocks = oct_nbits_blocks(f);
    if (!s->in[IN_B]->q && (!whole(s->in[IN_B], OCT_U8, f->n * oct_nbits_column_bytes(f)) ||
                            !whole(s->in[IN_SCALE], OCT_F32, f->n * blocks)))
        return oct_fail(err, OCT_EMALFORMED, "B or its scales do not fit %zu columns of %zu blocks", f->n, blocks);
    if (zero && !whole(zero, zero->dtype, f->n * (f->zero == OCT_NBITS_REAL ? blocks : oct_nbits_zero_bytes(f))))
        return oct_fail(err, OCT_EMALFORMED, "the zero points do not fit %zu columns of %zu blocks", f->n, blocks);
    if (group && !whole(group, OCT_S32, f->k) && !whole(group, OCT_S32, blocks * f->block))
        return oct_fail(err, OCT_EMALFORMED, "g_idx must be int32, one for each of the %zu values of K", f->k);
    if (bias && !whole(bias, OCT_F32, f->n))
        return oct_fail(err, OCT_EMALFORMED, "a bias of %lld values for %zu columns", (long long)bias->count, f->n);
    return OCT_OK;
}

static oct_status check_groups(const oct_step *s, const oct_nbits_form *f, oct_err *err)
{
    const oct_operand *group = input(s, IN_GROUP);
    const int32_t *g = group ? group->data : NULL;
    const int32_t blocks = (int32_t)oct_nbits_blocks(f);
    for (size_t i = 0; g && i < f->k; i++)
        if (g[i] < 0 || g[i] >= blocks)
            return oct_fail(err, OCT_EMALFORMED, "g_idx holds %d, but there are %d blocks", g[i], blocks);
    return OCT_OK;
}

static oct_nbits_weights weights_of(const oct_step *s, const oct_nbits_form *f)
{
    const oct_operand *zero = input(s, IN_ZERO), *group = input(s, IN_GROUP);
    oct_nbits_weights w = { .qvals = s->in[IN_B]->data,
                            .scale = s->in[IN_SCALE]->data,
                            .group = group ? group->data : NULL };
    if (zero && f->zero == OCT_NBITS_WHOLE)
        w.zero = zero->data;
    else if (zero)
        w.real = zero->data;
    return w;
}

static oct_status read_weights(const oct_step *s, const oct_nbits_form *f, oct_arena *made, oct_nbits_weights *w,
                               oct_err *err)
{
    if (s->in[IN_B]->q)
        return oct_blocks_weights(s->in[IN_B]->q, f, made, w, err);
    *w = weights_of(s, f);
    return OCT_OK;
}

/* real: f32[n][k] to work in. */
static void pack_real(const nbits_state *st, const oct_step *s, float *real, void *packed)
{
    const oct_nbits_form *f = &st->q.form;
    const oct_nbits_weights w = weights_of(s, f);
    for (size_t j = 0; j < f->n; j++)
        oct_nbits_dequantize(f, &w, j, real + j * f->k);
    oct_sgemm_pack(&st->f, real, 1, (ptrdiff_t)f->k, packed);
}

static oct_status pack_once(nbits_state *st, const oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_nbits_form *f = &st->q.form;
    const size_t size = st->packs ? st->q.packed_size : st->f.packed_size;
    size_t bytes;
    if (!(st->packed = oct_packed_new(p, size)))
        return oct_nomem(err);
    if (st->packs) {
        oct_nbits_weights w;
        oct_arena *made = oct_arena_create();
        oct_status status = made ? read_weights(s, f, made, &w, err) : oct_nomem(err);
        if (status == OCT_OK)
            oct_nbits_pack(&st->q, &w, st->packed);
        oct_arena_destroy(made);
        st->packed = oct_packed_done(p, st->packed, size);
        return status;
    }
    OCT_TRY(check_groups(s, f, err));
    float *real = oct_mul_size(f->n * sizeof *real, f->k, &bytes) ? oct_alloc(bytes) : NULL;
    if (!real)
        return oct_nomem(err);
    pack_real(st, s, real, st->packed);
    oct_free(real);
    st->packed = oct_packed_done(p, st->packed, size);
    return OCT_OK;
}

static oct_status plan_scratch(nbits_state *st, oct_step *s, oct_err *err)
{
    const oct_nbits_form *f = &st->q.form;
    size_t real;
    if (!oct_mul_size(f->n * sizeof(float), f->k, &real) || real > SIZE_MAX / 4)
        return oct_nomem(err);
    st->at_real = 0;
    st->at_packed = st->packed ? 0 : oct_round_up(real, 64);
    st->at_kernel = st->at_packed + (st->packed ? 0 : oct_round_up(st->f.packed_size, 64));
    s->scratch = st->at_kernel + (st->packs ? st->q.scratch_size : st->f.scratch_size);
    return OCT_OK;
}

static oct_status nbits_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    nbits_state *st = oct_arena_calloc(p->arena, 1, sizeof *st);
    oct_nbits_form f;
    if (!st)
        return oct_nomem(err);
    s->state = st;
    OCT_TRY(read_form(s, &f, err));
    OCT_TRY(oct_nbits_prepare(&st->q, &f, p->threads, err));
    OCT_TRY(check_inputs(s, &f, err));
    OCT_TRY(oct_sgemm_prepare(&st->f, 0, f.n, f.k, p->threads, err));
    st->packs = packs(s);
    st->rows = (size_t)s->in[IN_A]->count / f.k;
    if (constant(s))
        OCT_TRY(pack_once(st, s, p, err));
    return plan_scratch(st, s, err);
}

/* ------------------------------------------------------------------ running */

static oct_status nbits_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const nbits_state *st = s->state;
    const oct_nbits_form *f = &st->q.form;
    const oct_operand *bias = input(s, IN_BIAS);
    char *scratch = r->scratch, *kernel = scratch + st->at_kernel;
    const oct_sout out = {
        .bias = bias ? bias->data : NULL, .clamp = s->epilogue.clamp, .lo = s->epilogue.lo, .hi = s->epilogue.hi
    };
    const float *a = s->in[IN_A]->data;
    float *c = s->out[0]->data;
    if (st->packs) {
        oct_nbits_run(&st->q, r->pool, st->rows, a, f->k, st->packed, c, f->n, &out, kernel);
        return OCT_OK;
    }
    void *packed = st->packed ? st->packed : scratch + st->at_packed;
    if (!st->packed) {
        OCT_TRY(check_groups(s, f, err));
        pack_real(st, s, (float *)(void *)(scratch + st->at_real), packed);
    }
    oct_sgemm_run(&st->f, r->pool, st->rows, a, f->k, packed, c, f->n, &out, kernel);
    return OCT_OK;
}

const oct_op oct_op_matmul_nbits = {
    OCT_SCHEMA("MatMulNBits", "com.microsoft", 1, 3, 6, 1, 1),
    .work = OCT_WORK_OUTPUTS,
    .weights = { .data = -1 },
    .infer = nbits_infer,
    .prepare = nbits_prepare,
    .run = nbits_run,
    .widens = true,
    .fuses_clamp = true,
    .scheme = "weight-only",
};
