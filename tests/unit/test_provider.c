/* provider/: the plug-in in a stand-in of ONNX Runtime: what it computes, what it does when calls fail, on many
 * threads, and for a long time. */
#define _GNU_SOURCE
#include "unit.h"

#include "../provider/standin.h"
#include "built_model.h"
#include "library_case.h"
#include "passes/pass.h"
#include "sanitized.h"

#include "../../provider/graph_bytes.h"

#include <glob.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { MOST_INPUTS = 8 };

static ort_ep_factory *factory;
static char error[STANDIN_TEXT];

/* ---- inputs ---- */

typedef struct feed {
    octet_array in[MOST_INPUTS];
    size_t n;
} feed;

static void free_feed(feed *f)
{
    for (size_t i = 0; i < f->n; i++)
        free((void *)(uintptr_t)f->in[i].data);
    f->n = 0;
}

/* Small numbers for each input of a model, some of them negative; `open` for a dimension that is open. false: it has
 * inputs that cannot be given. */
static bool make_feed(const octet_model *m, int64_t open, feed *f)
{
    const octet_port *p;
    *f = (feed){ .n = 0 };
    while ((p = octet_model_input(m, f->n))) {
        octet_array a = { .type = p->type, .rank = p->rank < 0 ? 2 : p->rank };
        size_t size;
        if (f->n == MOST_INPUTS)
            return false;
        for (int d = 0; d < a.rank; d++)
            a.dims[d] = p->rank >= 0 && p->dims[d] >= 0 ? p->dims[d] : open;
        if (!array_size(&a, &size))
            return false;
        uint8_t *data = calloc(size + 1, 1);
        assert_non_null(data);
        for (size_t i = 0; i < size; i++)
            if (a.type == OCTET_FLOAT32 && i % 4 == 0)
                memcpy(data + i, &(float){ (float)((int)(i * 7 % 53) - 20) / 9.0f }, 4);
            else if (a.type == OCTET_UINT8 || a.type == OCTET_INT8)
                data[i] = (uint8_t)(i * 31);
            else if (a.type != OCTET_FLOAT32 && i % 8 == 0)
                data[i] = i / 8 % 2;
        a.data = data;
        f->in[f->n++] = a;
    }
    return true;
}

static bool same(const octet_array *a, const octet_array *b)
{
    size_t na, nb;
    return a->type == b->type && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0 && array_size(a, &na) &&
           array_size(b, &nb) && na == nb && (!na || memcmp(a->data, b->data, na) == 0);
}

static bool all_same(const standin_outputs *got, const octet_array *want, size_t n)
{
    bool fine = got->n == n;
    for (size_t i = 0; i < n && fine; i++)
        fine = same(&got->of[i], &want[i]);
    return fine;
}

/* ---- models, and the results of the library for them ---- */

static oct_model *load_ir(const char *path)
{
    oct_err err = OCT_ERR_INIT;
    oct_model *m;
    if (oct_model_load(path, &m, &err) != OCT_OK)
        fail_msg("%s", err.text);
    return m;
}

typedef struct wanted {
    octet *o;
    octet_model *m;
    feed f;
    const octet_array *out;
    size_t n_out;
} wanted;

static void free_wanted(wanted *w)
{
    free_feed(&w->f);
    octet_model_free(w->m);
    octet_close(w->o);
}

/* false: the library does not run the model, or it cannot be given inputs. */
static bool find_wanted(const char *path, int64_t open, wanted *w)
{
    *w = (wanted){ .o = octet_open() };
    assert_non_null(w->o);
    if (octet_model_load(w->o, path, 1, &w->m) == OCTET_OK && make_feed(w->m, open, &w->f) &&
        octet_model_run(w->o, w->m, w->f.in, w->f.n, &w->out, &w->n_out) == OCTET_OK)
        return true;
    free_wanted(w);
    return false;
}

static standin_session *must_open(oct_model *m, const standin_options *options)
{
    standin_session *s = standin_open(factory, m, options, error);
    if (!s)
        fail_msg("%s", error);
    return s;
}

static void check_run(standin_session *s, const wanted *w, const char *name)
{
    standin_outputs got;
    if (!standin_run(s, w->f.in, w->f.n, &got, error))
        fail_msg("%s: %s", name, error);
    if (!all_same(&got, w->out, w->n_out))
        fail_msg("%s: other bits", name);
    standin_outputs_free(&got);
}

static int set_up(void **state)
{
    factory = standin_register(error);
    return factory ? library_set_up(state) : -1;
}

static int tear_down(void **state)
{
    standin_unregister(factory);
    return standin_live() == 0 ? library_tear_down(state) : -1;
}

TEST_GROUP(set_up, tear_down);

/* ---- what it computes ---- */

static const char *testdata(const char *name)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s/testdata/%s", getenv("OCT_SOURCE"), name);
    return path;
}

/* Which models are computed as a whole, whether they are claimed or not: all that the library computes, but for calls
 * of functions, which ONNX Runtime replaces by what they do. */
