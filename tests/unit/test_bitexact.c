/* Results are the same bits on every instruction set, for every number of threads and every batch; and the models of
 * testdata/models give what is stored beside them. */
#include "unit.h"

#include "net.h"
#include "net_cnn.h"
#include "base/io.h"
#include "data/arrays/npy.h"
#include "data/source/set.h"
#include "kernels/cpu.h"
#include "kernels/half.h"
#include "onnx/model.h"

#include <dirent.h>
#include <stdlib.h>

/* Under the address sanitizer the scalar kernels are too slow for the large models. */
#ifdef __SANITIZE_ADDRESS__
enum { LARGEST = 400 << 10 };
#else
enum { LARGEST = INT32_MAX };
#endif

static char folder[600];   /* testdata */
static oct_pool *pools[2]; /* NULL and two threads */

/* ------------------------------------------------------------------ arrays stored beside a model */

typedef struct store {
    char *bytes;
    oct_zip_entry *entry;
    size_t n;
} store;

static bool open_store(const char *path, store *s)
{
    size_t size;
    *s = (store){ NULL, NULL, 0 };
    if (oct_read_all(path, 1u << 30, &s->bytes, &size, NULL) != OCT_OK)
        return false;
    GOOD(oct_zip_list((const uint8_t *)s->bytes, size, &s->entry, &s->n, err));
    return true;
}

static void close_store(store *s)
{
    oct_free(s->bytes);
    oct_free(s->entry);
}

/* "in/x" or "out/y"; the bytes are copied, because those in the archive are not aligned. */
static bool stored(const store *s, const char *kind, const char *name, oct_npy *h, void **data)
{
    char key[300];
    snprintf(key, sizeof key, "%s/%s", kind, name);
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->entry[i].name, key) == 0) {
            assert_false(s->entry[i].deflated || s->entry[i].packed != s->entry[i].size);
            const char *p = s->bytes + s->entry[i].offset;
            GOOD(oct_npy_parse(p, s->entry[i].size, h, err));
            assert_false(h->fortran);
            assert_non_null(*data = oct_alloc(h->bytes));
            memcpy(*data, p + h->offset, h->bytes);
            return true;
        }
    return false;
}

/* ------------------------------------------------------------------ running */

typedef struct feeds {
    const void *data[8];
    oct_plan_input shape[8];
    size_t n;
    bool bf16; /* products of float32 are computed in bf16 */
} feeds;

typedef struct result {
    char *bytes;
    size_t size, n;
    oct_operand t[16]; /* of each output, data into bytes */
} result;

static void free_result(result *r)
{
    oct_free(r->bytes);
    *r = (result){ 0 };
}

static oct_status run(const oct_graph *g, const feeds *f, oct_pool *pool, result *r, oct_err *err)
{
    oct_plan_opts opts = { .pool = pool, .bf16 = f->bf16 };
    oct_plan *p = NULL;
    *r = (result){ 0 };
    OCT_TRY(oct_plan_create(g, f->shape, &opts, &p, err));
    oct_status s = oct_plan_run(p, f->data, err);
    size_t bytes[16];
    r->n = oct_plan_n_outputs(p);
    assert_true(r->n <= 16);
    for (size_t i = 0; i < r->n; i++) {
        r->t[i] = *oct_plan_output(p, i);
        assert_true(oct_dtype_bytes(r->t[i].dtype, r->t[i].count, &bytes[i]));
        r->size += bytes[i];
    }
    assert_non_null(r->bytes = oct_alloc(r->size));
    for (size_t i = 0, at = 0; s == OCT_OK && i < r->n; at += bytes[i++]) {
        memcpy(r->bytes + at, r->t[i].data, bytes[i]);
        r->t[i].data = r->bytes + at;
    }
    oct_plan_destroy(p);
    return s;
}

