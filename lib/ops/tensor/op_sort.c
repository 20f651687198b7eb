/* lib/ops/tensor/op_sort.c -- along an axis: TopK, CumSum, CumProd; by position: Trilu. */
#include "ops/core/args.h"
#include "ops/core/elem.h"
#include "ops/core/nd.h"

#include <string.h>

/* ------------------------------------------------------------------ TopK */

static oct_status topk_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    oct_dim d[OCT_MAX_RANK];
    int64_t k = -1;
    int axis;
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    oct_out_dtype(c, 1, OCT_S64);
    if (c->opset < 10)
        k = oct_node_int(oct_in_node(c), "k", -1);
    else if (oct_in_consts(c, 1, &k, 1) != 1)
        k = -1;
    if (in.rank < 0)
        return OCT_OK;
    OCT_TRY(oct_axis(oct_node_int(oct_in_node(c), "axis", -1), in.rank, &axis, err));
    if (in.rank == 0 || (k >= 0 && in.d[axis].n >= 0 && k > in.d[axis].n))
        return oct_fail(err, OCT_EMALFORMED, "%lld elements of an axis that has fewer", (long long)k);
    for (int i = 0; i < in.rank; i++)
        d[i] = i == axis ? (oct_dim){ k < 0 ? -1 : k, NULL } : in.d[i];
    OCT_TRY(oct_out_shape(c, 0, in.rank, d, err));
    return oct_out_shape(c, 1, in.rank, d, err);
}

/* An order-preserving image of an element, and where it stood. */
typedef struct item {
    uint64_t key;
    int64_t index;
} item;

static bool before(item a, item b)
{
    return a.key != b.key ? a.key < b.key : a.index < b.index;
}

static void sift_down(item *v, int64_t at, int64_t n)
{
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= n)
            return;
        if (child + 1 < n && before(v[child], v[child + 1]))
            child++;
        if (!before(v[at], v[child]))
            return;
        item t = v[at];
        v[at] = v[child];
        v[child] = t;
        at = child;
    }
}

/* The k first (by `before`) of n elements from `base` on, `step` apart, sorted: a heap of k whose top is the worst. An
 * element that is as good as that comes too late. */
static void first_sorted(const oct_operand *x, int64_t base, int64_t step, int64_t n, bool largest, item *v, int64_t k)
{
    uint64_t keys[1024];
    const uint64_t turn = largest ? UINT64_MAX : 0;
    for (int64_t first = 0; first < n && k > 0; first += 1024) {
        const int64_t part = n - first < 1024 ? n - first : 1024;
        oct_elem_keys(x, base + first * step, step, part, keys);
        for (int64_t i = 0; i < part; i++) {
            const item one = { keys[i] ^ turn, first + i };
            if (one.index >= k && one.key >= v[0].key)
                continue;
            v[one.index < k ? one.index : 0] = one;
            if (one.index >= k)
                sift_down(v, 0, k);
            for (int64_t at = k / 2 - 1; one.index == k - 1 && at >= 0; at--)
                sift_down(v, at, k);
        }
    }
    for (int64_t m = k - 1; m > 0; m--) {
        item t = v[0];
        v[0] = v[m];
        v[m] = t;
        sift_down(v, 0, m);
    }
}

static oct_status topk_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    int axis;
    const oct_operand *x = s->in[0];
    if (oct_dom_of(x->dtype) == OCT_DOM_NONE)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(x->dtype));
    OCT_TRY(oct_axis(oct_node_int(s->node, "axis", -1), x->rank, &axis, err));
    if (x->rank == 0 || !oct_mul_size((size_t)x->dims[axis], sizeof(item), &s->scratch))
        return oct_fail(err, OCT_EMALFORMED, "the axis is too long");
    return OCT_OK;
}

