/* lib/ops/tensor/op_binary.c -- arithmetic of two or more broadcast operands: Add, Sub, Mul, Div, Pow, Mod, PRelu, Min,
 * Max, Sum, Mean, And, Or, Xor, BitwiseAnd, BitwiseOr, BitwiseXor, BitShift. */
#include "kernels/math.h"
#include "ops/core/anyprod.h"
#include "ops/core/args.h"
#include "ops/core/elem.h"
#include "ops/core/nd.h"
#include "ops/core/q8.h"

#include <math.h>
#include <string.h>

typedef enum kind { ADD, SUB, MUL, DIV, MIN, MAX, POW, PRELU, MOD, FMOD, AND, OR, XOR, SHIFT_LEFT, SHIFT_RIGHT } kind;

static const struct {
    const char *type;
    kind kind;
    int f32; /* oct_binary_op, or -1 */
} kinds[] = {
    { "Add", ADD, OCT_BINARY_ADD },
    { "Sub", SUB, OCT_BINARY_SUB },
    { "Mul", MUL, OCT_BINARY_MUL },
    { "Div", DIV, OCT_BINARY_DIV },
    { "Min", MIN, OCT_BINARY_MIN },
    { "Max", MAX, OCT_BINARY_MAX },
    { "Pow", POW, OCT_BINARY_POW },
    { "PRelu", PRELU, OCT_BINARY_PRELU },
    { "Mod", MOD, OCT_BINARY_MOD },
    { "And", AND, -1 },
    { "Or", OR, -1 },
    { "Xor", XOR, -1 },
    { "BitwiseAnd", AND, -1 },
    { "BitwiseOr", OR, -1 },
    { "BitwiseXor", XOR, -1 },
    { "BitShift", SHIFT_LEFT, -1 },
    { "Sum", ADD, OCT_BINARY_ADD },
    { "Mean", ADD, OCT_BINARY_ADD },
};

static int find_kind(const char *type)
{
    for (size_t i = 0; i < OCT_COUNT(kinds); i++)
        if (strcmp(kinds[i].type, type) == 0)
            return (int)i;
    return 0;
}

/* type: of the record; a lowered node may have another (QLinearAdd). */
static kind kind_of(const char *type, const oct_node *n)
{
    kind k = kinds[find_kind(type)].kind;
    if (k == SHIFT_LEFT && strcmp(oct_node_str(n, "direction", ""), "RIGHT") == 0)
        return SHIFT_RIGHT;
    return k == MOD && oct_node_int(n, "fmod", 0) != 0 ? FMOD : k;
}

/* ------------------------------------------------------------------ scalars of each domain */

static double power(double a, double b)
{
    if (b == 0.5)
        return sqrt(a);
    if (b == floor(b) && fabs(b) <= 1024.0) {
        double base = a, r = 1.0;
        for (int n = (int)fabs(b); n > 0; n >>= 1) {
            if (n & 1)
                r *= base;
            base *= base;
        }
        return b < 0 ? 1.0 / r : r;
    }
    return a < 0 ? NAN : oct_exp(b * oct_log(a));
}

static double double_of(kind k, double a, double b)
{
    switch (k) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case DIV: return a / b;
    case MIN: return a != a || b != b ? NAN : a < b ? a : b;
    case MAX: return a != a || b != b ? NAN : a > b ? a : b;
    case POW: return power(a, b);
    case PRELU: return a < 0 ? a * b : a;
    case MOD: {
        double r = fmod(a, b);
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    default: return fmod(a, b);
    }
}

static uint64_t integer_power(uint64_t a, int64_t b)
{
    if (b < 0)
        return a == 1 ? 1 : a == UINT64_MAX ? (b & 1 ? a : 1) : 0;
    uint64_t r = 1;
    for (; b > 0; b >>= 1, a *= a)
        if (b & 1)
            r *= a;
    return r;
}

/* Distances outside of 0..63 move everything out. */
static uint64_t shift_left(uint64_t a, uint64_t by)
{
    return by < 64 ? a << by : 0;
}

static int64_t shift_right(int64_t a, uint64_t by)
{
    uint64_t fill = a < 0 ? UINT64_MAX : 0;
    return (int64_t)(by < 64 ? ((uint64_t)a ^ fill) >> by ^ fill : fill);
}

