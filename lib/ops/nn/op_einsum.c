/* lib/ops/nn/op_einsum.c -- Einsum: operands are joined from left to right, each pair by matrix products.
 *
 * Of two operands, labels are summed away first that only one of them has and nothing needs later. Then a label is one
 * of batch (both have it, it stays), m (only A), n (only B) or k (both have it, it goes): A is laid out [batch][m][k],
 * B [batch][k][n] or [batch][n][k], and the result is [batch][m][n]. */
#include "kernels/binary.h"
#include "kernels/reduce.h"
#include "kernels/rows.h"
#include "kernels/sgemm/sgemm.h"
#include "ops/core/anyprod.h"
#include "ops/core/infer.h"
#include "ops/core/nd.h"
#include "ops/nn/einsum.h"

#include <string.h>

/* ------------------------------------------------------------------ shapes */

static oct_status merge_size(oct_dim *have, oct_dim next, int label, oct_err *err)
{
    if (have->n == 1 || (have->n < 0 && next.n >= 0 && next.n != 1))
        *have = next;
    else if (have->n >= 0 && next.n >= 0 && next.n != 1 && have->n != next.n)
        return oct_fail(err, OCT_EMALFORMED, "label %d of the equation has the sizes %lld and %lld", label,
                        (long long)have->n, (long long)next.n);
    else if (have->n < 0 && next.n < 0 && !oct_dim_same(*have, next))
        *have = (oct_dim){ -1, NULL };
    return OCT_OK;
}

/* The equation of a node and the size of each label (1 for those it lacks). */
static oct_status read_equation(const oct_node *n, const oct_shape *in, int n_in, oct_einsum *e, oct_dim *size,
                                oct_err *err)
{
    int rank[OCT_EINSUM_INPUTS] = { 0 };
    for (int i = 0; i < n_in && i < OCT_EINSUM_INPUTS; i++)
        rank[i] = in[i].rank;
    OCT_TRY(oct_einsum_parse(oct_node_str(n, "equation", ""), rank, n_in, e, err));
    for (int i = 0; i < OCT_EINSUM_LABELS; i++)
        size[i] = oct_dim_of(1);
    for (int i = 0; i < e->n; i++)
        for (int k = 0; k < e->in[i].n; k++)
            OCT_TRY(merge_size(&size[e->in[i].label[k]], in[i].d[k], e->in[i].label[k], err));
    return OCT_OK;
}

static oct_status einsum_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in[OCT_EINSUM_INPUTS];
    oct_dim size[OCT_EINSUM_LABELS], d[OCT_MAX_RANK];
    oct_einsum e;
    int n = oct_in_node(c)->n_in;
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (n > OCT_EINSUM_INPUTS)
        return OCT_OK;
    for (int i = 0; i < n; i++)
        if ((in[i] = oct_in_shape(c, i)).rank < 0)
            return OCT_OK;
    OCT_TRY(read_equation(oct_in_node(c), in, n, &e, size, err));
    for (int i = 0; i < e.out.n; i++)
        d[i] = size[e.out.label[i]];
    return oct_out_shape(c, 0, e.out.n, d, err);
}

/* ------------------------------------------------------------------ planning */

enum { MAX_LABELS = OCT_ND_RANK, MAX_STAGES = 3 * OCT_EINSUM_INPUTS };

/* Where bytes are: an operand, the output, or an offset in scratch. */
typedef struct place {
    enum { IN_OPERAND, IN_OUTPUT, IN_SCRATCH } in;
    int operand;
    size_t offset;
} place;

/* A tensor with a label a dimension. */
typedef struct view {
    place at;
    int n;
    int8_t label[MAX_LABELS];
    int64_t stride[MAX_LABELS];
} view;

/* How a view comes into the order that a stage needs: as it is, or copied to scratch. */
typedef struct arranged {
    place at;
    bool copy;
    oct_nd walk;
    size_t offset;
} arranged;