/* Runs with every instruction set and both pools; *first receives the scalar result. */
static oct_status run_all_ways(const char *name, const oct_graph *g, const feeds *f, result *first, oct_err *err)
{
    bool have = false;
    const char *isa;
    for (size_t i = 0; (isa = oct_isa_level(i)); i++) {
        if (oct_isa_limit(isa, NULL) != OCT_OK)
            continue;
        for (int t = 0; t < 2; t++) {
            result r;
            oct_status s = run(g, f, pools[t], have ? &r : first, err);
            if (s != OCT_OK)
                return s;
            if (have && (r.size != first->size || memcmp(r.bytes, first->bytes, r.size) != 0))
                fail_msg("%s: %s with %d threads differs from scalar", name, isa, t + 1);
            if (have)
                free_result(&r);
            have = true;
        }
    }
    return oct_isa_limit("native", err);
}

/* Samples of all outputs one at a time equal those of one batch. */
static void check_batches(const char *name, const oct_graph *g, const feeds *f, const result *whole)
{
    int64_t n = f->shape[0].dims[0];
    for (int64_t i = 0; i < n; i++) {
        feeds one = *f;
        result r;
        oct_err e = OCT_ERR_INIT;
        size_t row = (size_t)oct_dtype_bits(g->value[g->input[0]].dtype) / 8;
        for (int k = 1; k < one.shape[0].rank; k++)
            row *= (size_t)one.shape[0].dims[k];
        one.shape[0].dims[0] = 1;
        one.data[0] = (const char *)f->data[0] + (size_t)i * row;
        if (run(g, &one, pools[i & 1], &r, &e) != OCT_OK)
            fail_msg("%s: %s", name, e.text);
        for (size_t o = 0; o < r.n; o++) {
            size_t bytes;
            assert_true(oct_dtype_bytes(r.t[o].dtype, r.t[o].count, &bytes));
            if (memcmp(r.t[o].data, (const char *)whole->t[o].data + (size_t)i * bytes, bytes) != 0)
                fail_msg("%s: sample %d alone differs from the batch", name, (int)i);
        }
        free_result(&r);
    }
}

/* ------------------------------------------------------------------ generated networks */

TEST(generated)
{
    static float x[8 * 3 * 33 * 29];
    net_fill(x, OCT_COUNT(x), 1);
    for (int qdq = 0; qdq < 2; qdq++) {
        oct_graph *g = net_cnn_make("N,3,H,W", qdq);
        feeds f = { { x }, { { .tensor = true, .rank = 4, .dims = { 8, 3, 33, 29 } } }, 1 };
        result r;
        GOOD(run_all_ways(qdq ? "quantized" : "float", g, &f, &r, err));
        check_batches(qdq ? "quantized" : "float", g, &f, &r);
        free_result(&r);
        oct_graph_destroy(g);
    }
}

/* The float network with inputs, weights and so all tensors in 16 bits. */
static void make_half(oct_graph *g, oct_dtype t)
{
    for (size_t v = 0; v < g->n_value; v++) {
        const oct_tensor *k = g->value[v].constant;
        oct_tensor *half;
        if (k && k->dtype == OCT_F32) {
            GOOD(oct_tensor_new(g->arena, t, k->rank, k->dims, &half, err));
            oct_narrow(NULL, t, k->data, (size_t)k->count, (void *)(uintptr_t)half->data);
            oct_graph_set_const(g, (int)v, half);
        } else if (g->value[v].is_input) {
            g->value[v].dtype = t;
        }
    }
}

/* Every layer rounds to 16 bits: the outputs lie near float's, by the type's precision, and are the same every way. */
TEST(sixteen_bits)
{
    static const struct {
        oct_dtype t;
        double near;
    } types[] = { { OCT_F16, 4e-3 }, { OCT_BF16, 3e-2 } };
    static float x[4 * 3 * 33 * 29], back[4 * 10];
    static uint16_t half[OCT_COUNT(x)];
    net_fill(x, OCT_COUNT(x), 1);
    feeds f = { { x }, { { .tensor = true, .rank = 4, .dims = { 4, 3, 33, 29 } } }, 1 };
    oct_graph *g = net_cnn_make("N,3,H,W", false);
    result want, r;
    GOOD(run(g, &f, NULL, &want, err));
    for (size_t i = 0; i < OCT_COUNT(types); i++) {
        oct_graph *h;
        GOOD(oct_graph_clone(g, &h, err));
        make_half(h, types[i].t);
        oct_narrow(NULL, types[i].t, x, OCT_COUNT(x), half);
        f.data[0] = half;
        GOOD(run_all_ways("16 bits", h, &f, &r, err));
        check_batches("16 bits", h, &f, &r);
        assert_int_equal(r.t[0].dtype, types[i].t);
        GOOD(oct_operand_to_f32(&r.t[0], back, err));
        const double error = net_error(want.t[0].data, back, OCT_COUNT(back));
        if (!(error > 0 && error < types[i].near))
            fail_msg("%s: %g of its range off", oct_dtype_name(types[i].t), error);
        free_result(&r);
        oct_graph_destroy(h);
    }
    f.data[0] = x;
    f.bf16 = true;
    GOOD(run_all_ways("products in bf16", g, &f, &r, err));
    check_batches("products in bf16", g, &f, &r);
    const double error = net_error(want.t[0].data, r.t[0].data, OCT_COUNT(back));
    assert_true(error > 0 && error < types[1].near);
    free_result(&r);
    free_result(&want);
    oct_graph_destroy(g);
}