/* Wraps around; division by zero, which the specification leaves open, gives 0. */
static int64_t int_of(kind k, int64_t a, int64_t b)
{
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    switch (k) {
    case ADD: return (int64_t)(ua + ub);
    case SUB: return (int64_t)(ua - ub);
    case MUL: return (int64_t)(ua * ub);
    case DIV: return b == 0 ? 0 : b == -1 ? (int64_t)(0 - ua) : a / b;
    case MIN: return a < b ? a : b;
    case MAX: return a > b ? a : b;
    case POW: return (int64_t)integer_power(ua, b);
    case PRELU: return a < 0 ? (int64_t)(ua * ub) : a;
    case MOD: {
        int64_t r = b == 0 || b == -1 ? 0 : a % b;
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case FMOD: return b == 0 || b == -1 ? 0 : a % b;
    case AND: return a & b;
    case OR: return a | b;
    case SHIFT_LEFT: return (int64_t)shift_left(ua, ub);
    case SHIFT_RIGHT: return shift_right(a, ub);
    default: return a ^ b;
    }
}

static uint64_t uint_of(kind k, uint64_t a, uint64_t b)
{
    switch (k) {
    case DIV: return b == 0 ? 0 : a / b;
    case MIN: return a < b ? a : b;
    case MAX: return a > b ? a : b;
    case PRELU: return a;
    case MOD:
    case FMOD: return b == 0 ? 0 : a % b;
    case SHIFT_RIGHT: return b < 64 ? a >> b : 0;
    default: return (uint64_t)int_of(k, (int64_t)a, (int64_t)b);
    }
}

/* ------------------------------------------------------------------ any type */

typedef struct walk {
    kind k;
    int f32;
    const oct_operand *a, *b, *y;
} walk;

/* b's elements in the domain of a: they differ for Pow alone. */
static const void *load_as(const oct_operand *b, const oct_operand *a, int64_t o, int64_t st, int64_t n, oct_chunk *buf,
                           oct_chunk *raw)
{
    oct_dom want = oct_dom_of(a->dtype), have = oct_dom_of(b->dtype);
    if (want == have)
        return oct_elem_load(b->dtype, b->data, o, st, n, buf);
    static const oct_dtype of[] = { OCT_UNDEFINED, OCT_F32, OCT_F64, OCT_S64, OCT_U64 };
    const void *v = oct_elem_load(b->dtype, b->data, o, st, n, raw);
    oct_elem_store(of[want], buf, 0, 1, n, have, v);
    return buf;
}

#define LOGIC(sign)                 \
    for (int64_t i = 0; i < n; i++) \
        y[i] = (uint8_t)((a[i] != 0) sign(b[i] != 0));

static void logic_row(kind k, const uint8_t *a, const uint8_t *b, int64_t n, uint8_t *y)
{
    switch (k) {
    case AND: LOGIC(&) break;
    case OR: LOGIC(|) break;
    default: LOGIC(^) break;
    }
}

static void row(void *arg, const int64_t *o, const int64_t *st, int64_t n)
{
    const walk *w = arg;
    if (w->y->dtype == OCT_BOOL && st[0] == 1 && st[1] == 1 && st[2] == 1) { /* as bytes */
        logic_row(w->k, (const uint8_t *)w->a->data + o[1], (const uint8_t *)w->b->data + o[2], n,
                  (uint8_t *)w->y->data + o[0]);
        return;
    }
    oct_dom dom = oct_dom_of(w->a->dtype);
    oct_chunk ba, bb, by, raw;
    const void *a = oct_elem_load(w->a->dtype, w->a->data, o[1], st[1], n, &ba);
    const void *b = load_as(w->b, w->a, o[2], st[2], n, &bb, &raw);
    void *y = oct_elem_buffer(w->y->dtype, w->y->data, o[0], st[0], &by);
    if (dom == OCT_DOM_F)
        oct_binary_f32(NULL, (oct_binary_op)w->f32, a, 1, b, 1, y, (size_t)n);
    else if (dom == OCT_DOM_D)
        for (int64_t i = 0; i < n; i++)
            ((double *)y)[i] = double_of(w->k, ((const double *)a)[i], ((const double *)b)[i]);
    else if (dom == OCT_DOM_U)
        for (int64_t i = 0; i < n; i++)
            ((uint64_t *)y)[i] = uint_of(w->k, ((const uint64_t *)a)[i], ((const uint64_t *)b)[i]);
    else
        for (int64_t i = 0; i < n; i++)
            ((int64_t *)y)[i] = int_of(w->k, ((const int64_t *)a)[i], ((const int64_t *)b)[i]);
    oct_elem_store(w->y->dtype, w->y->data, o[0], st[0], n, dom, y);
}

/* The kernels' description of the same walk. */
static oct_broadcast broadcast_of(const oct_nd *d)
{
    oct_broadcast b = { .rank = d->rank };
    for (int i = 0; i < d->rank; i++) {
        b.dims[i] = d->dims[i];
        b.sy[i] = d->stride[0][i];
        b.sa[i] = d->stride[1][i];
        b.sb[i] = d->stride[2][i];
    }
    return b;
}

/* Squares and roots are what Pow is used for. */
static bool simple_power(const oct_operand *a, const oct_operand *b, const oct_operand *y, const oct_run *r)
{
    if (b->count != 1 || a->count != y->count || a->layout != y->layout || a->dtype != OCT_F32)
        return false;
    double e = oct_elem_double(b, 0);
    if (e != 2.0 && e != 1.0)
        return false;
    oct_unary f = { e == 2.0 ? OCT_UNARY_SQUARE : OCT_UNARY_COPY, 0, 0 };
    oct_unary_f32(r->pool, &f, a->data, y->data, (size_t)y->count);
    return true;
}

static void compute(kind k, int f32, const oct_operand *a, const oct_operand *b, const oct_operand *y, const oct_run *r)
{
    if (k == POW && simple_power(a, b, y, r))
        return;
    oct_nd d;
    oct_nd_init(&d, y);
    oct_nd_add(&d, a);
    oct_nd_add(&d, b);
    if (f32 >= 0 && a->dtype == OCT_F32 && b->dtype == OCT_F32) {
        oct_broadcast s = broadcast_of(&d);
        oct_binary_f32_nd(r->pool, (oct_binary_op)f32, &s, a->data, b->data, y->data);
    } else {
        walk w = { k, f32, a, b, y };
        oct_nd_run(&d, r->pool, row, &w);
    }
}

static void clamp_output(const oct_step *s, const oct_run *r)
{
    const oct_operand *y = s->out[0];
    oct_unary f = { OCT_UNARY_CLIP, s->epilogue.lo, s->epilogue.hi };
    if (s->epilogue.clamp && y->dtype == OCT_F32)
        oct_unary_f32(r->pool, &f, y->data, y->data, (size_t)y->count);
    else
        oct_any_clamp(&s->epilogue, y);
}

/* Logic is of bool, bits are of integers. */
static oct_status check_bits(const oct_step *s, kind k, int i, oct_err *err)
{
    oct_dtype t = s->in[i]->dtype;
    bool is_bool = t == OCT_BOOL, integer = (oct_dom_of(t) == OCT_DOM_I && !is_bool) || oct_dom_of(t) == OCT_DOM_U;
    bool bits = s->op->type[0] == 'B';
    if ((k == AND || k == OR || k == XOR) && !bits && !is_bool)
        return oct_fail(err, OCT_EMALFORMED, "input %d is %s, expected bool", i, oct_dtype_name(t));
    if (bits && !integer)
        return oct_fail(err, OCT_EMALFORMED, "input %d is %s, expected an integer", i, oct_dtype_name(t));
    if (k == SHIFT_LEFT && strcmp(oct_node_str(s->node, "direction", ""), "LEFT") != 0)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'direction' is neither LEFT nor RIGHT");
    return OCT_OK;
}

static oct_status binary_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    kind k = kind_of(s->op->type, s->node);
    for (int i = 0; i < s->n_in; i++) {
        if (s->in[i] == NULL)
            return oct_fail(err, OCT_EMALFORMED, "input %d is missing", i);
        oct_dom dom = oct_dom_of(s->in[i]->dtype);
        if (dom == OCT_DOM_NONE || (s->in[i]->dtype != s->out[0]->dtype && !(k == POW && i == 1)))
            return oct_fail(err, OCT_EUNSUPPORTED, "types %s and %s", oct_dtype_name(s->in[i]->dtype),
                            oct_dtype_name(s->out[0]->dtype));
        OCT_TRY(check_bits(s, k, i, err));
    }
    s->overwrites = oct_elem_overwrites(s, 2);
    if (s->n_in > 1 && oct_early_tail(s->node, s->opset, s->in[0]->rank, s->in[1]->rank) != 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "an axis to lie at, as before opset 7");
    return OCT_OK;
}