typedef struct stage {
    enum { MOVE, SUM, MULTIPLY } kind;
    arranged a, b;
    place to;
    int64_t batch, m, n, k; /* SUM: m rows of k */
    bool swapped_b;         /* B is [batch][n][k] */
    oct_sgemm gemm;
    size_t packed; /* bytes of one packed B, rounded */
    size_t packed_at, kernel_at;
    char *weights; /* packed constant B, or NULL */
} stage;

typedef struct einsum {
    oct_dtype type;
    oct_einsum e;
    int64_t size[OCT_EINSUM_LABELS];
    stage stage[MAX_STAGES];
    int n_stages;
    size_t scratch;
} einsum;

static oct_status take_scratch(einsum *s, int64_t count, size_t elem, size_t *offset, oct_err *err)
{
    size_t bytes;
    *offset = s->scratch;
    if (!oct_mul_size((size_t)count, elem, &bytes) || bytes > SIZE_MAX / 4 ||
        !oct_add_size(s->scratch, oct_round_up(bytes, 64), &s->scratch))
        return oct_fail(err, OCT_ENOMEM, "the intermediate tensors are too large");
    return OCT_OK;
}

static bool has(const view *v, int label)
{
    return memchr(v->label, label, (size_t)v->n) != NULL;
}

static bool needed_later(const einsum *s, int label, int next)
{
    for (int i = next; i < s->e.n; i++)
        if (oct_einsum_has(&s->e.in[i], label))
            return true;
    return oct_einsum_has(&s->e.out, label);
}

static view view_of(const einsum *s, const oct_operand *t, int operand)
{
    view v = { .at = { IN_OPERAND, operand, 0 } };
    const oct_einsum_term *term = &s->e.in[operand];
    int64_t stride[OCT_MAX_RANK] = { 0 };
    oct_operand_strides(t, stride);
    for (int i = 0; i < term->n; i++) {
        int64_t step = t->dims[i] == 1 ? 0 : stride[i];
        int k = 0;
        while (k < v.n && v.label[k] != term->label[i])
            k++;
        if (k < v.n) {
            v.stride[k] += step; /* a label twice: the diagonal */
        } else {
            v.label[v.n] = term->label[i];
            v.stride[v.n++] = step;
        }
    }
    return v;
}

static bool count_of(const einsum *s, const int8_t *label, int n, int64_t *count)
{
    int64_t d[2 * MAX_LABELS];
    for (int i = 0; i < n; i++)
        d[i] = s->size[label[i]];
    return oct_count(d, n, count);
}

/* Whether the view lies densely in the order of these labels (of which it may lack none). */
static bool lies_so(const einsum *s, const view *v, const int8_t *label, int n)
{
    int64_t step = 1;
    for (int i = n - 1; i >= 0; i--) {
        const int8_t *at = memchr(v->label, label[i], (size_t)v->n);
        if (at == NULL || (s->size[label[i]] != 1 && v->stride[at - v->label] != step))
            return false;
        step *= s->size[label[i]];
    }
    return true;
}

/* A walk that writes the view densely in the order of these labels. */
static oct_nd walk_to(const einsum *s, const view *v, const int8_t *label, int n)
{
    oct_nd d = { .rank = n, .arrays = 1 };
    int64_t from[OCT_ND_RANK] = { 0 }, step = 1;
    for (int i = n - 1; i >= 0; i--) {
        const int8_t *at = memchr(v->label, label[i], (size_t)v->n);
        from[i] = at != NULL ? v->stride[at - v->label] : 0;
        d.dims[i] = s->size[label[i]];
        d.stride[0][i] = step;
        step *= d.dims[i];
    }
    oct_nd_add_strides(&d, from);
    return d;
}

/* Brings v into the order of these labels, by a copy in scratch unless it lies so. */
static oct_status arrange(einsum *s, const view *v, const int8_t *label, int n, arranged *a, oct_err *err)
{
    int64_t count;
    a->at = v->at;
    a->copy = !lies_so(s, v, label, n);
    if (!a->copy)
        return OCT_OK;
    if (!count_of(s, label, n, &count))
        return oct_fail(err, OCT_ENOMEM, "the intermediate tensors are too large");
    a->walk = walk_to(s, v, label, n);
    return take_scratch(s, count, oct_elem_size(s->type), &a->offset, err);
}