/* The first block of 32 is 2^-8 + 1, of even k, and 2^24 + 1, which is halfway, to even 2^24: together 2^24 + 2. The
 * second takes 2^24 away. One chain over all k would end at 0. */
TEST(chains_of_bf16)
{
    static const float x[33] = { 0x1p-8f, 0x1p24f, 1, 1, [32] = -0x1p24f };
    static uint16_t half[OCT_COUNT(x)];
    oct_graph *g = net_graph(22);
    float ones[OCT_COUNT(x)], got;
    for (size_t i = 0; i < OCT_COUNT(ones); i++)
        ones[i] = 1 + 0x1p-10f; /* rounded to 1 */
    net_output(g, NET_NODE(g, "MatMul", "product", "y", net_input(g, "x", OCT_F32, "N,33"),
                           net_const(g, "w", OCT_F32, "33,1", ones)));
    feeds f = { { x }, { { .tensor = true, .rank = 2, .dims = { 1, 33 } } }, 1, .bf16 = true };
    result r;
    GOOD(run_all_ways("chains of bf16", g, &f, &r, err));
    assert_true(*(float *)r.t[0].data == 2);
    free_result(&r);
    make_half(g, OCT_BF16);
    oct_narrow(NULL, OCT_BF16, x, OCT_COUNT(x), half);
    f = (feeds){ { half }, { f.shape[0] }, 1 };
    GOOD(run_all_ways("chains of bf16", g, &f, &r, err));
    GOOD(oct_operand_to_f32(&r.t[0], &got, err));
    assert_true(got == 2);
    free_result(&r);
    oct_graph_destroy(g);
}

/* A layer of odd sizes: tails of every tile, depths that are no multiple of anything, one column, one row. */
TEST(odd_products)
{
    static const char *const w[] = { "1,7", "9,1", "33,130", "17,64", "16,257", "5,31" };
    static float x[19 * 257];
    net_fill(x, OCT_COUNT(x), 3);
    for (size_t i = 0; i < OCT_COUNT(w); i++)
        for (int qdq = 0; qdq < 2; qdq++) {
            net_cnn n = { net_graph(13), qdq, 1 };
            int64_t rows = 0, k = 0;
            oct_dim d[2];
            net_dims(n.g, w[i], d);
            rows = d[0].n, k = d[1].n;
            if (qdq && rows * k > 4096) { /* more than net_weights makes */
                oct_graph_destroy(n.g);
                continue;
            }
            char dims[20];
            snprintf(dims, sizeof dims, "N,%d", (int)k);
            int v = net_qdq(&n, net_input(n.g, "x", OCT_F32, dims), 1.0f / 64, 128);
            n.count++;
            int y = NET_NODE(n.g, "Gemm", "fc", "y", v, net_weights(&n, w[i], (int)rows),
                             net_bias(&n, (int)rows, 1.0f / 64));
            net_int(n.g, "transB", 1);
            net_output(n.g, net_qdq(&n, y, 0.02f, 128));
            feeds f = { { x }, { { .tensor = true, .rank = 2, .dims = { 19, k } } }, 1 };
            result r;
            GOOD(run_all_ways(w[i], n.g, &f, &r, err));
            check_batches(w[i], n.g, &f, &r);
            free_result(&r);
            oct_graph_destroy(n.g);
        }
}

