/* Prints docs/operators.md: what the table of operators says, and which types each takes, found by asking its record.
 *
 *   operators CASES...
 *
 * CASES are files of testdata/ops. Of every case of an operator the inputs of its leading type are turned into each
 * other type, and the record prepares it or refuses. */
#include "../unit/op_case.h"

#include "ops/core/elem.h"
#include "ops/core/small.h"
#include "targets/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
    const oct_op *op;
    uint32_t types; /* a bit an element type */
} row;

static row rows[400];
static size_t n_rows;

static row *row_of(const char *domain, const char *type, int64_t opset)
{
    const oct_op *op = oct_op_find(domain, type, opset);
    for (size_t i = 0; i < n_rows; i++)
        if (rows[i].op == op)
            return &rows[i];
    return NULL;
}

/* ------------------------------------------------------------------ types */

/* The type that stands for an operator's T: float32 where there is one, else that of the first input (without inputs:
 * of the output). */
static oct_dtype leading_type(const op_case *c)
{
    const bool codes = strncmp(c->op, "QLinear", 7) == 0; /* of which float32 is the scale's */
    for (int i = 0; i < c->n_in && !codes; i++)
        if (c->in[i].present && c->in[i].dtype == OCT_F32)
            return OCT_F32;
    for (int i = 0; i < c->n_in && codes; i++)
        if (c->in[i].present && (c->in[i].dtype == OCT_U8 || c->in[i].dtype == OCT_S8))
            return c->in[i].dtype;
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].present)
            return c->in[i].dtype;
    return c->out[0].dtype;
}

/* Operators whose type is an attribute's: of the given number, or of a tensor. */
static const struct {
    const char *op, *attr;
    bool is_tensor;
} by_attribute[] = {
    { "BlackmanWindow", "output_datatype", false },
    { "HammingWindow", "output_datatype", false },
    { "HannWindow", "output_datatype", false },
    { "MelWeightMatrix", "output_datatype", false },
    { "RandomNormal", "dtype", false },
    { "RandomUniform", "dtype", false },
    { "RandomNormalLike", "dtype", false },
    { "RandomUniformLike", "dtype", false },
    { "Bernoulli", "dtype", false },
    { "Multinomial", "dtype", false },
    { "EyeLike", "dtype", false },
    { "ConstantOfShape", "value", true },
    { "Constant", "value", true },
};

/* Gives the attribute the type `to`; false when the operator has none. */
static bool set_attribute(op_case *c, oct_dtype to, oct_arena *a)
{
    oct_err err = OCT_ERR_INIT;
    oct_tensor *t;
    const int64_t one = 1;
    for (size_t i = 0; i < OCT_COUNT(by_attribute); i++) {
        if (c->domain[0] || strcmp(by_attribute[i].op, c->op) != 0)
            continue;
        if (!by_attribute[i].is_tensor)
            return oct_node_set_int(c->g, c->node, by_attribute[i].attr, to, &err) == OCT_OK;
        return oct_tensor_new(c->g->arena, to, 1, &one, &t, &err) == OCT_OK &&
               oct_node_set_tensor(c->g, c->node, by_attribute[i].attr, t, &err) == OCT_OK;
    }
    return false;
}

/* Numbers of t as type `to`, in an arena; NULL when they have none of it. */
static oct_tensor *converted(const op_tensor *t, oct_dtype to, oct_arena *a)
{
    oct_err err = OCT_ERR_INIT;
    oct_tensor *k;
    const oct_operand from = { .dtype = t->dtype, .count = t->count, .data = t->data };
    if (oct_tensor_new(a, to, t->rank, t->dims, &k, &err) != OCT_OK)
        return NULL;
    memset((void *)(uintptr_t)k->data, 0, k->bytes);
    for (int64_t i = 0; i < t->count && oct_dom_of(t->dtype) != OCT_DOM_NONE; i++) {
        const double v = oct_elem_double(&from, i);
        if (oct_is_small(to))
            oct_small_set(to, (void *)(uintptr_t)k->data, i, (float)v, true, OCT_SMALL_NEAREST);
        else
            oct_elem_store(to, (void *)(uintptr_t)k->data, i, 1, 1, OCT_DOM_D, &v);
    }
    return k;
}

static oct_operand *operand_of(oct_arena *a, oct_dtype t, const op_tensor *like, void *data, bool spatial)
{
    oct_operand *o = oct_arena_calloc(a, 1, sizeof *o);
    *o = (oct_operand){ .dtype = t, .rank = like->rank, .count = like->count, .data = data, .value = -1 };
    memcpy(o->dims, like->dims, sizeof o->dims);
    if (spatial && like->rank >= 3)
        o->layout = OCT_LAYOUT_CHANNELS_LAST;
    return o;
}