static oct_status topk_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *shape = s->out[0] != NULL ? s->out[0] : s->n_out > 1 ? s->out[1] : NULL;
    item *v = r->scratch;
    size_t size = oct_elem_size(x->dtype);
    bool largest = oct_node_int(s->node, "largest", 1) != 0;
    int axis;
    OCT_TRY(oct_axis(oct_node_int(s->node, "axis", -1), x->rank, &axis, err));
    if (shape == NULL || shape->dims[axis] > x->dims[axis])
        return oct_fail(err, OCT_EMALFORMED, "more elements are asked for than there are");
    const int64_t n = x->dims[axis], k = shape->dims[axis], inner = oct_product(x->dims + axis + 1, x->rank - axis - 1);
    int64_t rows = n > 0 ? x->count / n : 0;
    for (int64_t row = 0; row < rows; row++) {
        int64_t base = row / inner * n * inner + row % inner, to = row / inner * k * inner + row % inner;
        first_sorted(x, base, inner, n, largest, v, k);
        for (int64_t i = 0; i < k; i++, to += inner) {
            if (s->out[0] != NULL)
                memcpy((uint8_t *)s->out[0]->data + (size_t)to * size,
                       (const uint8_t *)x->data + (size_t)(base + v[i].index * inner) * size, size);
            if (s->n_out > 1 && s->out[1] != NULL)
                ((int64_t *)s->out[1]->data)[to] = v[i].index;
        }
    }
    return OCT_OK;
}

/* Opset 10: k becomes an input. */
static oct_status topk_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    if (from != 9)
        return OCT_OK;
    int64_t k = oct_node_int(&g->node[node], "k", -1), one = 1;
    int value;
    OCT_TRY(oct_graph_new_const_s64(g, "k", 1, &one, &k, &value, err));
    OCT_TRY(oct_graph_set_input(g, node, 1, value, err));
    oct_node_drop_attr(g, node, "k");
    return OCT_OK;
}

const oct_op oct_op_topk = {
    OCT_SCHEMA("TopK", "", 1, 1, 2, 2, 2),
    .infer = topk_infer,
    .prepare = topk_prepare,
    .run = topk_run,
    .raise = topk_raise,
    .bf16 = 24,
    .decision = OCT_SORTS,
};

/* ------------------------------------------------------------------ CumSum, CumProd */

/* x, y[steps][m]: totals of m columns from total[m] on, which becomes what comes next. */
#define CUMULATE(name, type, sign)                                                                                \
    static void name(const type *x, int64_t steps, int64_t m, bool reverse, bool exclusive, type *total, type *y) \
    {                                                                                                             \
        type one = *total; /* in a register */                                                                    \
        for (int64_t k = 0; k < steps; k++) {                                                                     \
            const int64_t at = (reverse ? steps - 1 - k : k) * m;                                                 \
            if (m == 1) {                                                                                         \
                const type sum = one sign x[at];                                                                  \
                y[at] = exclusive ? one : sum;                                                                    \
                one = sum;                                                                                        \
                continue;                                                                                         \
            }                                                                                                     \
            if (exclusive)                                                                                        \
                memcpy(y + at, total, (size_t)m * sizeof *y);                                                     \
            for (int64_t i = 0; i < m; i++)                                                                       \
                total[i] = total[i] sign x[at + i];                                                               \
            if (!exclusive)                                                                                       \
                memcpy(y + at, total, (size_t)m * sizeof *y);                                                     \
        }                                                                                                         \
        if (m == 1)                                                                                               \
            *total = one;                                                                                         \
    }
CUMULATE(sum_f, float, +)
CUMULATE(sum_d, double, +)
CUMULATE(sum_i, uint64_t, +)
CUMULATE(product_f, float, *)
CUMULATE(product_d, double, *)
CUMULATE(product_i, uint64_t, *)

