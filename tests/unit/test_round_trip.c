/* lib/forms: what was written is read as the same quantized graph, which is written with the same bytes: every form,
 * many models. */
#include "unit.h"

#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "forms/forms.h"
#include "kernels/half.h"
#include "net_cnn.h"
#include "onnx/model.h"
#include "ops/core/quantized.h"
#include "ops/core/small.h"
#include "passes/match.h"
#include "quant/quant.h"
#include "targets.h"

/* ---- a graph as text: the same of equal graphs, whatever their values are called and however quantized values are
 * laid out ---- */

typedef struct printer {
    const oct_graph *g;
    const struct printer *outer;
    oct_buf *b;
    int *value, *node; /* numbers, in the order of the text; 0: none yet */
    int values, nodes;
} printer;

static void print_value(printer *p, int v);
static void print_graph(const oct_graph *g, const printer *outer, oct_buf *b);

static int code_at(const oct_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case OCT_U8: return ((const uint8_t *)t->data)[i];
    case OCT_S8: return ((const int8_t *)t->data)[i];
    case OCT_S32: return ((const int32_t *)t->data)[i];
    default: return (int)oct_small_get(t->dtype, t->data, i);
    }
}

/* Of element x of a matrix in blocks: the code less its zero point, and the scale. */
static int in_blocks(const oct_value *v, const int64_t x[2], float *scale)
{
    const oct_quant *q = v->quant;
    const int64_t n = x[1 - q->axis], k = x[q->axis], columns = v->shape.d[1 - q->axis].n, block = q->block;
    const int64_t blocks = (v->shape.d[q->axis].n + block - 1) / block;
    const int64_t qparams = q->axis || oct_value_by_columns(v) ? n * blocks + k / block : k / block * columns + n;
    *scale = q->scale[qparams];
    if (!oct_value_by_columns(v))
        return code_at(q->qvals, x[0] * v->shape.d[1].n + x[1]) - q->zp[qparams];
    const int bits = oct_dtype_bits(q->dtype), per = 8 / bits;
    const bool whole = q->dtype == OCT_U2 || q->dtype == OCT_U4 || q->dtype == OCT_U8;
    const uint8_t *column = (const uint8_t *)q->qvals->data + n * blocks * block / per;
    return (column[k / per] >> k % per * bits & ((1 << bits) - 1)) - (whole ? 0 : 1 << (bits - 1)) - q->zp[qparams];
}

/* A matrix by its elements. */
static void print_matrix(oct_buf *b, const oct_value *v)
{
    const oct_quant *q = v->quant;
    uint64_t h = 0;
    for (int64_t i = 0; i < v->shape.d[0].n; i++)
        for (int64_t j = 0; j < v->shape.d[1].n; j++) {
            const int64_t x[2] = { i, j };
            const int at = q->n == 1 || q->block ? 0 : (int)x[q->axis];
            float scale = q->scale[at];
            const int code =
                q->block ? in_blocks(v, x, &scale) : code_at(q->qvals, i * v->shape.d[1].n + j) - q->zp[at];
            h = oct_hash(oct_hash(h, &code, sizeof code), &scale, sizeof scale);
        }
    oct_buf_printf(b, " %s block %lld axis %d %llx", oct_dtype_name(q->dtype), (long long)q->block,
                   q->n > 1 ? q->axis : 0, (unsigned long long)h);
}

static void print_quant(oct_buf *b, const oct_value *v)
{
    const oct_quant *q = v->quant;
    if (q->qvals && v->shape.rank == 2) {
        print_matrix(b, v);
        return;
    }
    uint64_t h = oct_hash(0, q->scale, q->n ? (size_t)q->n * sizeof *q->scale : 0);
    h = oct_hash(h, q->zp, q->n ? (size_t)q->n * sizeof *q->zp : 0);
    oct_buf_printf(b, " %s n %d axis %d block %lld %llx", oct_dtype_name(q->dtype), q->n, q->n > 1 ? q->axis : 0,
                   (long long)q->block, (unsigned long long)h);
    if (q->qvals)
        oct_buf_printf(b, " codes %llx", (unsigned long long)oct_hash(0, q->qvals->data, q->qvals->bytes));
}