/* Whether the record prepares the case with the inputs of type `from` turned into `to`. */
static bool takes(op_case *c, const oct_op *op, oct_dtype from, oct_dtype to, oct_arena *a)
{
    oct_err err = OCT_ERR_INIT;
    const bool spatial = op->layout == OCT_RULE_SPATIAL;
    oct_infer ctx = { c->g, c->node, c->opset };
    const oct_node *n = &c->g->node[c->node];
    oct_operand *in[OP_CASE_IO] = { NULL }, *out[OP_CASE_IO] = { NULL };
    const bool attribute = set_attribute(c, to, a);
    for (int i = 0; i < c->n_in; i++) {
        if (!c->in[i].present)
            continue;
        const oct_dtype t = c->in[i].dtype == from && !attribute ? to : c->in[i].dtype;
        oct_tensor *k = converted(&c->in[i], t, a);
        oct_value *v = &c->g->value[n->in[i]];
        if (!k)
            return false;
        v->constant = k;
        v->dtype = t;
        in[i] = operand_of(a, t, &c->in[i], (void *)(uintptr_t)k->data, spatial && i == 0);
        in[i]->constant = i > 0;
    }
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i].present)
            c->g->value[n->out[i]].dtype = OCT_UNDEFINED;
    if (op->infer(&ctx, &err) != OCT_OK)
        return false;
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i].present)
            out[i] = operand_of(a, c->g->value[n->out[i]].dtype, &c->out[i], NULL, spatial);
    oct_step s = { .op = op,
                   .node = n,
                   .opset = c->opset,
                   .in = in,
                   .out = out,
                   .n_in = c->n_in,
                   .n_out = c->n_out,
                   .epilogue = { false, -__builtin_inff(), __builtin_inff() } };
    oct_prep p = { a, 1 };
    return oct_step_prepare(&s, &p, &err) == OCT_OK;
}

static void ask(op_case *c, void *arg)
{
    row *r = row_of(c->domain, c->op, c->opset);
    if (c->refuses || !r || !r->op->run || (c->n_out > 0 && c->out[0].quantized) || (c->n_in > 0 && c->in[0].quantized))
        return;
    for (int t = OCT_F32; t < OCT_DTYPE_COUNT; t++) {
        oct_arena *a = oct_arena_create();
        if (oct_dtype_bits((oct_dtype)t) != 0 && takes(c, r->op, leading_type(c), (oct_dtype)t, a))
            r->types |= 1u << t;
        oct_arena_destroy(a);
    }
}

/* ------------------------------------------------------------------ text */

static void add(char *text, size_t size, const char *word)
{
    snprintf(text + strlen(text), size - strlen(text), "%s%s", *text ? ", " : "", word);
}

/* A family's word when all of its types are there, else their names. */
static void add_family(uint32_t types, const oct_dtype *family, int n, const char *all, char *text, size_t size)
{
    int have = 0;
    for (int i = 0; i < n; i++)
        have += types >> family[i] & 1;
    if (have == n && n > 1)
        add(text, size, all);
    else
        for (int i = 0; i < n; i++)
            if (types >> family[i] & 1)
                add(text, size, oct_dtype_name(family[i]));
}

static const char *types_text(const row *r, char *text, size_t size)
{
    static const oct_dtype floats[] = { OCT_F32, OCT_F64, OCT_F16, OCT_BF16 },
                           ints[] = { OCT_S8, OCT_S16, OCT_S32, OCT_S64 },
                           uints[] = { OCT_U8, OCT_U16, OCT_U32, OCT_U64 }, boolean[] = { OCT_BOOL },
                           complexes[] = { OCT_C64, OCT_C128 },
                           small[] = { OCT_F8E4M3FN, OCT_F8E4M3FNUZ, OCT_F8E5M2, OCT_F8E5M2FNUZ, OCT_F8E8M0 },
                           packed[] = { OCT_U4, OCT_S4, OCT_F4E2M1, OCT_U2, OCT_S2 };
    *text = 0;
    add_family(r->types, floats, 4, "float", text, size);
    add_family(r->types, ints, 4, "int", text, size);
    add_family(r->types, uints, 4, "uint", text, size);
    add_family(r->types, boolean, 1, "bool", text, size);
    add_family(r->types, complexes, 2, "complex", text, size);
    add_family(r->types, small, 5, "8-bit float", text, size);
    add_family(r->types, packed, 5, "2 and 4 bits", text, size);
    if (r->op->moves)
        add(text, size, "string");
    if (r->op->exec)
        add(text, size, r->op->run ? "also strings or sequences" : "strings, sequences, optionals or nested graphs");
    if (!*text && !r->op->run)
        add(text, size, "int8, uint8"); /* QLinear: it becomes a step of another record */
    return text;
}

static const char *trait_name(oct_quant_trait t)
{
    switch (t) {
    case OCT_QUANT_WEIGHTED: return "product";
    case OCT_QUANT_SAME: return "keeps the parameters";
    case OCT_QUANT_JOIN: return "joins parameters";
    case OCT_QUANT_ARITH: return "arithmetic";
    case OCT_QUANT_UNARY: return "function";
    case OCT_QUANT_RECURRENT: return "recurrent";
    default: return "";
    }
}