TEST(computes_whole_graphs)
{
    static const char *const folders[] = { "models/*.onnx", "onnx/*.onnx", "demo.onnx" };
    int compared = 0;
    for (size_t k = 0; k < 3; k++) {
        glob_t g;
        assert_int_equal(glob(testdata(folders[k]), 0, NULL, &g), 0);
        for (size_t i = 0; i < g.gl_pathc; i++)
            for (int64_t open = 0; open < 3; open++) {
                wanted w;
                if (strstr(g.gl_pathv[i], "function") || !find_wanted(g.gl_pathv[i], open, &w))
                    continue;
                standin_session *s = must_open(load_ir(g.gl_pathv[i]), &(standin_options){ .whole = true });
                check_run(s, &w, g.gl_pathv[i]);
                standin_close(s);
                free_wanted(&w);
                compared++;
            }
        globfree(&g);
    }
    assert_in_range(compared, 300, 1000);
}

/* The small networks of testdata are claimed as a whole when they are quantized, and not when they are not. */
TEST(claims_whole_graphs)
{
    enum { FLOAT = 2 };
    static const char *const schemes[] = { "qdq", "qoperator", "float" };
    octet *o = octet_open();
    for (int i = 0; i <= FLOAT; i++) {
        wanted w;
        const char *path = "q.onnx";
        remove(path);
        if (i == FLOAT)
            path = lib.model;
        octet_convert_options x = demo_conversion("q.onnx");
        x.samples = (octet_samples){ .data = x.samples.data, .seed = -1 };
        x.format = schemes[i];
        if (i != FLOAT && convert_only(o, &x) != OCTET_OK)
            fail_msg("%s", octet_error(o));
        assert_true(find_wanted(path, 2, &w));
        standin_session *s = must_open(load_ir(path), &(standin_options){ .lanes = 2 });
        const standin_facts f = standin_facts_of(s);
        if (f.n_claimed != (i == FLOAT ? 0 : f.n_nodes) || f.n_groups != (i != FLOAT))
            fail_msg("%s: %zu of %zu nodes in %zu groups\n%s", schemes[i], f.n_claimed, f.n_nodes, f.n_groups, f.log);
        if (i != FLOAT)
            check_run(s, &w, schemes[i]);
        standin_close(s);
        free_wanted(&w);
    }
    octet_close(o);
}

/* Puts the operator that nobody knows behind a value. first: if not 0, the first dimension of its result where that is
 * open, as files declare it whose inputs were changed later. */
static void interrupt(oct_graph *g, int value, int64_t first)
{
    oct_err err = OCT_ERR_INIT;
    int node, copy;
    const bool done = oct_graph_set_opset(g, STANDIN_DOMAIN, 1, &err) == OCT_OK &&
                      oct_graph_new_value(g, "passed", g->value[value].dtype, &copy, &err) == OCT_OK &&
                      oct_graph_replace_uses(g, value, copy, &err) == OCT_OK &&
                      oct_graph_add_node(g, STANDIN_OP, STANDIN_DOMAIN, "", 1, 1, -1, &node, &err) == OCT_OK &&
                      oct_graph_set_input(g, node, 0, value, &err) == OCT_OK &&
                      oct_graph_set_output(g, node, 0, copy, &err) == OCT_OK && oct_graph_sort(g, &err) == OCT_OK;
    if (!done)
        fail_msg("%s", err.text);
    oct_shape *shape = &g->value[copy].shape;
    *shape = g->value[value].shape;
    if (first && shape->rank > 0 && shape->d[0].n < 0) {
        shape->d = oct_arena_memdup(g->arena, shape->d, (size_t)shape->rank * sizeof *shape->d);
        assert_non_null(shape->d);
        shape->d[0] = (oct_dim){ .n = first };
    }
}

/* Where the operator leaves work on both its sides, there are two groups; behind quantized values nothing but it is
 * left, and all of them give the bits of the whole graph. */
static void compute_parts(int64_t first)
{
    char path[4200];
    int two_groups = 0, exact = 0;
    wanted w;
    snprintf(path, sizeof path, "%s", testdata("models/demo_qdq.onnx"));
    assert_true(find_wanted(path, 2, &w));
    for (size_t i = 0, n = 1; i < n; i++) {
        oct_err err = OCT_ERR_INIT;
        oct_model *m = load_ir(path);
        assert_int_equal(oct_infer_shapes(m->graph, &err), OCT_OK);
        n = m->graph->n_order;
        const oct_node *node = &m->graph->node[m->graph->order[i]];
        const char *op = node->op;
        if (m->graph->value[node->out[0]].is_output) {
            oct_model_free(m);
            continue;
        }
        interrupt(m->graph, node->out[0], first);
        standin_session *s = must_open(m, &(standin_options){ .lanes = 1 + (int)i % 3 });
        const standin_facts f = standin_facts_of(s);
        standin_outputs got;
        if (!standin_run(s, w.f.in, w.f.n, &got, error))
            fail_msg("%s", error);
        standin_outputs_free(&got);
        two_groups += f.n_groups == 2;
        if (f.n_groups == 2) {
            check_run(s, &w, op);
            exact += strcmp(op, "QuantizeLinear") == 0;
            if (strcmp(op, "QuantizeLinear") == 0 && f.n_claimed + 1 != f.n_nodes)
                fail_msg("%zu of %zu nodes are claimed:\n%s", f.n_claimed, f.n_nodes, f.log);
        }
        standin_close(s);
    }
    assert_in_range(two_groups, 20, 60);
    assert_in_range(exact, 5, 20);
    free_wanted(&w);
}

TEST(computes_parts)
{
    compute_parts(0);
}

