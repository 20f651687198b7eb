/* Models that share what was loaded: run at the same time, released in any order. */
#include "unit.h"

#include "built_model.h"
#include "sanitized.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IN = 128, MIDDLE = 768, OUT = 16, BATCHES = 6, THREADS = 8, RUNS = 200 };

static int8_t narrow[IN * MIDDLE];
static float table[MIDDLE * OUT], step[OUT], x[BATCHES * IN];

/* The arrays that are given, and the results for each batch of a model that shares nothing. */
static const octet_array weights[] = {
    { "narrow", OCTET_INT8, 2, { IN, MIDDLE }, narrow },
    { "table", OCTET_FLOAT32, 2, { MIDDLE, OUT }, table },
    { "step", OCTET_FLOAT32, 1, { OUT }, step },
};
static float wanted[BATCHES + 1][BATCHES * OUT];
static message model;

/* Both matrices are large enough for their packed form to be kept once. What follows is a loop, whose body is planned
 * when it runs. */
static message make_model(void)
{
    message graph = { 0 }, real = node_message("Cast", "sums", "reals"), loop = node_message("Loop", "three - t", "y"),
            body = { 0 };
    put_node(&graph, "DynamicQuantizeLinear", "x", "q qs qz");
    put_node(&graph, "MatMulInteger", "q narrow qz", "sums");
    put_attr_int(&real, "to", OCTET_FLOAT32);
    put_part(&graph, GRAPH_NODE, real);
    put_node(&graph, "Mul", "reals qs", "m");
    put_node(&graph, "MatMul", "m table", "t");
    put_node(&body, "Add", "state step", "next");
    put_node(&body, "Identity", "go", "still");
    put_text(&body, 2, "body");
    put_part(&body, GRAPH_INPUT, value_info("iteration", OCTET_INT64, 0, NULL));
    put_part(&body, GRAPH_INPUT, value_info("go", OCTET_BOOL, 0, NULL));
    put_part(&body, GRAPH_INPUT, value_info("state", OCTET_FLOAT32, 2, (const int64_t[]){ -1, OUT }));
    put_part(&body, GRAPH_OUTPUT, value_info("still", OCTET_BOOL, 0, NULL));
    put_part(&body, GRAPH_OUTPUT, value_info("next", OCTET_FLOAT32, 2, (const int64_t[]){ -1, OUT }));
    put_attr_graph(&loop, "body", body);
    put_part(&graph, GRAPH_NODE, loop);
    const int64_t three = 3;
    put_constant(&graph, &(octet_array){ .name = "three", .type = OCTET_INT64, .data = &three }, sizeof three, true);
    put_part(&graph, GRAPH_INPUT, value_info("x", OCTET_FLOAT32, 2, (const int64_t[]){ -1, IN }));
    for (size_t i = 0; i < 3; i++)
        put_constant(&graph, &weights[i], 0, false);
    put_part(&graph, GRAPH_OUTPUT, value_info("y", OCTET_FLOAT32, 2, (const int64_t[]){ -1, OUT }));
    return model_message(graph, 17);
}

static octet_model *load(octet *o, int threads)
{
    octet_model *m;
    if (octet_model_load_graph(o, model.v, model.n, weights, 3, threads, &m) != OCTET_OK)
        fail_msg("%s", octet_error(o));
    return m;
}

static octet_model *share(octet *o, const octet_model *m)
{
    octet_model *s;
    if (octet_model_share(o, m, &s) != OCTET_OK)
        fail_msg("%s", octet_error(o));
    return s;
}

/* Whether a run on n rows gives what it must. */
static bool runs(octet *o, octet_model *m, int64_t n)
{
    const octet_array in = { .type = OCTET_FLOAT32, .rank = 2, .dims = { n, IN }, .data = x }, *y;
    size_t n_out;
    return octet_model_run(o, m, &in, 1, &y, &n_out) == OCTET_OK && y->dims[0] == n &&
           memcmp(y->data, wanted[n], (size_t)n * OUT * sizeof(float)) == 0;
}