static oct_status cumulate_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    const bool product = strcmp(s->op->type, "CumProd") == 0, exclusive = oct_node_int(s->node, "exclusive", 0) != 0;
    const bool reverse = oct_node_int(s->node, "reverse", 0) != 0;
    const oct_dom dom = oct_dom_of(x->dtype);
    int64_t axis_value;
    int axis;
    if (oct_step_ints(s, NULL, 1, &axis_value, 1) != 1)
        return oct_fail(err, OCT_EMALFORMED, "the axis is not one number");
    OCT_TRY(oct_axis(axis_value, x->rank, &axis, err));
    if (x->count == 0)
        return OCT_OK;
    const int64_t n = x->rank > 0 ? x->dims[axis] : 1, inner = oct_product(x->dims + axis + 1, x->rank - axis - 1);
    const int64_t width = inner < OCT_ND_CHUNK ? inner : OCT_ND_CHUNK; /* columns at a time, and steps */
    const int64_t most = width == inner ? OCT_ND_CHUNK / inner : 1;
    for (int64_t row = 0; row < x->count / n / inner; row++)
        for (int64_t column = 0; column < inner; column += width) {
            const int64_t m = inner - column < width ? inner - column : width;
            oct_chunk total, from, to;
            for (int64_t i = 0; i < m; i++)
                if (dom == OCT_DOM_F)
                    total.f[i] = product;
                else if (dom == OCT_DOM_D)
                    total.d[i] = product;
                else
                    total.u[i] = product;
            for (int64_t done = 0, steps; done < n; done += steps) {
                steps = n - done < most ? n - done : most;
                const int64_t at = (row * n + (reverse ? n - done - steps : done)) * inner + column;
                const void *v = oct_elem_load(x->dtype, x->data, at, 1, steps * m, &from);
                void *out = oct_elem_buffer(y->dtype, y->data, at, 1, &to);
                if (dom == OCT_DOM_F)
                    (product ? product_f : sum_f)(v, steps, m, reverse, exclusive, total.f, out);
                else if (dom == OCT_DOM_D)
                    (product ? product_d : sum_d)(v, steps, m, reverse, exclusive, total.d, out);
                else
                    (product ? product_i : sum_i)(v, steps, m, reverse, exclusive, total.u, out);
                oct_elem_store(y->dtype, y->data, at, 1, steps * m, dom, out);
            }
        }
    return OCT_OK;
}

const oct_op oct_op_cumsum = {
    OCT_SCHEMA("CumSum", "", 11, 2, 2, 1, 1),
    .infer = oct_infer_like,
    .prepare = oct_elem_prepare,
    .run = cumulate_run,
    .f16 = 14,
    .bf16 = 14,
    .grows = OCT_GROWS_SUMS,
};
const oct_op oct_op_cumprod = {
    OCT_SCHEMA("CumProd", "", 26, 2, 2, 1, 1),
    .infer = oct_infer_like,
    .prepare = oct_elem_prepare,
    .run = cumulate_run,
};

/* ------------------------------------------------------------------ Trilu */

static oct_status trilu_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    bool upper = oct_node_int(s->node, "upper", 1) != 0;
    int64_t k = 0;
    if (oct_step_ints(s, NULL, 1, &k, 1) == OCT_ARG_UNKNOWN)
        return oct_fail(err, OCT_EMALFORMED, "k is not one number");
    if (x->rank < 2)
        return oct_fail(err, OCT_EMALFORMED, "the input has %d dimensions, expected 2 or more", x->rank);
    int64_t rows = x->dims[x->rank - 2], cols = x->dims[x->rank - 1];
    size_t size = oct_elem_size(x->dtype);
    k = k < -rows ? -rows : k > cols ? cols : k;
    for (int64_t row = 0; cols > 0 && row < x->count / cols; row++) {
        const int64_t edge = row % rows + k + (upper ? 0 : 1);
        const size_t left = (size_t)(edge < 0      ? 0
                                     : edge > cols ? cols
                                                   : edge) *
                            size,
                     right = (size_t)cols * size - left;
        const uint8_t *from = (const uint8_t *)x->data + (size_t)(row * cols) * size;
        uint8_t *to = (uint8_t *)y->data + (size_t)(row * cols) * size;
        if (upper) {
            memset(to, 0, left);
            memcpy(to + left, from + left, right);
        } else {
            memcpy(to, from, left);
            memset(to + left, 0, right);
        }
    }
    return OCT_OK;
}

const oct_op oct_op_trilu = {
    OCT_SCHEMA("Trilu", "", 14, 1, 2, 1, 1),
    .infer = oct_infer_like,
    .prepare = oct_elem_prepare,
    .run = trilu_run,
};