TEST(computes_parts_of_wrong_declarations)
{
    compute_parts(7);
}

/* ---- options ---- */

#define OPTION(name) "ep.octetexecutionprovider." name

TEST(refuses_wrong_options)
{
    static const char *const wrong[][3] = {
        { OPTION("threads"), "abc", "threads: 'abc'" },
        { OPTION("threads"), "-1", "threads: '-1'" },
        { OPTION("threads"), "1025", "threads: '1025'" },
        { OPTION("threads"), "", "threads: ''" },
        { OPTION("threads"), "99999999999999999999", "threads: '99999999999999999999'" },
        { OPTION("threads"), "2x", "threads: '2x'" },
        { OPTION("float"), "2", "float: '2'" },
        { OPTION("claim"), "most", "claim: 'most'" },
        { OPTION("isa"), "sse2", "isa: 'sse2'" },
        { OPTION("profile"), "none/file", "profile: 'none/file'" },
        { OPTION("thread"), "1", "thread='1'" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *const settings[] = { "other", "1", wrong[i][0], wrong[i][1], NULL };
        assert_null(standin_open(factory, load_ir(lib.model), &(standin_options){ settings }, error));
        if (!strstr(error, wrong[i][2]))
            fail_msg("%s instead of %s", error, wrong[i][2]);
        assert_int_equal(standin_live(), 0);
    }
}

TEST(takes_options)
{
    static const char *const settings[][5] = { { OPTION("threads"), "2", OPTION("float"), "1" },
                                               { OPTION("claim"), "all" } };
    wanted w;
    assert_true(find_wanted(lib.model, 2, &w));
    for (int i = 0; i < 2; i++) {
        standin_session *s = must_open(load_ir(lib.model), &(standin_options){ settings[i] });
        const standin_facts f = standin_facts_of(s);
        assert_int_equal(f.n_claimed, f.n_nodes);
        check_run(s, &w, settings[i][0]);
        standin_close(s);
    }
    free_wanted(&w);
}

/* Results do not depend on the instruction set; the file has a line for each step, with its runs and its kernel. */
TEST(profiles_runs)
{
    static const char *const settings[] = { OPTION("claim"),   "all",         OPTION("isa"), "scalar",
                                            OPTION("profile"), "profile.tsv", NULL };
    char line[512];
    int convolutions = 0, lines = 0;
    wanted w;
    octet *o = octet_open();
    assert_true(find_wanted(lib.model, 2, &w));
    standin_session *s = must_open(load_ir(lib.model), &(standin_options){ settings });
    check_run(s, &w, "first");
    check_run(s, &w, "second");
    standin_close(s);
    FILE *f = fopen("profile.tsv", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        int tabs = 0;
        for (const char *at = line; (at = strchr(at, '\t')); at++)
            tabs++;
        assert_int_equal(tabs, 8);
        lines++;
        convolutions += strstr(line, "\tConv\t") && strstr(line, "__ref\t2\t");
    }
    fclose(f);
    assert_in_range(lines, 3, 100);
    assert_in_range(convolutions, 1, 100);
    assert_int_equal(octet_use_isa(o, "native"), OCTET_OK);
    assert_int_equal(octet_use_isa(o, NULL), OCTET_USAGE);
    octet_close(o);
    free_wanted(&w);
}

/* ---- a small model, for much that is done often ---- */

enum { WIDTH = 16, LAYERS = 6 };

static message small;

/* What the small model has that the plug-in cannot read. */
typedef enum unreadable { ALL_IS_READ, A_CONSTANT, AN_ATTRIBUTE, A_BODY } unreadable;

/* A sparse constant [4], which nobody reads. */
static message sparse_tensor(const char *name)
{
    static const float one = 1;
    static const int64_t at = 2;
    message t = { 0 };
    put_part(&t, 1, tensor_message(&(octet_array){ name, OCTET_FLOAT32, 1, { 1 }, &one }, sizeof one));
    put_part(&t, 2, tensor_message(&(octet_array){ "", OCTET_INT64, 1, { 1 }, &at }, sizeof at));
    put_int(&t, 3, 4);
    return t;
}

/* A node that nothing depends on. Its constant, its attribute or its body cannot be read. */
static void put_unreadable(message *graph, unreadable what)
{
    message node = node_message(what == A_BODY       ? "If"
                                : what == A_CONSTANT ? "Identity"
                                                     : "Constant",
                                what == A_BODY       ? "yes"
                                : what == A_CONSTANT ? "k"
                                                     : "",
                                "u");
    enum { SPARSE_INITIALIZER = 15, SPARSE = 11 };
    message attr = { 0 }, body = { 0 };
    if (what == A_CONSTANT) {
        put_part(graph, SPARSE_INITIALIZER, sparse_tensor("k"));
    } else if (what == AN_ATTRIBUTE) {
        put_text(&attr, 1, "sparse_value");
        put_part(&attr, 22, sparse_tensor(""));
        put_int(&attr, 20, SPARSE);
        put_part(&node, 5, attr);
    } else {
        put_node(&body, "Identity", "k", "t");
        put_part(&body, SPARSE_INITIALIZER, sparse_tensor("k"));
        put_text(&body, 2, "body");
        put_part(&body, GRAPH_OUTPUT, value_info("t", OCTET_FLOAT32, -1, NULL));
        put_attr_graph(&node, "then_branch", body);
    }
    put_part(graph, GRAPH_NODE, node);
}

/* Layers on bytes [N,16] with attributes of several kinds behind them, a constant of a node, an input that is left
 * out, and two bodies whose values have the same name. The shape of the input may be left open. */
static void make_small_of(int rank, unreadable what)
{
    static const float scale = 0.04f, least = -0.5f;
    static const uint8_t zero = 128;
    static int8_t weights[WIDTH * WIDTH];
    message graph = { 0 }, then = { 0 }, otherwise = { 0 }, value = { 0 };
    message node = node_message("If", "yes", "chosen");
    for (int i = 0; i < WIDTH * WIDTH; i++)
        weights[i] = (int8_t)(i * 37 % 101 - 50);
    put_node(&graph, "QuantizeLinear", "x s z", "q0");
    for (int i = 0; i < LAYERS; i++) {
        char in[64], out[8];
        snprintf(in, sizeof in, "q%d s z w ws wz s z", i);
        snprintf(out, sizeof out, "q%d", i + 1);
        put_node(&graph, "QLinearMatMul", in, out);
    }
    put_node(&graph, "DequantizeLinear", "q6 s z", "d");
    put_node(&then, "Identity", "d", "t");
    put_text(&then, 2, "then");
    put_part(&then, GRAPH_OUTPUT, value_info("t", OCTET_FLOAT32, -1, NULL));
    put_node(&otherwise, "Neg", "d", "t");
    put_text(&otherwise, 2, "else");
    put_part(&otherwise, GRAPH_OUTPUT, value_info("t", OCTET_FLOAT32, -1, NULL));
    put_attr_graph(&node, "then_branch", then);
    put_attr_graph(&node, "else_branch", otherwise);
    put_part(&graph, GRAPH_NODE, node);
    node = node_message("Constant", "", "least");
    put_text(&value, 1, "value");
    put_part(&value, 5, tensor_message(&(octet_array){ "", OCTET_FLOAT32, 0, { 0 }, &least }, 4));
    put_int(&value, 20, 4);
    put_part(&node, 5, value);
    put_part(&graph, GRAPH_NODE, node);
    put_node(&graph, "Clip", "chosen least -", "c");
    node = node_message("Cast", "c", "y");
    put_attr_int(&node, "to", OCTET_FLOAT32);
    put_part(&graph, GRAPH_NODE, node);
    if (what != ALL_IS_READ)
        put_unreadable(&graph, what);
    put_constant(&graph, &(octet_array){ "s", OCTET_FLOAT32, 0, { 0 }, &scale }, 4, true);
    put_constant(&graph, &(octet_array){ "ws", OCTET_FLOAT32, 0, { 0 }, &scale }, 4, true);
    put_constant(&graph, &(octet_array){ "z", OCTET_UINT8, 0, { 0 }, &zero }, 1, true);
    put_constant(&graph, &(octet_array){ "wz", OCTET_INT8, 0, { 0 }, &(int8_t){ 0 } }, 1, true);
    put_constant(&graph, &(octet_array){ "yes", OCTET_BOOL, 0, { 0 }, &(uint8_t){ 1 } }, 1, true);
    put_constant(&graph, &(octet_array){ "w", OCTET_INT8, 2, { WIDTH, WIDTH }, weights }, sizeof weights, true);
    put_part(&graph, GRAPH_INPUT, value_info("x", OCTET_FLOAT32, rank, (const int64_t[]){ -1, WIDTH }));
    put_part(&graph, GRAPH_OUTPUT, value_info("y", OCTET_FLOAT32, 2, (const int64_t[]){ -1, WIDTH }));
    small = model_message(graph, 17);
    write_file("small.onnx", small.v, small.n);
}

static void make_small(void)
{
    make_small_of(2, ALL_IS_READ);
}

static oct_model *small_ir(void)
{
    oct_err err = OCT_ERR_INIT;
    oct_model *m;
    if (oct_model_load_mem(small.v, small.n, "small", &m, &err) != OCT_OK)
        fail_msg("%s", err.text);
    return m;
}

/* Whether the process has mapped a file whose path ends like that. */
static bool is_mapped(const char *end)
{
    char line[4400];
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        const size_t n = strlen(line), m = strlen(end);
        found |= n >= m && strcmp(line + n - m, end) == 0;
    }
    fclose(f);
    return found;
}