static bool quantized_integer(const oct_step *s)
{
    return s->n_in == 2 && oct_q8(s->in[0]) && oct_q8(s->in[1]) && oct_q8(s->out[0]) &&
           s->in[0]->dtype == s->out[0]->dtype && s->in[1]->dtype == s->out[0]->dtype;
}

static oct_status quantized_run(const oct_step *s, const oct_run *r)
{
    const oct_operand *a = s->in[0], *b = s->in[1], *y = s->out[0];
    oct_qbinary f = { s->op->type[0] == 'A' ? OCT_QBINARY_ADD : OCT_QBINARY_MUL,
                      y->dtype == OCT_S8,
                      oct_q8_param(a),
                      oct_q8_param(b),
                      oct_q8_param(y),
                      0,
                      0 };
    oct_q8_clamp(y, &s->epilogue, &f.lo, &f.hi);
    oct_nd d;
    oct_nd_init(&d, y);
    oct_nd_add(&d, a);
    oct_nd_add(&d, b);
    oct_broadcast w = broadcast_of(&d);
    oct_qbinary_8_nd(r->pool, &f, &w, a->data, b->data, y->data);
    return OCT_OK;
}

static oct_status binary_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    if (quantized_integer(s))
        return quantized_run(s, r);
    const kind k = kind_of(s->op->type, s->node);
    compute(k, k == FMOD ? OCT_BINARY_FMOD : kinds[find_kind(s->op->type)].f32, s->in[0], s->in[1], s->out[0], r);
    clamp_output(s, r);
    return OCT_OK;
}