static int set_up(void **state)
{
    uint32_t r = 1;
    for (int i = 0; i < IN * MIDDLE; i++)
        narrow[i] = (int8_t)((r = r * 1664525 + 1013904223) >> 24);
    for (int i = 0; i < MIDDLE * OUT; i++)
        table[i] = (float)(int32_t)(r = r * 1664525 + 1013904223) * 0x1p-31f;
    for (int i = 0; i < BATCHES * IN; i++)
        x[i] = (float)(int32_t)(r = r * 1664525 + 1013904223) * 0x1p-31f;
    for (int i = 0; i < OUT; i++)
        step[i] = (float)i;
    model = make_model();
    octet *o = octet_open();
    octet_model *m = load(o, 1);
    for (int64_t n = 1; n <= BATCHES; n++) {
        const octet_array in = { .type = OCTET_FLOAT32, .rank = 2, .dims = { n, IN }, .data = x }, *y;
        size_t n_out;
        if (octet_model_run(o, m, &in, 1, &y, &n_out) != OCTET_OK)
            return -1;
        memcpy(wanted[n], y->data, (size_t)n * OUT * sizeof(float));
    }
    octet_model_free(m);
    octet_close(o);
    return 0;
}

static int tear_down(void **state)
{
    message_free(&model);
    return 0;
}

TEST_GROUP(set_up, tear_down);

/* ---- at the same time ---- */

typedef struct runner {
    pthread_t thread;
    const octet_model *from;
    uint32_t random;
    int right;
} runner;

/* Shares, while others do and run, and releases, while others still run. More batches than plans are kept, so plans
 * are made all the time. */
static void *share_and_run(void *arg)
{
    runner *r = arg;
    octet *o = octet_open();
    octet_model *m;
    if (octet_model_share(o, r->from, &m) == OCTET_OK)
        for (int i = 0; i < RUNS; i++)
            r->right += runs(o, m, 1 + (r->random = r->random * 1664525 + 1013904223) % (1 << 28) % BATCHES);
    octet_model_free(m);
    octet_close(o);
    return NULL;
}

TEST(threads_run_at_once)
{
    octet *o = octet_open();
    for (int threads = 1; threads <= 3; threads += 2) {
        octet_model *m = load(o, threads);
        runner r[THREADS] = { 0 };
        for (int i = 0; i < THREADS; i++) {
            r[i].from = m;
            r[i].random = (uint32_t)(i + 1);
            assert_int_equal(pthread_create(&r[i].thread, NULL, share_and_run, &r[i]), 0);
        }
        for (int i = 0; i < 50; i++)
            assert_true(runs(o, m, 1 + i % BATCHES));
        for (int i = 0; i < THREADS; i++) {
            pthread_join(r[i].thread, NULL);
            assert_int_equal(r[i].right, RUNS);
        }
        octet_model_free(m);
    }
    octet_close(o);
}

/* ---- released in any order ---- */

TEST(each_may_be_the_last)
{
    static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    for (int k = 0; k < 6; k++) {
        octet *o = octet_open(), *other = octet_open();
        octet_model *m[3] = { load(o, 2) };
        m[1] = share(other, m[0]);
        assert_true(runs(o, m[0], 3));
        m[2] = share(o, m[1]); /* of one that has not run */
        octet_close(other);    /* models outlive it */
        const char *name = octet_model_input(m[2], 0)->name;
        for (int i = 0; i < 3; i++) {
            for (int left = i; left < 3; left++)
                assert_true(runs(o, m[orders[k][left]], 1 + left + i));
            if (i == 2)
                assert_string_equal(octet_model_output(m[orders[k][2]], 0)->name, "y");
            octet_model_free(m[orders[k][i]]);
            if (i < 2 && orders[k][2] == 2)
                assert_string_equal(name, "x"); /* it belongs to m[2] */
        }
        octet_close(o);
    }
}