/* ---- failures ---- */

/* What cannot be read keeps its own node out, and tells why. */
TEST(leaves_what_it_cannot_read)
{
    static const char *const says[] = { [A_CONSTANT] = "Identity '': the elements of 'k' are unknown",
                                        [AN_ATTRIBUTE] = "Constant '': octet: attribute 'sparse_value'",
                                        [A_BODY] = "If '': octet: the constant 'k' has no value" };
    for (unreadable what = A_CONSTANT; what <= A_BODY; what++) {
        make_small_of(2, what);
        standin_session *s = must_open(small_ir(), &(standin_options){ 0 });
        const standin_facts f = standin_facts_of(s);
        if (f.n_claimed + 1 != f.n_nodes || f.n_groups != 1 || !strstr(f.log, says[what]))
            fail_msg("%d: %zu of %zu nodes in %zu groups\n%s", (int)what, f.n_claimed, f.n_nodes, f.n_groups, f.log);
        standin_close(s);
        message_free(&small);
    }
}

typedef enum result { UNCLAIMED, PARTLY, REFUSED, FAILED, RIGHT, WRONG } result;

static long allocations, fail_allocation;
static const char *failed; /* the function that failed, or NULL */

/* A session and a run while something fails; then a run on the same session when nothing does. */
static result try_all(const wanted *w)
{
    result r = REFUSED;
    standin_outputs got;
    standin_session *s = standin_open(factory, small_ir(), &(standin_options){ .lanes = 2, .external = true }, error);
    failed = standin_failed();
    if (!s)
        return *error ? REFUSED : WRONG;
    const standin_facts f = standin_facts_of(s);
    const bool claimed = f.n_claimed > 0;
    if (!claimed) {
        r = UNCLAIMED;
    } else if (!standin_run(s, w->f.in, w->f.n, &got, error)) {
        r = FAILED;
    } else {
        r = !all_same(&got, w->out, w->n_out) ? WRONG : f.n_claimed < f.n_nodes ? PARTLY : RIGHT;
        standin_outputs_free(&got);
    }
    failed = standin_failed();
    standin_fail_at(0);
    fail_allocation = 0;
    if (claimed)
        check_run(s, w, "after a failure");
    standin_close(s);
    return r;
}