/* ------------------------------------------------------------------ the models of testdata */

/* Integers must be equal; floats within 1e-4 of the range, of float16 2e-3. */
static void compare(const char *model, const char *name, const oct_operand *t, const oct_npy *h, const void *data)
{
    assert_int_equal(t->dtype, h->dtype);
    assert_int_equal(t->count, h->count);
    if (t->dtype != OCT_F32 && t->dtype != OCT_F16 && t->dtype != OCT_F64) {
        if (memcmp(t->data, data, h->bytes) != 0)
            fail_msg("%s: '%s' is not what ONNX Runtime computed", model, name);
        return;
    }
    oct_operand want = *t;
    want.data = (void *)(uintptr_t)data;
    float *a = oct_calloc((size_t)t->count + 1, sizeof *a), *b = oct_calloc((size_t)t->count + 1, sizeof *b);
    assert_true(a && b);
    GOOD(oct_operand_to_f32(&want, a, err));
    GOOD(oct_operand_to_f32(t, b, err));
    double e = t->count ? net_error(a, b, (size_t)t->count) : 0;
    if (!(e <= (t->dtype == OCT_F16 ? 2e-3 : 1e-4)))
        fail_msg("%s: '%s' is %g of its range off", model, name, e);
    oct_free(a);
    oct_free(b);
}

static bool load_feeds(const oct_graph *g, const store *s, feeds *f)
{
    *f = (feeds){ .n = g->n_input };
    for (size_t i = 0; i < g->n_input; i++) {
        oct_npy h;
        void *data;
        if (i >= 8 || !stored(s, "in", g->value[g->input[i]].name, &h, &data))
            return false;
        f->data[i] = data;
        f->shape[i] = (oct_plan_input){ .tensor = true, .rank = h.rank };
        memcpy(f->shape[i].dims, h.dims, (size_t)h.rank * sizeof *h.dims);
    }
    return true;
}

/* Runs a model on its stored inputs; false when it says that it is not supported. */
static bool check_model(const char *name)
{
    char path[1000];
    store s;
    oct_model *m;
    result r;
    feeds f;
    oct_err e = OCT_ERR_INIT;
    snprintf(path, sizeof path, "%s/models/%s.npz", folder, name);
    if (!open_store(path, &s))
        return false;
    snprintf(path, sizeof path, "%s/models/%s.onnx", folder, name);
    GOOD(oct_model_load(path, &m, err));
    if (!load_feeds(m->graph, &s, &f))
        fail_msg("%s: no stored inputs", name);
    oct_status status = run_all_ways(name, m->graph, &f, &r, &e);
    if (status != OCT_OK && status != OCT_EUNSUPPORTED)
        fail_msg("%s: status %d: %s", name, (int)status, e.text);
    if (status == OCT_EUNSUPPORTED)
        print_message("# %s: %s\n", name, e.text);
    for (size_t o = 0; status == OCT_OK && o < r.n; o++) {
        oct_npy h;
        void *data;
        const char *out = m->graph->value[m->graph->output[o]].name;
        assert_true(stored(&s, "out", out, &h, &data));
        compare(name, out, &r.t[o], &h, data);
        oct_free(data);
    }
    if (status == OCT_OK && strncmp(name, "demo_", 5) == 0)
        check_batches(name, m->graph, &f, &r);
    for (size_t i = 0; i < f.n; i++)
        oct_free((void *)(uintptr_t)f.data[i]);
    free_result(&r);
    oct_model_free(m);
    close_store(&s);
    return status == OCT_OK;
}

TEST(models)
{
    char path[700];
    /* What the runtime does not run yet, and says so. */
    static const char *const known[] = { "sparse_initializer" };
    size_t ran = 0;
    snprintf(path, sizeof path, "%s/models", folder);
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        size_t n = strlen(e->d_name);
        char name[256];
        if (n < 5 || strcmp(e->d_name + n - 4, ".npz") != 0)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(n - 4), e->d_name);
        bool good = check_model(name), expected = false;
        for (size_t i = 0; i < OCT_COUNT(known); i++)
            expected |= strcmp(name, known[i]) == 0;
        if (good == expected)
            fail_msg("%s %s", name, good ? "can be run, and is listed as one that cannot" : "cannot be run");
        ran += good;
    }
    closedir(d);
    assert_true(ran > 80);
}