static bool is_output(const einsum *s, const int8_t *label, int n)
{
    return n == s->e.out.n && memcmp(label, s->e.out.label, (size_t)n) == 0;
}

/* The dense result of a stage: the output when it is the last one, else scratch. */
static oct_status result(einsum *s, const int8_t *label, int n, bool last, stage *g, view *v, oct_err *err)
{
    int64_t count;
    if (n > MAX_LABELS)
        return oct_fail(err, OCT_EUNSUPPORTED, "an intermediate tensor of more than %d dimensions", MAX_LABELS);
    if (!count_of(s, label, n, &count))
        return oct_fail(err, OCT_ENOMEM, "the intermediate tensors are too large");
    g->to = (place){ last ? IN_OUTPUT : IN_SCRATCH, 0, 0 };
    if (!last)
        OCT_TRY(take_scratch(s, count, oct_elem_size(s->type), &g->to.offset, err));
    v->at = g->to;
    v->n = n;
    memcpy(v->label, label, (size_t)n);
    for (int64_t i = n - 1, step = 1; i >= 0; i--) {
        v->stride[i] = step;
        step *= s->size[label[i]];
    }
    return OCT_OK;
}

/* Sums away the labels of v that neither `other` has nor anything needs from operand `next` on. `last`: v is all there
 * is. */
static oct_status sum_lone(einsum *s, view *v, const view *other, int next, bool last, oct_err *err)
{
    int8_t keep[2 * MAX_LABELS] = { 0 };
    int n_keep = 0, n = 0;
    for (int i = 0; last && i < s->e.out.n; i++) /* the order of the output */
        keep[n_keep++] = s->e.out.label[i];
    for (int i = 0; !last && i < v->n; i++)
        if ((other != NULL && has(other, v->label[i])) || needed_later(s, v->label[i], next))
            keep[n_keep++] = v->label[i];
    if (n_keep == v->n)
        return OCT_OK;
    n = n_keep;
    for (int i = 0; i < v->n; i++)
        if (memchr(keep, v->label[i], (size_t)n_keep) == NULL)
            keep[n++] = v->label[i];
    stage *g = &s->stage[s->n_stages++];
    *g = (stage){ .kind = SUM };
    OCT_TRY(arrange(s, v, keep, n, &g->a, err));
    if (!count_of(s, keep, n_keep, &g->m) || !count_of(s, keep + n_keep, n - n_keep, &g->k))
        return oct_fail(err, OCT_ENOMEM, "the intermediate tensors are too large");
    return result(s, keep, n_keep, last, g, v, err);
}

/* The labels of a pair by their part. */
typedef struct parts {
    int8_t batch[MAX_LABELS], m[MAX_LABELS], n[MAX_LABELS], k[MAX_LABELS];
    int n_batch, n_m, n_n, n_k;
} parts;

static void add(int8_t *list, int *n, int label)
{
    list[(*n)++] = (int8_t)label;
}

/* Kept labels in the order of the output as far as it has them, so that the last product may write it. */
static void divide(const einsum *s, const view *a, const view *b, int next, parts *p)
{
    *p = (parts){ .n_batch = 0 };
    for (int pass = 0; pass < 2; pass++) {
        const int8_t *from = pass == 0 ? s->e.out.label : a->label;
        int n = pass == 0 ? s->e.out.n : a->n;
        for (int i = 0; i < n; i++) {
            bool in_a = has(a, from[i]), in_b = has(b, from[i]), in_out = oct_einsum_has(&s->e.out, from[i]);
            if (pass == 1 && in_out)
                continue;
            if (in_a && in_b && needed_later(s, from[i], next))
                add(p->batch, &p->n_batch, from[i]);
            else if (in_a && in_b)
                add(p->k, &p->n_k, from[i]);
            else if (in_a)
                add(p->m, &p->n_m, from[i]);
            else if (in_b)
                add(p->n, &p->n_n, from[i]);
        }
    }
    for (int i = 0; i < b->n; i++)
        if (!has(a, b->label[i]) && !oct_einsum_has(&s->e.out, b->label[i]))
            add(p->n, &p->n_n, b->label[i]);
}