/* What is only said, or can be done in another way, may go wrong unnoticed: a program whose node cannot be read is made
 * once more. */
static bool may_be_unnoticed(const char *function)
{
    static const char *const functions[] = { "Logger_LogMessage", "KernelContext_ParallelFor", "Node_GetNumInputs",
                                             "Node_GetInputs",    "Node_GetNumOutputs",        "Node_GetOutputs",
                                             "GetValueInfoName" };
    bool may = false;
    for (size_t i = 0; i < sizeof functions / sizeof *functions && !may; i++)
        may = strcmp(function, functions[i]) == 0;
    return may;
}

/* A file that declares bytes for what is float, and whose types cannot all be inferred: ONNX Runtime would make an
 * output of bytes, too small for the result. */
TEST(refuses_outputs_of_another_type)
{
    wanted w;
    char path[4200];
    standin_outputs got;
    snprintf(path, sizeof path, "%s/tests/fuzz/fixed/provider/output-of-another-type", getenv("OCT_SOURCE"));
    assert_true(find_wanted(path, 3, &w));
    standin_session *s = must_open(load_ir(path), &(standin_options){ .whole = true });
    assert_false(standin_run(s, w.f.in, w.f.n, &got, error));
    if (!strstr(error, "output 'y0' has elements of type 1, but the model says 2"))
        fail_msg("%s", error);
    standin_close(s);
    free_wanted(&w);
}

/* Constants in a file beside the model are mapped. ONNX Runtime, which has no copy of them, is not asked for them. */
TEST(maps_constants_in_files)
{
    wanted w;
    make_small();
    assert_true(find_wanted("small.onnx", 3, &w));
    standin_session *s = must_open(small_ir(), &(standin_options){ .external = true });
    standin_facts f = standin_facts_of(s);
    if (f.n_claimed != f.n_nodes || !is_mapped("/standin.data"))
        fail_msg("%zu of %zu nodes are claimed:\n%s", f.n_claimed, f.n_nodes, f.log);
    check_run(s, &w, "constants in a file");
    standin_close(s);
    assert_false(is_mapped("/standin.data"));
    free_wanted(&w);
    message_free(&small);
}

/* How often a session that is made on the given processors divides its work. */
static long divided_on(const cpu_set_t *processors, const char *path, const wanted *w)
{
    assert_int_equal(sched_setaffinity(0, sizeof *processors, processors), 0);
    const long before = standin_divided();
    standin_session *s = must_open(load_ir(path), &(standin_options){ .lanes = 2 });
    check_run(s, w, path);
    standin_close(s);
    return standin_divided() - before;
}

/* Work is divided only where the process may use several processors, however many the machine has. */
TEST(divides_among_processors_of_the_process)
{
    wanted w;
    cpu_set_t all, one;
    char path[4200];
    int first = 0;
    snprintf(path, sizeof path, "%s/testdata/models/demo_qdq.onnx", getenv("OCT_SOURCE"));
    assert_true(find_wanted(path, 3, &w));
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    const long divided[2] = { divided_on(&one, path, &w), divided_on(&all, path, &w) };
    assert_int_equal(divided[0], 0);
    if (CPU_COUNT(&all) > 1)
        assert_in_range(divided[1], 1, 1000);
    free_wanted(&w);
}

/* Each call that can fail does. A session fails only where its options cannot be read. */
TEST(calls_fail)
{
    SKIP_WITH_ONE_THREAD();
    wanted w;
    int seen[WRONG + 1] = { 0 };
    make_small();
    assert_true(find_wanted("small.onnx", 3, &w));
    for (long k = 1;; k++) {
        standin_fail_at(k);
        const result r = try_all(&w);
        if (!failed) { /* there are no more calls */
            assert_int_equal(r, RIGHT);
            break;
        }
        seen[r]++;
        if (r == WRONG || (r == RIGHT && !may_be_unnoticed(failed)) || standin_live())
            fail_msg("%s, call %ld: %s, %ld objects are left", failed, k, r == WRONG ? "wrong bits" : "unnoticed",
                     standin_live());
        if (r == REFUSED)
            assert_string_equal(failed, "GetSessionOptionsConfigEntries");
    }
    standin_fail_at(0);
    assert_in_range(seen[UNCLAIMED], 200, 10000);
    assert_in_range(seen[PARTLY], 50, 10000);
    assert_int_equal(seen[REFUSED], 1);
    assert_in_range(seen[FAILED], 5, 100);
    free_wanted(&w);
    message_free(&small);
}