static void print_attr(printer *p, const oct_attr *a)
{
    if (strcmp(a->name, "beta") == 0 && a->f == 1.0f)
        return; /* QGemm has none */
    oct_buf_printf(p->b, " %s", a->name);
    switch (a->type) {
    case OCT_ATTR_FLOAT: oct_buf_printf(p->b, "=%a", (double)a->f); break;
    case OCT_ATTR_INT: oct_buf_printf(p->b, "=%lld", (long long)a->i); break;
    case OCT_ATTR_STRING: oct_buf_printf(p->b, "=%s", a->s); break;
    case OCT_ATTR_TENSOR:
        oct_buf_printf(p->b, "=%llx", (unsigned long long)oct_hash(0, a->t->data, a->t->bytes));
        break;
    case OCT_ATTR_FLOATS:
        oct_buf_printf(p->b, "=%llx", (unsigned long long)oct_hash(0, a->floats, (size_t)a->n * sizeof *a->floats));
        break;
    case OCT_ATTR_INTS:
        oct_buf_printf(p->b, "=%llx", (unsigned long long)oct_hash(0, a->ints, (size_t)a->n * sizeof *a->ints));
        break;
    case OCT_ATTR_GRAPH: print_graph(a->graphs[0], p, p->b); break;
    default: break;
    }
}

static int by_name(const void *a, const void *b)
{
    const oct_attr *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Nodes whose names writing makes are told without. */
static bool is_named(const oct_node *n)
{
    static const char *const made[] = { "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Cast", "Add" };
    bool named = true;
    for (size_t i = 0; i < OCT_COUNT(made); i++)
        named &= strcmp(n->op, made[i]) != 0;
    return named;
}

static void print_node(printer *p, int id)
{
    const oct_node *n = &p->g->node[id];
    const oct_attr *attr[64];
    size_t n_attr = 0;
    p->node[id] = ++p->nodes;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0)
            print_value(p, n->in[i]);
    for (int i = 0; i < n->n_captured; i++)
        print_value(p, n->captured[i]);
    const bool matrix =
        oct_is_op(n, "Gemm") && n->n_in == 2 && n->n_attr == 0; /* which a MatMul may be written as (write_qdq.c) */
    oct_buf_printf(p->b, "%s '%s'", matrix ? "MatMul" : n->op,
                   !is_named(n) ? ""
                   : n->name[0] ? n->name
                                : p->g->value[n->out[0]].name);
    for (int i = 0; i < n->n_in; i++)
        oct_buf_printf(p->b, " #%d", n->in[i] >= 0 ? p->value[n->in[i]] : 0);
    while (n_attr < n->n_attr && n_attr < OCT_COUNT(attr)) {
        attr[n_attr] = &n->attr[n_attr];
        n_attr++;
    }
    qsort(attr, n_attr, sizeof *attr, by_name);
    for (size_t i = 0; i < n_attr; i++)
        print_attr(p, attr[i]);
    oct_buf_puts(p->b, "\n");
}

/* Whether a node makes reals that are rounded then: reading leaves the border that annotating has put into the
 * value. */
static bool rounds_behind(const oct_graph *g, int node)
{
    oct_compute how = OCT_ON_QUANTIZED;
    if (node >= 0 && !oct_border_of(g, &g->node[node]))
        GOOD(oct_compute_of(g, node, &how, err));
    return how != OCT_ON_QUANTIZED;
}

static void print_value(printer *p, int v)
{
    const oct_value *x = &p->g->value[v];
    char text[200];
    if (p->value[v])
        return;
    if (x->producer >= 0 && !p->node[x->producer])
        print_node(p, x->producer);
    if (x->quant && rounds_behind(p->g, x->producer)) {
        p->values++;
        oct_buf_printf(p->b, "#%d output 0\nQuantizeLinear '' #%d\n", p->values, p->values);
    }
    p->value[v] = ++p->values;
    oct_buf_printf(p->b, "#%d", p->value[v]);
    if (x->quant || x->constant || oct_is_half(x->dtype) || x->is_input || x->is_output)
        oct_buf_printf(p->b, " %s", oct_dtype_name(x->dtype));
    if (x->is_input || x->is_output)
        oct_buf_printf(p->b, " %s %s", x->name, oct_shape_text(&x->shape, text, sizeof text));
    if (x->outer >= 0)
        oct_buf_printf(p->b, " outer #%d", p->outer->value[x->outer]);
    for (int k = 0; x->producer >= 0 && k < p->g->node[x->producer].n_out; k++)
        if (p->g->node[x->producer].out[k] == v)
            oct_buf_printf(p->b, " output %d", k);
    if (x->quant)
        print_quant(p->b, x);
    else if (x->constant)
        oct_buf_printf(p->b, " %llx",
                       x->constant->dtype == OCT_STRING
                           ? 0
                           : (unsigned long long)oct_hash(0, x->constant->data, x->constant->bytes));
    oct_buf_puts(p->b, "\n");
}