static int join(int8_t *to, const int8_t *a, int na, const int8_t *b, int nb, const int8_t *c, int nc)
{
    memcpy(to, a, (size_t)na);
    memcpy(to + na, b, (size_t)nb);
    memcpy(to + na + nb, c, (size_t)nc);
    return na + nb + nc;
}

static oct_status prepare_gemm(einsum *s, stage *g, int threads, oct_err *err)
{
    if (s->type != OCT_F32 || (g->m == 1 && g->n == 1 && g->k == 1))
        return OCT_OK;
    OCT_TRY(oct_sgemm_prepare(&g->gemm, (size_t)g->m, (size_t)g->n, (size_t)g->k, threads, err));
    g->packed = oct_round_up(g->gemm.packed_size, 64);
    OCT_TRY(take_scratch(s, 1, g->packed, &g->packed_at, err));
    return take_scratch(s, 1, g->gemm.scratch_size, &g->kernel_at, err);
}

/* a becomes the product of a and b, where operands from `next` on are still to come. */
static oct_status multiply(einsum *s, view *a, view *b, int next, int threads, oct_err *err)
{
    int8_t la[4 * MAX_LABELS], lb[4 * MAX_LABELS], lt[4 * MAX_LABELS], lc[4 * MAX_LABELS];
    parts p;
    if (a->n + b->n > MAX_LABELS)
        return oct_fail(err, OCT_EUNSUPPORTED, "a product of more than %d dimensions", MAX_LABELS);
    divide(s, a, b, next, &p);
    /* The output's last dimension should be B's: it is the one along which products are written. */
    if (s->e.out.n > 0 && p.n_m > 0 && p.m[p.n_m - 1] == s->e.out.label[s->e.out.n - 1]) {
        view *t = a;
        a = b;
        b = t;
        divide(s, a, b, next, &p);
    }
    stage *g = &s->stage[s->n_stages++];
    *g = (stage){ .kind = MULTIPLY };
    int na = join(la, p.batch, p.n_batch, p.m, p.n_m, p.k, p.n_k),
        nb = join(lb, p.batch, p.n_batch, p.k, p.n_k, p.n, p.n_n);
    int nc = join(lc, p.batch, p.n_batch, p.m, p.n_m, p.n, p.n_n);
    join(lt, p.batch, p.n_batch, p.n, p.n_n, p.k, p.n_k);
    if (!count_of(s, p.batch, p.n_batch, &g->batch) || !count_of(s, p.m, p.n_m, &g->m) ||
        !count_of(s, p.n, p.n_n, &g->n) || !count_of(s, p.k, p.n_k, &g->k))
        return oct_fail(err, OCT_ENOMEM, "the intermediate tensors are too large");
    OCT_TRY(arrange(s, a, la, na, &g->a, err));
    g->swapped_b = !lies_so(s, b, lb, nb) && lies_so(s, b, lt, nb);
    OCT_TRY(arrange(s, b, g->swapped_b ? lt : lb, nb, &g->b, err));
    OCT_TRY(prepare_gemm(s, g, threads, err));
    view c;
    OCT_TRY(result(s, lc, nc, next == s->e.n && is_output(s, lc, nc), g, &c, err));
    *a = c; /* the caller's, whichever of the two it now is */
    *b = c;
    return OCT_OK;
}