/* ONNX Runtime cannot tell an unknown shape from that of a scalar. */
TEST(takes_inputs_of_unknown_shape)
{
    wanted w;
    make_small_of(-1, ALL_IS_READ);
    assert_true(find_wanted("small.onnx", WIDTH, &w));
    standin_session *s = must_open(small_ir(), &(standin_options){ 0 });
    assert_int_equal(standin_facts_of(s).n_groups, 1);
    check_run(s, &w, "unknown shape");
    standin_close(s);
    free_wanted(&w);
    message_free(&small);
}

TEST(registering_fails)
{
    standin_fail_at(1);
    assert_null(standin_register(error));
    assert_string_equal(error, "a fault");
    standin_fail_at(0);
    assert_int_equal(standin_live(), 0);
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t to, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t to, size_t n);

static bool fails(void)
{
    return standin_inside && fail_allocation && ++allocations == fail_allocation;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t to, size_t n)
{
    return fails() ? NULL : __real_aligned_alloc(to, n);
}

/* Each allocation of the plug-in and of the library in it fails in turn; some of them are not needed. */
TEST(memory_ends)
{
    SKIP_WITH_ONE_THREAD();
    wanted w;
    int seen[WRONG + 1] = { 0 };
    make_small();
    assert_true(find_wanted("small.onnx", 3, &w));
    bool more = true;
    for (long k = 1; more; k++) {
        allocations = 0;
        fail_allocation = k;
        const result r = try_all(&w);
        more = allocations >= k;
        seen[r]++;
        if (r == WRONG || standin_live())
            fail_msg("allocation %ld: %s, %ld objects are left", k, r == WRONG ? "wrong bits" : "", standin_live());
    }
    assert_in_range(seen[UNCLAIMED], 100, 10000);
    assert_int_equal(seen[REFUSED], 1); /* the provider itself */
    assert_in_range(seen[FAILED], 5, 10000);
    free_wanted(&w);
    message_free(&small);
}

/* ---- EPContext models ---- */

static const char *const in_nodes[] = {
    "ep.context_enable", "1", "ep.context_file_path", "kept.onnx", "ep.context_embed_mode", "1", NULL
};
static const char *const in_files[] = { "ep.context_enable", "1", "ep.context_file_path", "./kept.onnx", NULL };

/* A model of one EPContext node in place of the small model. */
static oct_model *context_ir(const char *source, bool embedded, const void *context, size_t size)
{
    enum { STRING = 3, MODEL_OPSET = 8 };
    message graph = { 0 }, node = node_message("EPContext", "x", "y"), opset = { 0 };
    const struct {
        const char *name;
        const void *v;
        size_t n;
    } text[] = { { "source", source, strlen(source) }, { "ep_cache_context", context, size } };
    oct_err err = OCT_ERR_INIT;
    oct_model *m;
    put_text(&node, 7, "com.microsoft");
    put_attr_int(&node, "embed_mode", embedded);
    for (int i = 0; i < 2; i++) {
        message attr = { 0 };
        put_text(&attr, 1, text[i].name);
        put_field(&attr, 4, text[i].v, text[i].n);
        put_int(&attr, 20, STRING);
        put_part(&node, 5, attr);
    }
    put_part(&graph, GRAPH_NODE, node);
    put_part(&graph, GRAPH_INPUT, value_info("x", OCTET_FLOAT32, 2, (const int64_t[]){ -1, WIDTH }));
    put_part(&graph, GRAPH_OUTPUT, value_info("y", OCTET_FLOAT32, 2, (const int64_t[]){ -1, WIDTH }));
    message all = model_message(graph, 17);
    put_text(&opset, 1, "com.microsoft");
    put_int(&opset, 2, 1);
    put_part(&all, MODEL_OPSET, opset);
    if (oct_model_load_mem(all.v, all.n, "context", &m, &err) != OCT_OK)
        fail_msg("%s", err.text);
    message_free(&all);
    return m;
}

/* The context that a session of the small model makes. */
static message make_context(const char *const *settings, const wanted *w)
{
    message made = { 0 };
    standin_session *s = must_open(small_ir(), &(standin_options){ settings });
    const standin_facts f = standin_facts_of(s);
    assert_int_equal(f.n_groups, 1);
    assert_non_null(f.context);
    put_bytes(&made, f.context, f.context_size);
    check_run(s, w, "while a context is made");
    standin_close(s);
    return made;
}