static bool lists(const char *target, const char *op, oct_target_form form)
{
    oct_err err = OCT_ERR_INIT;
    oct_target *t = NULL;
    if (oct_target_open(target, &t, &err) != OCT_OK)
        exit(1);
    bool found = oct_target_lists(t, op, form);
    oct_target_close(t);
    return found;
}

/* "static", or, where the default target has no such form, "static (tensorrt, qnn)"; nothing where no target has. */
static void add_scheme(const oct_op *op, const char *scheme, oct_target_form form, char *text, size_t size)
{
    char one[400], names[300] = "";
    const char *name;
    for (size_t i = 0; (name = oct_target_builtin(i, NULL)); i++)
        if (lists(name, op->type, form))
            add(names, sizeof names, name);
    if (!*names)
        return;
    const bool always = lists(oct_target_builtin(0, NULL), op->type, form);
    snprintf(one, sizeof one, always ? "%s" : "%s (%s)", scheme, names);
    add(text, size, one);
}

/* Schemes in which qconvert quantizes the operator for some target. */
static const char *schemes_text(const oct_op *op, char *text, size_t size)
{
    static const struct {
        const char *name;
        oct_target_form form;
    } schemes[] = { { "static", OCT_TARGET_STATIC },
                    { "dynamic", OCT_TARGET_DYNAMIC },
                    { "weight-only", OCT_TARGET_WEIGHT_ONLY } };
    *text = 0;
    for (size_t s = 0; s < OCT_COUNT(schemes) && !op->domain[0]; s++)
        add_scheme(op, schemes[s].name, schemes[s].form, text, size);
    return text;
}

/* The row that says what is known of an operator: of one that a pass takes apart, that of the product in it. */
static const row *telling(const row *r)
{
    static const char *const parts[][2] = { { "FusedConv", "Conv" },
                                            { "FusedGemm", "Gemm" },
                                            { "FlexAttention", "Attention" } };
    for (size_t i = 0; i < OCT_COUNT(parts); i++)
        if (strcmp(r->op->type, parts[i][0]) == 0)
            return row_of("", parts[i][1], 23);
    return r;
}

static int by_name(const void *a, const void *b)
{
    const oct_op *x = ((const row *)a)->op, *y = ((const row *)b)->op;
    int d = strcmp(x->domain, y->domain);
    d = d ? d : strcmp(x->type, y->type);
    return d ? d : x->since - y->since;
}

static void print_rows(const char *domain)
{
    printf("| operator | opsets | element types | int8 | qconvert | trait |\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < n_rows; i++) {
        const oct_op *op = rows[i].op;
        char types[400], schemes[500], until[16] = "";
        if (strcmp(op->domain, domain) != 0)
            continue;
        if (op->until)
            snprintf(until, sizeof until, "%d", op->until);
        const row *r = telling(&rows[i]);
        printf("| %s | %d-%s | %s | %s | %s | %s |\n", op->type, op->since, until, types_text(r, types, sizeof types),
               r->op->integer || (!r->op->run && !r->op->exec) || strncmp(op->type, "QLinear", 7) == 0 ? "yes" : "",
               schemes_text(r->op, schemes, sizeof schemes), trait_name(r->op->quant));
    }
}

int main(int argc, char **argv)
{
    size_t n;
    const oct_op *const *all = oct_op_all(&n);
    for (size_t i = 0; i < n && i < OCT_COUNT(rows); i++)
        rows[n_rows++].op = all[i];
    for (int i = 1; i < argc; i++)
        if (!op_cases_read(argv[i], ask, NULL))
            return 1;
    qsort(rows, n_rows, sizeof *rows, by_name);
    printf(
        "# Operators\n\n"
        "Written by `tests/generate/operators` from `lib/ops/ops.inc`; a test compares. %zu records.\n\n"
        "- *opsets*: versions of the operator's domain to which the record applies. Records of the default domain apply to opsets from 7 on.\n"
        "- *element types*: of the operator's main input (or output), found with the cases of\n"
        "  `testdata/ops`. `float` is float16, bfloat16, float32 and float64; `int` and `uint` are of 8 to 64 bits. 16-bit floats\n"
        "  are computed in float32 and rounded once.\n"
        "- *int8*: the runtime computes it on 8-bit quantized tensors, in QDQ or QLinear form.\n"
        "- *qconvert*: schemes that it can choose. `static (octet)`: for this target, and not for the default one.\n"
        "- *trait*: what quantization knows of the operator. A product has weights; one that keeps the parameters moves quantized values unchanged; joined\n"
        "  parameters are shared by all inputs; arithmetic and functions have parameters of their own.\n\n"
        "An operator that is not listed is copied by `qconvert`; it and its neighbours stay float.\n\n",
        n_rows);
    for (size_t i = 0; i < n_rows; i++) {
        const char *domain = rows[i].op->domain;
        if (i > 0 && strcmp(domain, rows[i - 1].op->domain) == 0)
            continue;
        printf("%s## %s\n\n", i > 0 ? "\n" : "", domain[0] ? domain : "Default domain");
        print_rows(domain);
    }
    return 0;
}