static oct_status plan(einsum *s, const oct_step *step, int threads, oct_err *err)
{
    view a = view_of(s, step->in[0], 0);
    for (int i = 1; i < s->e.n; i++) {
        view b = view_of(s, step->in[i], i);
        OCT_TRY(sum_lone(s, &a, &b, i + 1, false, err));
        OCT_TRY(sum_lone(s, &b, &a, i + 1, false, err));
        OCT_TRY(multiply(s, &a, &b, i + 1, threads, err));
    }
    OCT_TRY(sum_lone(s, &a, NULL, s->e.n, true, err));
    if (a.at.in == IN_OUTPUT)
        return OCT_OK;
    stage *g = &s->stage[s->n_stages++];
    *g = (stage){ .kind = MOVE, .to = { IN_OUTPUT, 0, 0 } };
    g->a = (arranged){ .at = a.at, .copy = true, .walk = walk_to(s, &a, s->e.out.label, s->e.out.n) };
    return OCT_OK;
}

/* ------------------------------------------------------------------ running */

static void *address(const oct_step *step, const void *scratch, place p)
{
    if (p.in == IN_OPERAND)
        return step->in[p.operand]->data;
    return p.in == IN_OUTPUT ? step->out[0]->data : (char *)(uintptr_t)scratch + p.offset;
}

static const void *fetch(const einsum *s, const oct_step *step, const oct_run *r, const arranged *a)
{
    const void *from = address(step, r->scratch, a->at);
    if (!a->copy)
        return from;
    void *to = (char *)r->scratch + a->offset;
    oct_nd d = a->walk;
    oct_nd_copy(&d, r->pool, to, from, oct_elem_size(s->type), NULL);
    return to;
}

static void pack(const stage *g, const float *b, int64_t i, void *packed)
{
    b += i * g->k * g->n;
    oct_sgemm_pack(&g->gemm, b, (ptrdiff_t)(g->swapped_b ? 1 : g->n), (ptrdiff_t)(g->swapped_b ? g->k : 1), packed);
}

static void products_f32(const stage *g, const oct_run *r, const float *a, const float *b, float *c)
{
    if (g->m == 1 && g->n == 1 && g->k == 1) {
        oct_binary_f32(r->pool, OCT_BINARY_MUL, a, 1, b, 1, c, (size_t)g->batch);
        return;
    }
    char *scratch = r->scratch;
    for (int64_t i = 0; i < g->batch; i++) {
        const void *packed = g->weights != NULL ? g->weights + (size_t)i * g->packed : scratch + g->packed_at;
        if (g->weights == NULL)
            pack(g, b, i, scratch + g->packed_at);
        oct_sgemm_run(&g->gemm, r->pool, (size_t)g->m, a + i * g->m * g->k, (size_t)g->k, packed, c + i * g->m * g->n,
                      (size_t)g->n, NULL, scratch + g->kernel_at);
    }
}

static void products_any(const einsum *s, const stage *g, const oct_run *r, const char *a, const char *b, char *c)
{
    int64_t size = (int64_t)oct_elem_size(s->type);
    for (int64_t i = 0; i < g->batch; i++) {
        oct_any_matrix left = { a + i * g->m * g->k * size, g->k, 1 }, right = { b + i * g->k * g->n * size, g->n, 1 };
        if (g->swapped_b)
            right = (oct_any_matrix){ right.data, 1, g->k };
        oct_any_product(r->pool, s->type, g->m, g->n, g->k, left, right, c + i * g->m * g->n * size, g->n);
    }
}

static void sum_rows(const einsum *s, const stage *g, const oct_run *r, const void *a, void *c)
{
    uint64_t bytes = 0;
    const int64_t one = 1;
    if (s->type == OCT_F32) {
        oct_reduce_f32(r->pool, OCT_REDUCE_SUM, a, (size_t)g->m, (size_t)g->k, 1, c);
        return;
    }
    oct_elem_store(s->type, &bytes, 0, 1, 1, OCT_DOM_I, &one);
    oct_any_product(r->pool, s->type, g->m, 1, g->k, (oct_any_matrix){ a, g->k, 1 }, (oct_any_matrix){ &bytes, 0, 0 },
                    c, 1);
}