/* ------------------------------------------------------------------ any number of inputs */

static oct_status variadic_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    int at = find_kind(s->op->type);
    kind k = kinds[at].kind;
    oct_operand *y = s->out[0];
    if (s->n_in == 1) {
        oct_nd d;
        oct_nd_init(&d, y);
        oct_nd_add(&d, s->in[0]);
        oct_nd_copy(&d, r->pool, y->data, s->in[0]->data, oct_elem_size(y->dtype), NULL);
    } else {
        compute(k, kinds[at].f32, s->in[0], s->in[1], y, r);
    }
    for (int i = 2; i < s->n_in; i++)
        compute(k, kinds[at].f32, y, s->in[i], y, r);
    if (strcmp(s->op->type, "Mean") == 0 && s->n_in > 1) {
        uint64_t bytes = 0;
        int64_t n = s->n_in;
        oct_operand scalar = { .dtype = y->dtype, .count = 1, .data = &bytes };
        oct_elem_store(y->dtype, &bytes, 0, 1, 1, OCT_DOM_I, &n);
        compute(DIV, OCT_BINARY_DIV, y, &scalar, y, r);
    }
    if (s->epilogue.clamp)
        clamp_output(s, r);
    return OCT_OK;
}

/* ------------------------------------------------------------------ inference */

/* One element of a shape computation; symbols survive neutral operands. */
static oct_dim known_element(kind k, oct_dim a, oct_dim b)
{
    int64_t x, y;
    bool kx = oct_known_get(a, &x), ky = oct_known_get(b, &y);
    if (kx && ky) {
        if ((k == POW && y < 0) || (k == SHIFT_LEFT && (y < 0 || y > 31 || x > (int64_t)INT32_MAX >> y || x < 0)))
            return (oct_dim){ -1, NULL };
        return oct_known_of(int_of(k, x, y));
    }
    if (k == ADD && ((kx && x == 0) || (ky && y == 0)))
        return kx ? b : a;
    if (k == SUB && ky && y == 0)
        return a;
    if (k == SUB && !kx && !ky && oct_dim_same(a, b))
        return oct_dim_of(0);
    if (k == MUL && ((kx && x == 1) || (ky && y == 1)))
        return kx ? b : a;
    if (k == MUL && ((kx && x == 0) || (ky && y == 0)))
        return oct_dim_of(0);
    if (k == DIV && ky && y == 1)
        return a;
    if ((k == MIN || k == MAX) && oct_dim_same(a, b))
        return a;
    return (oct_dim){ -1, NULL };
}

static oct_status infer_known(const oct_infer *c, kind k, oct_err *err)
{
    oct_dim acc[OCT_KNOWN_MAX], next[OCT_KNOWN_MAX];
    int n = oct_in_ints(c, 0, acc, OCT_KNOWN_MAX);
    for (int i = 1; n >= 0 && i < oct_in_node(c)->n_in; i++) {
        int m = oct_in_ints(c, i, next, OCT_KNOWN_MAX), out = m > n ? m : n;
        if (m < 0 || (m != n && m != 1 && n != 1))
            return OCT_OK;
        if (n == 0 || m == 0)
            out = 0;
        if (n == 1)
            for (int j = 1; j < out; j++)
                acc[j] = acc[0];
        for (int j = 0; j < out; j++)
            acc[j] = known_element(k, acc[j], next[m == 1 ? 0 : j]);
        n = out;
    }
    return n < 0 ? OCT_OK : oct_out_known(c, 0, n, acc, err);
}