TEST(keeps_contexts)
{
    wanted w;
    make_small();
    assert_true(find_wanted("small.onnx", 3, &w));
    for (int embedded = 0; embedded < 2; embedded++) {
        const char *const *settings = embedded ? in_nodes : in_files;
        message made = make_context(settings, &w);
        assert_true(embedded || (made.n < 100 && memcmp(made.v, "kept_", 5) == 0));
        standin_session *s = must_open(context_ir("OctetExecutionProvider", embedded, made.v, made.n),
                                       &(standin_options){ settings }); /* and makes another one */
        assert_int_equal(standin_facts_of(s).n_claimed, 1);
        check_run(s, &w, "a context");
        message again = { 0 };
        put_bytes(&again, standin_facts_of(s).context, standin_facts_of(s).context_size);
        standin_close(s);
        s = must_open(context_ir("OctetExecutionProvider", embedded, again.v, again.n), &(standin_options){ 0 });
        assert_int_equal(is_mapped(".octet"), !embedded);
        check_run(s, &w, "a context of a context");
        standin_close(s);
        s = must_open(context_ir("Another", embedded, made.v, made.n), &(standin_options){ 0 });
        assert_int_equal(standin_facts_of(s).n_claimed, 0);
        standin_close(s);
        message_free(&again);
        message_free(&made);
    }
    assert_false(is_mapped(".octet"));
    free_wanted(&w);
    message_free(&small);
}

/* The sum of a context, for changes that it does not show. */
static uint64_t sum_again(const unsigned char *v, size_t n)
{
    uint64_t h[4] = { 1, 2, 3, n }, x;
    for (size_t i = 0; i < n; i += 8) {
        memcpy(&x, v + i, 8);
        h[i / 8 % 4] = (h[i / 8 % 4] ^ x) * 0x9e3779b97f4a7c15u;
        h[i / 8 % 4] ^= h[i / 8 % 4] >> 29;
    }
    for (int k = 1; k < 4; k++) {
        h[0] = (h[0] ^ h[k]) * 0x9e3779b97f4a7c15u;
        h[0] ^= h[0] >> 32;
    }
    return h[0];
}

/* false: the session is refused, with a remedy. */
static bool opens(const unsigned char *v, size_t n, bool embedded, const char *what)
{
    const long before = standin_live();
    standin_session *s =
        standin_open(factory, context_ir("OctetExecutionProvider", embedded, v, n), &(standin_options){ 0 }, error);
    const bool opened = s;
    standin_close(s);
    if (standin_live() != before)
        fail_msg("%s: %ld objects are left", what, standin_live());
    return opened;
}