static oct_status einsum_run(const oct_step *step, const oct_run *r, oct_err *err)
{
    const einsum *s = step->state;
    if (step->out[0]->count == 0)
        return OCT_OK;
    for (int i = 0; i < s->n_stages; i++) {
        const stage *g = &s->stage[i];
        void *to = address(step, r->scratch, g->to);
        if (g->kind == MOVE) {
            oct_nd d = g->a.walk;
            oct_nd_copy(&d, r->pool, to, address(step, r->scratch, g->a.at), oct_elem_size(s->type), NULL);
            continue;
        }
        const void *a = fetch(s, step, r, &g->a);
        if (g->kind == SUM)
            sum_rows(s, g, r, a, to);
        else if (s->type == OCT_F32)
            products_f32(g, r, a, g->weights != NULL ? NULL : fetch(s, step, r, &g->b), to);
        else
            products_any(s, g, r, a, fetch(s, step, r, &g->b), to);
    }
    return OCT_OK;
}

/* Packs B of the stages whose B is a constant operand. */
static oct_status pack_constants(einsum *s, const oct_step *step, const oct_prep *p, oct_err *err)
{
    for (int i = 0; i < s->n_stages; i++) {
        stage *g = &s->stage[i];
        size_t bytes;
        if (g->kind != MULTIPLY || g->packed == 0 || g->b.at.in != IN_OPERAND || !step->in[g->b.at.operand]->constant)
            continue;
        if (!oct_mul_size(g->packed, (size_t)g->batch, &bytes) ||
            !(g->weights = oct_arena_aligned(p->arena, bytes + 1, 64)))
            return oct_nomem(err);
        const void *from = step->in[g->b.at.operand]->data;
        oct_arena *temp = g->b.copy ? oct_arena_create() : NULL;
        void *to =
            temp != NULL ? oct_arena_aligned(temp, (size_t)(g->batch * g->k * g->n) * sizeof(float) + 1, 64) : NULL;
        if (to != NULL) {
            oct_nd d = g->b.walk;
            oct_nd_copy(&d, NULL, to, from, sizeof(float), NULL);
            from = to;
        }
        for (int64_t k = 0; k < g->batch && (to != NULL || !g->b.copy); k++)
            pack(g, from, k, g->weights + (size_t)k * g->packed);
        oct_arena_destroy(temp);
        if (g->b.copy && to == NULL)
            return oct_nomem(err);
    }
    return OCT_OK;
}

static oct_status einsum_prepare(oct_step *step, const oct_prep *p, oct_err *err)
{
    oct_dim size[OCT_EINSUM_LABELS], d[OCT_EINSUM_INPUTS][OCT_MAX_RANK];
    oct_shape in[OCT_EINSUM_INPUTS];
    einsum *s = oct_arena_calloc(p->arena, 1, sizeof *s);
    if (s == NULL)
        return oct_nomem(err);
    step->state = s;
    s->type = step->in[0]->dtype;
    if (oct_dom_of(s->type) == OCT_DOM_NONE || s->type == OCT_BOOL)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->type));
    for (int i = 0; i < step->n_in && i < OCT_EINSUM_INPUTS; i++) {
        if (step->in[i] == NULL || step->in[i]->dtype != s->type)
            return oct_fail(err, OCT_EMALFORMED, "operand %d is missing or of another type than the first", i);
        for (int k = 0; k < step->in[i]->rank; k++)
            d[i][k] = oct_dim_of(step->in[i]->dims[k]);
        in[i] = (oct_shape){ step->in[i]->rank, d[i] };
    }
    OCT_TRY(read_equation(step->node, in, step->n_in, &s->e, size, err));
    for (int i = 0; i < OCT_EINSUM_LABELS; i++)
        s->size[i] = size[i].n;
    if (step->out[0]->count > 0)
        OCT_TRY(plan(s, step, p->threads, err));
    step->scratch = s->scratch;
    return pack_constants(s, step, p, err);
}

const oct_op oct_op_einsum = {
    OCT_SCHEMA("Einsum", "", 12, 1, -1, 1, 1),
    .work = OCT_WORK_PAIRS,
    .infer = einsum_infer,
    .prepare = einsum_prepare,
    .run = einsum_run,
    .widens = true,
    .bf16 = 28,
};