static oct_status binary_infer(const oct_infer *c, oct_err *err)
{
    const oct_node *node = oct_in_node(c);
    kind k = kind_of(node->op, node);
    oct_dim buf[2][OCT_MAX_RANK];
    oct_shape sum = oct_in_shape(c, 0);
    for (int i = 0; i < node->n_in && k != POW; i++)
        oct_out_dtype(c, 0, oct_in_dtype(c, i));
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    for (int i = 1; i < node->n_in && sum.rank >= 0; i++) {
        oct_dim early[OCT_MAX_RANK];
        oct_shape next = i == 1 ? oct_early_shape(c, early) : oct_in_shape(c, i);
        oct_shape out = { -1, buf[i & 1] };
        OCT_TRY(oct_broadcast_dims(&sum, &next, &out.rank, out.d, err));
        sum = out;
    }
    OCT_TRY(oct_out_shape(c, 0, sum.rank, sum.d, err));
    if (!oct_known_wanted(c) || strcmp(node->op, "Mean") == 0)
        return OCT_OK;
    return infer_known(c, k, err);
}

/* ------------------------------------------------------------------ records */

#define BINARY(name, onnx, first, ...)                                      \
    const oct_op oct_op_##name = { OCT_SCHEMA(onnx, "", first, 2, 2, 1, 1), \
                                   .infer = binary_infer,                   \
                                   .prepare = binary_prepare,               \
                                   .run = binary_run,                       \
                                   .layout = OCT_RULE_ANY,                  \
                                   .by_rows = oct_elem_by_rows,             \
                                   __VA_ARGS__ }
#define VARIADIC(name, onnx, first, ...)                                               \
    const oct_op oct_op_##name = { OCT_SCHEMA(onnx, "", first, 1, -1, 1, 1),           \
                                   .infer = binary_infer,                              \
                                   .prepare = binary_prepare,                          \
                                   .run = variadic_run,                                \
                                   .layout = OCT_RULE_ANY,                             \
                                   .widens = true, /* a sum of many is rounded once */ \
                                   __VA_ARGS__ }

BINARY(add, "Add", 6, .adds = true, .homogeneous = 3, .raise = oct_raise_early, .fuses_clamp = true,
       .integer = quantized_integer, .quant = OCT_QUANT_ARITH);
BINARY(mul, "Mul", 6, .multiplies = true, .raise = oct_raise_early, .fuses_clamp = true, .integer = quantized_integer,
       .quant = OCT_QUANT_ARITH, .grows = OCT_GROWS_ON_ITSELF);
BINARY(sub, "Sub", 6, .homogeneous = 3, .raise = oct_raise_early, .fuses_clamp = true);
BINARY(div, "Div", 6, .raise = oct_raise_early, .fuses_clamp = true, .grows = OCT_GROWS_BY_DIVISOR, .delicate = 2);
BINARY(pow, "Pow", 6, .raise = oct_raise_early, .grows = OCT_GROWS_BY_POWER, .delicate = 1);
BINARY(mod, "Mod", 10, .until = 0);
BINARY(prelu, "PRelu", 6, .homogeneous = 1, .raise = oct_raise_early);
BINARY(and, "And", 6, .raise = oct_raise_early);
BINARY(or, "Or", 6, .raise = oct_raise_early);
BINARY(xor, "Xor", 6, .raise = oct_raise_early);
BINARY(bitwise_and, "BitwiseAnd", 18, .until = 0);
BINARY(bitwise_or, "BitwiseOr", 18, .until = 0);
BINARY(bitwise_xor, "BitwiseXor", 18, .until = 0);
BINARY(bit_shift, "BitShift", 11, .until = 0);
VARIADIC(min, "Min", 6, .homogeneous = UINT32_MAX);
VARIADIC(max, "Max", 6, .homogeneous = UINT32_MAX);
VARIADIC(sum, "Sum", 6, .adds = true, .homogeneous = UINT32_MAX, .fuses_clamp = true);
VARIADIC(mean, "Mean", 6, .until = 0);