TEST(outputs_are_each_ones_own)
{
    octet *o = octet_open();
    octet_model *a = load(o, 1), *b = share(o, a);
    const octet_array one = { .type = OCTET_FLOAT32, .rank = 2, .dims = { 1, IN }, .data = x },
                      two = { .type = OCTET_FLOAT32, .rank = 2, .dims = { 2, IN }, .data = x }, *y, *z;
    size_t n;
    assert_int_equal(octet_model_run(o, a, &one, 1, &y, &n), OCTET_OK);
    assert_int_equal(octet_model_run(o, b, &two, 1, &z, &n), OCTET_OK);
    assert_int_equal(y->dims[0], 1);
    assert_memory_equal(y->data, wanted[1], OUT * sizeof(float));
    assert_memory_equal(z->data, wanted[2], 2 * OUT * sizeof(float));
    octet_model_free(b);
    assert_memory_equal(y->data, wanted[1], OUT * sizeof(float));
    octet_model_free(a);
    octet_close(o);
}

/* ---- threads of the caller's ---- */

TEST(misuse_has_a_status)
{
    octet *o = octet_open();
    octet_model *m = load(o, 1), *s = m;
    assert_int_equal(octet_model_share(o, NULL, &s), OCTET_USAGE);
    assert_null(s);
    assert_int_equal(octet_model_share(o, m, NULL), OCTET_USAGE);
    assert_true(*octet_error(o));
    s = m;
    assert_int_equal(octet_model_share(NULL, m, &s), OCTET_USAGE);
    assert_null(s);
    assert_true(runs(o, m, 1));
    octet_model_free(m);
    octet_close(o);
}

typedef struct lane {
    pthread_t thread;
    void (*work)(void *arg, size_t i);
    void *arg;
    size_t i;
} lane;

static void *run_lane(void *arg)
{
    const lane *l = arg;
    l->work(l->arg, l->i);
    return NULL;
}

/* Counts its calls in the context. */
static void on_threads(void *context, size_t n, void (*work)(void *arg, size_t i), void *arg)
{
    lane l[8];
    ++*(int *)context;
    for (size_t i = 0; i < n; i++) {
        l[i] = (lane){ .work = work, .arg = arg, .i = i };
        assert_int_equal(pthread_create(&l[i].thread, NULL, run_lane, &l[i]), 0);
    }
    for (size_t i = 0; i < n; i++)
        pthread_join(l[i].thread, NULL);
}

TEST(runs_on_the_callers_threads)
{
    octet *o = octet_open();
    octet_model *m = load(o, 2), *s = share(o, m);
    for (int lanes = 1; lanes <= 8; lanes++) {
        int first = 0, second = 0;
        assert_int_equal(octet_model_parallel(o, s, lanes, on_threads, &first), OCTET_OK);
        assert_true(runs(o, s, BATCHES));
        assert_int_equal(octet_model_parallel(o, s, lanes, on_threads, &second), OCTET_OK);
        assert_true(runs(o, s, BATCHES));
        assert_true(lanes == 1 ? first == 0 && second == 0 : first > 0 && first == second);
        assert_true(runs(o, m, BATCHES)); /* on its own threads */
        assert_true(lanes == 1 || first == second);
    }
    assert_int_equal(octet_model_parallel(o, s, 0, on_threads, NULL), OCTET_USAGE);
    assert_int_equal(octet_model_parallel(o, s, 1025, on_threads, NULL), OCTET_USAGE);
    assert_int_equal(octet_model_parallel(o, s, 2, NULL, NULL), OCTET_USAGE);
    assert_int_equal(octet_model_parallel(o, NULL, 2, on_threads, NULL), OCTET_USAGE);
    octet_model_free(s);
    octet_model_free(m);
    octet_close(o);
}

/* ---- memory ---- */

/* Bytes that are allocated; 0 where this is not counted, as under sanitizers. */
static size_t allocated(void)
{
    const struct mallinfo2 i = mallinfo2();
    return i.uordblks + i.hblkhd;
}