static void print_graph(const oct_graph *g, const printer *outer, oct_buf *b)
{
    printer p = { .g = g,
                  .outer = outer,
                  .b = b,
                  .value = oct_calloc(g->n_value + 1, sizeof(int)),
                  .node = oct_calloc(g->n_node + 1, sizeof(int)) };
    assert_true(p.value && p.node);
    for (size_t i = 0; i < g->n_input; i++)
        print_value(&p, g->input[i]);
    for (size_t i = 0; i < g->n_output; i++)
        print_value(&p, g->output[i]);
    oct_free(p.value);
    oct_free(p.node);
}

/* ---- what forms cannot tell apart ---- */

/* The same matrix as its transpose. In blocks by columns the quantized values stay as they are. */
static void transpose_constant(oct_graph *g, int v)
{
    oct_value *x = &g->value[v];
    oct_quant *q = oct_arena_memdup(g->arena, x->quant, sizeof *q);
    const int64_t n = x->shape.d[0].n, k = x->shape.d[1].n;
    oct_tensor *t;
    q->axis = 1 - q->axis;
    if (!q->block) {
        GOOD(oct_tensor_new(g->arena, q->dtype, 2, (int64_t[]){ k, n }, &t, err));
        for (int64_t i = 0; i < n * k; i++)
            ((uint8_t *)(uintptr_t)t->data)[i % k * n + i / k] = ((const uint8_t *)q->qvals->data)[i];
        q->qvals = t;
    }
    x->quant = q;
    GOOD(oct_graph_set_dims(g, v, 2, (int64_t[]){ k, n }, err));
}

static void split(oct_graph *g, int id)
{
    const int y = g->node[id].out[0], bias = oct_input_at(&g->node[id], 2);
    int sum, product;
    g->node[id].op = "MatMul";
    if (bias < 0)
        return;
    GOOD(oct_graph_new_value(g, "product", OCT_F32, &product, err));
    GOOD(oct_graph_set_output(g, id, 0, product, err));
    GOOD(oct_graph_add_node(g, "Add", "", "", 2, 1, -1, &sum, err));
    oct_graph_cut_inputs(g, id, 2);
    GOOD(oct_graph_set_input(g, sum, 0, product, err));
    GOOD(oct_graph_set_input(g, sum, 1, bias, err));
    GOOD(oct_graph_set_output(g, sum, 0, y, err));
}

/* Files know Gemm only around DequantizeLinear and as QGemm. What is quantized when run is multiplied as by MatMul and
 * Add, and MatMulNBits has neither a transposition nor factors. So it is read. */
static void plain_products(oct_graph *g)
{
    const size_t n = g->n_node;
    oct_graph *nested;
    for (int id = 0; id < (int)n; id++) {
        oct_node *m = &g->node[id];
        for (size_t k = 0; !m->dead && (nested = oct_node_graph_at(m, k)); k++)
            plain_products(nested);
        if (m->dead || !oct_is_op(m, "Gemm") || !g->value[m->in[1]].quant)
            continue;
        const oct_quant *x = g->value[m->in[0]].quant, *w = g->value[m->in[1]].quant;
        const bool dynamic = x && x->n == 0;
        if (!dynamic && !oct_value_by_columns(&g->value[m->in[1]]))
            continue;
        if (w->axis == (w->block > 0) && oct_node_int(m, "transB", 0))
            transpose_constant(g, m->in[1]);
        m->n_attr = 0;
        if (dynamic || oct_input_at(m, 2) < 0)
            split(g, id);
    }
    GOOD(oct_graph_sort(g, err));
}

/* ---- one model in one form ---- */

typedef struct form {
    const char *name, *target;
    oct_scheme scheme;
    const char *made;  /* an operator that files of this form have */
    const char *rules; /* of a policy */
    bool qoperator, blocks_qdq, symmetric;
    int bits;
} form;