/* Each bit that is changed is noticed, and each cut. With a sum that fits, nothing is read that is not there. */
TEST(refuses_damaged_contexts)
{
    SKIP_WITH_ONE_THREAD();
    enum { SUM_AT = 24, SUMMED = 32, HEAD = 64, CONSTANT = 88 };
    wanted w;
    make_small();
    assert_true(find_wanted("small.onnx", 3, &w));
    message made = make_context(in_nodes, &w);
    uint64_t sum;
    memcpy(&sum, made.v + SUM_AT, sizeof sum);
    assert_int_equal(sum, sum_again(made.v + SUMMED, made.n - SUMMED));
    for (size_t bit = 0; bit < 8 * made.n; bit += bit < 8 * 512 ? 1 : 7) {
        made.v[bit / 8] ^= (unsigned char)(1 << bit % 8);
        if (opens(made.v, made.n, true, "a bit") || !strstr(error, "the context in the model") ||
            !strstr(error, "make the model again with ep.context_enable"))
            fail_msg("bit %zu: %s", bit, error);
        made.v[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (size_t n = 0; n < made.n; n++)
        if (opens(made.v, n, true, "a cut") || !strstr(error, "make the model again with ep.context_enable"))
            fail_msg("cut at %zu: %s", n, error);
    for (size_t at = SUMMED; at < made.n; at++)
        for (int k = 0; k < 3; k++) {
            const unsigned char was = made.v[at];
            made.v[at] = (unsigned char)(k == 0 ? 0xff : k == 1 ? was + 1 : was ^ 0x80);
            const uint64_t again = sum_again(made.v + SUMMED, made.n - SUMMED);
            memcpy(made.v + SUM_AT, &again, sizeof again);
            opens(made.v, made.n, true, "a change with its sum");
            made.v[at] = was;
        }
    assert_false(opens((const unsigned char *)"none.octet", 10, false, "no file"));
    assert_non_null(strstr(error, "the context 'none.octet' cannot be read: it belongs beside the model"));
    assert_false(opens((const unsigned char *)"../kept.octet", 13, false, "a folder"));
    assert_non_null(strstr(error, "'../kept.octet' is not beside the model"));
    free_wanted(&w);
    message_free(&made);
    message_free(&small);
}

/* A session with a context: true, it opens, computes the right bits, and leaves nothing. */
static bool holds_context(oct_model *m, const char *const *settings, const wanted *w)
{
    standin_outputs got;
    bool right = true;
    standin_session *s = standin_open(factory, m, &(standin_options){ settings }, error);
    if (s && standin_facts_of(s).n_claimed && standin_run(s, w->f.in, w->f.n, &got, error)) {
        right = all_same(&got, w->out, w->n_out);
        standin_outputs_free(&got);
    }
    standin_close(s);
    return right && !standin_live();
}

/* Each call and each allocation fails in turn, while a context is made and while it is read. */
TEST(contexts_fail)
{
    SKIP_WITH_ONE_THREAD();
    wanted w;
    make_small();
    assert_true(find_wanted("small.onnx", 3, &w));
    message made[2] = { make_context(in_files, &w), make_context(in_nodes, &w) };
    for (int kind = 0; kind < 8; kind++) {
        const int embedded = kind & 1, reading = kind & 2, allocating = kind & 4;
        bool more = true;
        long k = 1;
        for (; more; k++) {
            oct_model *m = reading ? context_ir("OctetExecutionProvider", embedded, made[embedded].v, made[embedded].n)
                                   : small_ir();
            allocations = 0;
            fail_allocation = allocating ? k : 0;
            standin_fail_at(allocating ? 0 : k);
            if (!holds_context(m, reading ? NULL : embedded ? in_nodes : in_files, &w))
                fail_msg("kind %d, %ld, %s: other bits, or %ld objects are left", kind, k, standin_failed(),
                         standin_live());
            more = allocating ? allocations >= k : standin_failed() != NULL;
        }
        assert_in_range(k, 50, 20000);
    }
    standin_fail_at(0);
    fail_allocation = 0;
    free_wanted(&w);
    message_free(&made[0]);
    message_free(&made[1]);
    message_free(&small);
}

/* ---- threads and time ---- */

enum { THREADS = 8, SHAPES = 6, RUNS = 1000, RUNS_SANITIZED = 60 };

typedef struct runs {
    standin_session *session;
    const wanted *w; /* [SHAPES] */
    int n, first;
    atomic_int *wrong;
} runs;

static void *run_many(void *arg)
{
    const runs *r = arg;
    char text[STANDIN_TEXT];
    for (int i = 0; i < r->n; i++) {
        const wanted *w = &r->w[(r->first * 5 + i + i / 7) % SHAPES];
        standin_outputs got;
        const bool fine = standin_run(r->session, w->f.in, w->f.n, &got, text);
        if (!fine || !all_same(&got, w->out, w->n_out))
            atomic_fetch_add(r->wrong, 1);
        if (fine)
            standin_outputs_free(&got);
    }
    return NULL;
}

static void run_at_once(int lanes, const char *const *settings, int n, const wanted *w)
{
    atomic_int wrong = 0;
    pthread_t thread[THREADS];
    runs r[THREADS];
    standin_session *s = must_open(small_ir(), &(standin_options){ .lanes = lanes, .settings = settings });
    assert_int_equal(standin_facts_of(s).n_groups, 1);
    for (int i = 0; i < THREADS; i++) {
        r[i] = (runs){ s, w, n, i, &wrong };
        assert_int_equal(pthread_create(&thread[i], NULL, run_many, &r[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    standin_close(s);
    assert_int_equal(wrong, 0);
    assert_int_equal(standin_live(), 0);
}

static void find_shapes(wanted *w)
{
    static const int64_t rows[SHAPES] = { 1, 2, 7, 64, 0, 33 };
    make_small();
    for (int i = 0; i < SHAPES; i++)
        assert_true(find_wanted("small.onnx", rows[i], &w[i]));
}

static void free_shapes(wanted *w)
{
    for (int i = 0; i < SHAPES; i++)
        free_wanted(&w[i]);
    message_free(&small);
}

TEST(many_threads_run)
{
    static const char *const own[] = { OPTION("threads"), "2", NULL };
    wanted w[SHAPES];
    const int n = SANITIZED ? RUNS_SANITIZED : RUNS;
    find_shapes(w);
    run_at_once(1, NULL, n, w);
    run_at_once(3, NULL, n / 4, w);
    run_at_once(1, own, n / 4, w);
    free_shapes(w);
}

/* Sessions of two registrations at once, of which one ends before the other. */
TEST(registers_twice)
{
    wanted w;
    make_small();
    assert_true(find_wanted("small.onnx", 3, &w));
    ort_ep_factory *first = factory, *second = standin_register(error);
    assert_non_null(second);
    standin_session *a = must_open(small_ir(), &(standin_options){ 0 });
    factory = second;
    standin_session *b = must_open(small_ir(), &(standin_options){ .lanes = 2 });
    check_run(a, &w, "first");
    check_run(b, &w, "second");
    standin_close(b);
    standin_unregister(second);
    factory = first;
    check_run(a, &w, "first alone");
    standin_close(a);
    free_wanted(&w);
    message_free(&small);
}

static size_t in_use(void)
{
#ifdef __GLIBC__
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

/* Memory after the runs and sessions of a while is that after many more. */
TEST(memory_stays)
{
    enum { MANY_RUNS = 10000, SESSIONS = 200, SLACK = 64 << 10 };
    wanted w[SHAPES];
    if (SANITIZED) {
        print_message("# skipped: sanitizers keep memory that was freed\n");
        return;
    }
    find_shapes(w);
    atomic_int wrong = 0;
    standin_session *s = must_open(small_ir(), &(standin_options){ 0 });
    runs r = { s, w, 200, 0, &wrong };
    run_many(&r);
    const size_t after_few = in_use();
    r.n = MANY_RUNS;
    run_many(&r);
    assert_in_range(in_use(), 0, after_few + SLACK);
    standin_close(s);
    size_t before = 0;
    for (int i = 0; i < SESSIONS; i++) {
        s = must_open(small_ir(), &(standin_options){ .lanes = 2 });
        check_run(s, &w[i % SHAPES], "a session of many");
        standin_close(s);
        if (i == SESSIONS / 10)
            before = in_use();
    }
    assert_in_range(in_use(), 0, before + SLACK);
    assert_int_equal(wrong, 0);
    free_shapes(w);
}