/* y = x * w of float32, whose packed weights take as much as the weights. */
TEST(packed_weights_are_kept_once)
{
    enum { SIDE = 1024, BYTES = SIDE * SIDE * sizeof(float), STATES = 4 };
    octet *o = octet_open();
    message graph = { 0 };
    put_node(&graph, "MatMul", "x w", "y");
    put_part(&graph, GRAPH_INPUT, value_info("x", OCTET_FLOAT32, 2, (const int64_t[]){ -1, SIDE }));
    put_part(&graph, GRAPH_INPUT, value_info("w", OCTET_FLOAT32, 2, (const int64_t[]){ SIDE, SIDE }));
    put_part(&graph, GRAPH_OUTPUT, value_info("y", OCTET_FLOAT32, 2, (const int64_t[]){ -1, SIDE }));
    message p = model_message(graph, 17);
    float *w = malloc(BYTES), *in = calloc(SIDE, sizeof *in);
    assert_true(w && in);
    for (int i = 0; i < SIDE * SIDE; i++)
        w[i] = (float)i;
    in[1] = 1;
    const octet_array constant = { "w", OCTET_FLOAT32, 2, { SIDE, SIDE }, w };
    const octet_array row = { "x", OCTET_FLOAT32, 2, { 1, SIDE }, in };
    const size_t before = allocated();
    octet_model *m[STATES];
    size_t first = 0;
    assert_int_equal(octet_model_load_graph(o, p.v, p.n, &constant, 1, 1, &m[0]), OCTET_OK);
    for (int i = 0; i < STATES; i++) {
        const octet_array *y;
        size_t n;
        if (i)
            m[i] = share(o, m[i - 1]);
        assert_int_equal(octet_model_run(o, m[i], &row, 1, &y, &n), OCTET_OK);
        assert_memory_equal(y->data, w + SIDE, SIDE * sizeof *w);
        if (!i)
            first = allocated() - before;
    }
    /* What a state packed to find that it is known already is freed, and one such block kept for later use
     * (base/reuse.h). */
    const size_t all = allocated() - before;
    if (before && (first < BYTES || all - first > BYTES / 4 * 5))
        fail_msg("%zu bytes for the first one, %zu for all", first, all);
    for (int i = 0; i < STATES; i++)
        octet_model_free(m[i]);
    free(w);
    free(in);
    message_free(&p);
    octet_close(o);
}

/* ---- a child ---- */

static atomic_bool enough;

static void *run_until_enough(void *m)
{
    octet *o = octet_open();
    bool right = true;
    while (!atomic_load(&enough))
        right &= runs(o, m, 5);
    octet_close(o);
    return (void *)(intptr_t)right;
}

/* Forked while another thread runs a model: one that shares with it runs in the child, without threads. */
TEST(a_child_runs_its_own)
{
    if (SANITIZED) { /* their memory is locked in the child, if the other thread was asking for some */
        print_message("# a child of a run: not tried under sanitizers\n");
        return;
    }
    octet *o = octet_open();
    octet_model *m = load(o, 2), *s = share(o, m);
    pthread_t thread;
    void *right;
    assert_int_equal(pthread_create(&thread, NULL, run_until_enough, s), 0);
    for (int i = 0; i < 10; i++) {
        assert_true(runs(o, m, 4));
        const pid_t child = fork();
        if (child == 0) {
            alarm(60); /* if it hangs */
            bool ok = runs(o, m, 4) && runs(o, m, 5);
            octet_model *third;
            ok &= octet_model_share(o, m, &third) == OCTET_OK && runs(o, third, 2);
            octet_model_free(third);
            octet_model_free(s); /* in use for ever: nothing happens */
            octet_model_free(m);
            _exit(ok ? 0 : 1);
        }
        int status;
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    atomic_store(&enough, true);
    pthread_join(thread, &right);
    assert_true((intptr_t)right);
    octet_model_free(m);
    octet_model_free(s);
    octet_close(o);
}