static const form forms[] = {
    { "qdq", "octet", OCT_SCHEME_STATIC, "QuantizeLinear" },
    { "qdq of unsigned weights", "onnxruntime-x86", OCT_SCHEME_STATIC, "QuantizeLinear" },
    { "qdq of signed activations", "octet", OCT_SCHEME_STATIC, "QuantizeLinear",
      "any - s8/tensor/sym s8/tensor/asym -" },
    { "qlinear", "octet", OCT_SCHEME_STATIC, "QLinearConv", .qoperator = true },
    { "dynamic", "onnxruntime-x86", OCT_SCHEME_DYNAMIC, "MatMulInteger" },
    { "dynamic with one scale", "octet", OCT_SCHEME_DYNAMIC, "DynamicQuantizeLSTM", "any - s8/tensor/sym - -" },
    { "dynamic with scales of rows", "octet", OCT_SCHEME_DYNAMIC, "DynamicQuantizeLSTM" },
    { "blocks", "octet", OCT_SCHEME_WEIGHT_ONLY, "MatMulNBits" },
    { "blocks of 8 bits", "octet", OCT_SCHEME_WEIGHT_ONLY, "MatMulNBits", .symmetric = true, .bits = 8 },
    { "blocks behind DequantizeLinear", "octet", OCT_SCHEME_WEIGHT_ONLY, "DequantizeLinear", .blocks_qdq = true },
    { "symmetric blocks behind DequantizeLinear", "octet", OCT_SCHEME_WEIGHT_ONLY, "DequantizeLinear",
      .blocks_qdq = true, .symmetric = true },
    { "float16", "octet", OCT_SCHEME_FP16, "Cast" },
    { "bfloat16", "octet", OCT_SCHEME_BF16, "Cast" },
    { "a mixture", "octet", OCT_SCHEME_AUTO, "MatMulNBits",
      "op:MatMul,Gemm weight-only u4/block32/asym - -\nfirst fp16 - - -\nop:Add float - - -" },
};

static char folder[40];

static int remove_folder(void **state)
{
    static const char *const names[] = { "first.onnx", "second.onnx", "third.onnx", "settled.onnx" };
    char path[300];
    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

typedef struct trip {
    const form *f;
    oct_policy *policy;
    oct_calib *calib;
    oct_qjob *job;
    size_t failed, made;
} trip;

/* Statistics of a few numbers for every value. */
static void make_table(trip *t)
{
    size_t n;
    oct_calib_tensor *c;
    const char *const *names = oct_qjob_values(t->job, NULL, &n);
    assert_non_null(t->calib = oct_calib_create());
    for (size_t i = 0; i < n; i++) {
        GOOD(oct_calib_add(t->calib, names[i], &c, err));
        GOOD(oct_stats_update(&c->stats, (float[]){ -1.0f, 0.3f, 0.8f, 1.0f + (float)(i % 7) }, 4, err));
    }
}

/* The graph with its quantization in its values; false: it cannot be converted. */
static bool annotate(trip *t, oct_graph *g)
{
    oct_err why = OCT_ERR_INIT;
    GOOD(oct_policy_create(NULL, &t->policy, err));
    if (t->f->rules)
        GOOD(oct_policy_add(t->policy, t->f->rules, "test", err));
    const oct_qjob_opts o = { .policy = t->policy,
                              .target = target_named(t->f->target),
                              .scheme = t->f->scheme,
                              .have_data = true,
                              .threads = 1,
                              .blocks_qdq = t->f->blocks_qdq,
                              .symmetric = t->f->symmetric,
                              .bits = t->f->bits };
    const oct_status s = oct_qjob_create(g, &o, &t->job, &why);
    if (s == OCT_EUNSUPPORTED)
        return false;
    assert_int_equal(s, OCT_OK);
    make_table(t);
    GOOD(oct_qjob_decide(t->job, t->calib, err));
    GOOD(oct_qjob_annotate(t->job, err));
    GOOD(oct_infer_shapes(g, err));
    return true;
}

static void end(trip *t)
{
    oct_calib_destroy(t->calib);
    oct_qjob_destroy(t->job);
    oct_policy_destroy(t->policy);
    *t = (trip){ .f = t->f, .failed = t->failed, .made = t->made };
}

static void read_graph(oct_graph *g)
{
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_forms_read(g, NULL, NULL, err));
    oct_graph_prune(g);
}

/* Whether a model was quantized before. Then it is read before it is written, since others spell some things in other
 * ways. */