/* Quantized models of testdata agree with ONNX Runtime value by value: their outputs are dequantized values. */
TEST(qvals)
{
    static const struct {
        const char *name, *output;
    } cases[] = { { "demo_qdq", "prob" }, { "demo_qoperator", "prob" }, { "qdq_s8_per_tensor", "y" } };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        char path[1000];
        store s;
        oct_model *m;
        feeds f;
        result r;
        oct_npy h;
        void *data;
        snprintf(path, sizeof path, "%s/models/%s.npz", folder, cases[i].name);
        assert_true(open_store(path, &s));
        snprintf(path, sizeof path, "%s/models/%s.onnx", folder, cases[i].name);
        GOOD(oct_model_load(path, &m, err));
        assert_true(load_feeds(m->graph, &s, &f));
        GOOD(run(m->graph, &f, NULL, &r, err));
        assert_true(stored(&s, "out", cases[i].output, &h, &data));
        for (int64_t k = 0; k < h.count; k++)
            if (((const float *)data)[k] != ((const float *)r.t[0].data)[k])
                fail_msg("%s: output %d is %.9g, ONNX Runtime has %.9g", cases[i].name, (int)k,
                         (double)((const float *)r.t[0].data)[k], (double)((const float *)data)[k]);
        oct_free(data);
        for (size_t k = 0; k < f.n; k++)
            oct_free((void *)(uintptr_t)f.data[k]);
        free_result(&r);
        oct_model_free(m);
        close_store(&s);
    }
}

/* The real models beside the checkout, where they are: float, on noise. */
TEST(real_models)
{
    char path[1000];
    static float x[2 * 3 * 416 * 416];
    net_fill(x, OCT_COUNT(x), 8);
    snprintf(path, sizeof path, "%s/../../shared/models", folder);
    DIR *d = opendir(path);
    if (!d) {
        print_message("# skipped: no folder ../shared/models with real models\n");
        return;
    }
    for (struct dirent *e; (e = readdir(d));) {
        oct_model *m;
        oct_err why = OCT_ERR_INIT;
        feeds f = { { x }, { { NULL } }, 1 };
        result r;
        size_t n = strlen(e->d_name);
        if (n < 6 || strcmp(e->d_name + n - 5, ".onnx") != 0)
            continue;
        snprintf(path, sizeof path, "%s/../../shared/models/%s", folder, e->d_name);
        GOOD(oct_model_load(path, &m, err));
        if (m->size > LARGEST) {
            oct_model_free(m);
            continue;
        }
        const oct_value *in = &m->graph->value[m->graph->input[0]];
        if (m->graph->n_input == 1 && in->dtype == OCT_F32 && in->shape.rank > 0) {
            f.shape[0] = (oct_plan_input){ .tensor = true, .rank = in->shape.rank };
            size_t count = 1;
            for (int i = 0; i < in->shape.rank; i++) {
                f.shape[0].dims[i] = in->shape.d[i].n > 0 ? in->shape.d[i].n : i ? 64 : 2;
                count *= (size_t)f.shape[0].dims[i];
            }
            assert_true(count <= OCT_COUNT(x));
            bool batches = in->shape.d[0].n <= 0;
            if (batches)
                f.shape[0].dims[0] = 1; /* every way on one sample, two samples the best way */
            if (run_all_ways(e->d_name, m->graph, &f, &r, &why) != OCT_OK)
                fail_msg("%s: %s", e->d_name, why.text);
            free_result(&r);
            if (batches) {
                f.shape[0].dims[0] = 2;
                GOOD(run(m->graph, &f, pools[1], &r, err));
                check_batches(e->d_name, m->graph, &f, &r);
                free_result(&r);
            }
        }
        oct_model_free(m);
    }
    closedir(d);
}

static int set_up(void **state)
{
    const char *source = getenv("OCT_SOURCE");
    snprintf(folder, sizeof folder, "%s/testdata", source ? source : ".");
    return (pools[1] = oct_pool_create(2)) ? 0 : -1;
}

static int tear_down(void **state)
{
    oct_pool_destroy(pools[1]);
    return 0;
}

TEST_GROUP(set_up, tear_down);