static bool is_quantized(const oct_graph *g)
{
    bool any = false;
    for (size_t i = 0; i < g->n_order; i++)
        any |= strstr(g->node[g->order[i]].op, "QLinear") || strstr(g->node[g->order[i]].op, "Quantize") ||
               strstr(g->node[g->order[i]].op, "QGemm");
    return any;
}

/* The bytes of the file that has the graph's form. */
static void write_to(const trip *t, oct_model *m, const char *name, oct_buf *bytes)
{
    char path[300];
    oct_map map;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    GOOD(oct_forms_write(m->graph,
                         &(oct_forms_write_opts){ .blocks_qdq = t->f->blocks_qdq, .operators = t->f->qoperator }, err));
    GOOD(oct_infer_shapes(m->graph, err));
    GOOD(oct_model_save(m, path, NULL, err));
    GOOD(oct_map_open(&map, path, err));
    oct_buf_add(bytes, map.data, map.size);
    oct_map_close(&map);
}

static void first_difference(trip *t, const char *model, const char *what, const oct_buf *a, const oct_buf *b,
                             bool text)
{
    size_t at = 0, line = 0;
    const char *x = oct_buf_str(a), *y = oct_buf_str(b);
    if (a->len == b->len && memcmp(x, y, a->len) == 0)
        return;
    t->failed++;
    for (; at < a->len && at < b->len && x[at] == y[at]; at++)
        line = x[at] == '\n' ? at + 1 : line;
    if (!text)
        print_message("%s, %s: %s differ at byte %zu of %zu and %zu\n", model, t->f->name, what, at, a->len, b->len);
    else
        print_message("%s, %s: %s differ:\n  %.420s\n---\n  %.420s\n", model, t->f->name, what, x + line, y + line);
}

/* The graph read, written and loaded: *m is that model. */
static void settle(const trip *t, oct_model **m, const char *name, oct_buf *bytes)
{
    oct_model *next;
    read_graph((*m)->graph);
    write_to(t, *m, "settled.onnx", bytes);
    GOOD(oct_model_load_mem(oct_buf_str(bytes), bytes->len, name, &next, err));
    *m = next;
}

static int by_byte(const void *a, const void *b)
{
    return *(const uint8_t *)a - *(const uint8_t *)b;
}

/* Constants stand in the order of the values that they were made for, some of which no file has. So a file may come in
 * another order once. */
static void compare_files(trip *t, const char *name, oct_buf *first, oct_buf *second)
{
    oct_buf third = OCT_BUF_INIT;
    oct_model *m;
    if (first->len != second->len || memcmp(first->data, second->data, first->len) != 0) {
        GOOD(oct_model_load_mem(oct_buf_str(second), second->len, name, &m, err));
        read_graph(m->graph);
        write_to(t, m, "third.onnx", &third);
        first_difference(t, name, "settled files", second, &third, false);
        oct_model_free(m);
        qsort(first->data, first->len, 1, by_byte);
        qsort(second->data, second->len, 1, by_byte);
    }
    first_difference(t, name, "files", first, second, false);
    oct_buf_free(&third);
}

/* What is annotated, read back when it was written; what was read, written again. */
static void compare(trip *t, oct_model *m, const char *name)
{
    oct_buf wanted = OCT_BUF_INIT, found = OCT_BUF_INIT, first = OCT_BUF_INIT, second = OCT_BUF_INIT;
    oct_graph *c;
    oct_model *r;
    GOOD(oct_graph_clone(m->graph, &c, err));
    if (!t->f->blocks_qdq)
        plain_products(c);
    read_graph(c);
    print_graph(c, NULL, &wanted);
    write_to(t, m, "first.onnx", &first);
    GOOD(oct_model_load_mem(oct_buf_str(&first), first.len, name, &r, err));
    t->made += net_count(r->graph, t->f->made);
    read_graph(r->graph);
    print_graph(r->graph, NULL, &found);
    first_difference(t, name, "graphs", &wanted, &found, true);
    write_to(t, r, "second.onnx", &second);
    oct_graph_destroy(c);
    oct_model_free(r);
    compare_files(t, name, &first, &second);
    oct_buf_free(&wanted);
    oct_buf_free(&found);
    oct_buf_free(&first);
    oct_buf_free(&second);
}

static void there_and_back(trip *t, oct_model *m, const char *name)
{
    oct_buf bytes[2] = { OCT_BUF_INIT, OCT_BUF_INIT };
    oct_model *own[3] = { m };
    const bool quantized = is_quantized(m->graph);
    int i = 0;
    if (annotate(t, m->graph)) {
        /* Others name and order things in other ways, and have forms that are not written: such files settle first. */
        for (; quantized && i < 2; i++) {
            own[i + 1] = own[i];
            settle(t, &own[i + 1], name, &bytes[i]);
        }
        if (i)
            read_graph(own[i]->graph);
        compare(t, own[i], name);
    }
    for (; i > 0; i--)
        oct_model_free(own[i]);
    oct_buf_free(&bytes[0]);
    oct_buf_free(&bytes[1]);
    end(t);
}

/* ---- all models ---- */

static const char *source(char path[300], const char *name)
{
    snprintf(path, 300, "%s/testdata/%s", getenv("OCT_SOURCE"), name);
    return path;
}

static void each_of(trip *t, const char *pattern)
{
    glob_t found;
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        oct_model *m;
        GOOD(oct_model_load(found.gl_pathv[i], &m, err));
        there_and_back(t, m, strrchr(found.gl_pathv[i], '/') + 1);
        oct_model_free(m);
    }
    globfree(&found);
}

/* An LSTM of two directions, products that share a matrix, constant operands. */
static oct_graph *sequence_net(void)
{
    oct_graph *g = net_graph(14);
    int x = net_input(g, "x", OCT_F32, "9,2,7");
    int y = NET_NODE(g, "LSTM", "lstm", "y", x, net_random(g, "w", "2,20,7", 1), net_random(g, "r", "2,20,5", 2),
                     net_random(g, "b", "2,40", 3));
    net_int(g, "hidden_size", 5);
    net_str(g, "direction", "bidirectional");
    int flat = NET_NODE(g, "Reshape", "flat", "flat", y, NET_S64(g, "shape", "2", 18, 10)),
        tied = net_random(g, "tied", "10,10", 4);
    int a = NET_NODE(g, "MatMul", "first", "a",
                     NET_NODE(g, "Mul", "times", "scaled", flat, net_random(g, "factor", "10", 5)), tied);
    int b = NET_NODE(g, "MatMul", "second", "m",
                     NET_NODE(g, "Add", "plus", "shifted", a, net_random(g, "shift", "10", 6)), tied);
    int c = NET_NODE(g, "Gemm", "turned", "c", b, net_random(g, "turned_w", "40,10", 7),
                     net_random(g, "turned_b", "40", 8));
    net_int(g, "transB", 1);
    net_output(g, NET_NODE(g, "MatMul", "", "out", c, net_random(g, "last", "40,3", 9)));
    net_output(g, a);
    return g;
}

static void generated(trip *t, oct_graph *g, const char *name)
{
    char path[300];
    oct_model *m;
    GOOD(oct_model_load(source(path, "models/empty_graph.onnx"), &m, err));
    oct_graph_destroy(m->graph);
    m->graph = g;
    there_and_back(t, m, name);
    oct_model_free(m);
}

static void round_trip(void **state)
{
    trip t = { .f = *state };
    char path[300];
    const char *models = getenv("OCT_MODELS");
    if (models && access(models, F_OK) != 0) {
        print_message("# skipped: no models in %s\n", models);
        return;
    }
    if (models) {
        snprintf(path, sizeof path, "%s/*.onnx", models);
        each_of(&t, path);
    } else {
        each_of(&t, source(path, "models/*.onnx"));
        each_of(&t, source(path, "demo.onnx"));
        generated(&t, net_cnn_make("2,3,12,12", false), "cnn");
        generated(&t, net_cnn_make("2,3,12,12", true), "quantized cnn");
        generated(&t, sequence_net(), "sequence");
    }
    assert_int_equal(t.failed, 0);
    assert_true(t.made > 0);
}

int main(void)
{
    struct CMUnitTest tests[OCT_COUNT(forms)];
    for (size_t i = 0; i < OCT_COUNT(forms); i++)
        tests[i] = (struct CMUnitTest){ forms[i].name, round_trip, NULL, NULL, (void *)(uintptr_t)&forms[i] };
    /* Saving waits for the disk; memory is soon done. */
    snprintf(folder, sizeof folder, "%s/octet-round-trip-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder))
        return 1;
    return cmocka_run_group_tests(tests, NULL, remove_folder);
}
