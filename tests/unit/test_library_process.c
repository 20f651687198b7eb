/* The library in processes that fork, set a locale, give little stack, get signals, and ask to stop. */
#define _GNU_SOURCE
#include "unit.h"

#include "german.h"
#include "library_case.h"
#include "sanitized.h"

#include <ctype.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

TEST_GROUP(library_set_up, library_tear_down);

static octet_status convert(octet *o, const char *output)
{
    const octet_convert_options x = demo_conversion(output);
    return convert_only(o, &x);
}

static void load(octet *o, int threads, octet_model **m)
{
    if (octet_model_load(o, lib.model, threads, m) != OCTET_OK)
        fail_msg("%s", octet_error(o));
}

static float picture[2 * 3 * 32 * 32];
static const octet_array pictures = { .type = OCTET_FLOAT32, .rank = 4, .dims = { 2, 3, 32, 32 }, .data = picture };
enum { CLASSES = 10 };

static octet_status run(octet *o, octet_model *m, float y[2 * CLASSES])
{
    const octet_array *out;
    size_t n;
    const octet_status s = octet_model_run(o, m, &pictures, 1, &out, &n);
    if (s == OCTET_OK)
        memcpy(y, out->data, 2 * CLASSES * sizeof *y);
    return s;
}

/* ---- stopping ---- */

typedef struct stopper {
    octet *o;
    int calls, after; /* stops at the call number `after` */
} stopper;

static void stop_at(void *arg, const char *what, int64_t done, int64_t total)
{
    stopper *s = arg;
    if (++s->calls == s->after)
        octet_stop(s->o);
}

TEST(a_callback_stops_a_command)
{
    stopper s = { .o = octet_open() };
    octet_on_progress(s.o, stop_at, &s);
    for (int after = 1; after <= 16; after += 5) {
        s.calls = 0;
        s.after = after;
        if (convert(s.o, "stopped.onnx") != OCTET_STOPPED)
            fail_msg("stopped at report %d: '%s'", after, octet_error(s.o));
        assert_string_equal(octet_error(s.o), "stopped");
        assert_int_not_equal(access("stopped.onnx", F_OK), 0);
    }
    s.calls = s.after = 0;
    octet_stop(s.o); /* no call is there to stop */
    assert_int_equal(convert(s.o, "stopped.onnx"), OCTET_OK);
    assert_int_equal(access("stopped.onnx", F_OK), 0);
    octet_close(s.o);
}

static octet *of_signal;
static atomic_int signals;

static void on_alarm(int sig)
{
    octet_stop(of_signal);
    atomic_fetch_add(&signals, 1);
}

/* The timer fires until the call has been stopped, wherever it is. */
TEST(a_signal_handler_stops_a_command)
{
    const struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
    struct sigaction act = { .sa_handler = on_alarm, .sa_flags = SA_RESTART }, before;
    of_signal = octet_open();
    sigaction(SIGALRM, &act, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    const octet_status s = convert(of_signal, "signalled.onnx");
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    assert_int_equal(s, OCTET_STOPPED);
    assert_true(signals > 0);
    assert_int_not_equal(access("signalled.onnx", F_OK), 0);
    octet_close(of_signal);
}

typedef struct other_thread {
    octet *o;
    atomic_bool over;
} other_thread;

static void *stop_always(void *arg)
{
    other_thread *t = arg;
    while (!atomic_load(&t->over))
        octet_stop(t->o);
    return NULL;
}

/* One that waits for its turn is stopped, too. */
TEST(another_thread_stops_a_run)
{
    pthread_t thread;
    octet_model *m;
    float y[2 * CLASSES];
    other_thread t = { .o = octet_open() };
    load(t.o, 2, &m);
    assert_int_equal(pthread_create(&thread, NULL, stop_always, &t), 0);
    octet_status s = OCTET_OK;
    for (int i = 0; i < 10000 && s == OCTET_OK; i++)
        s = run(t.o, m, y);
    assert_int_equal(s, OCTET_STOPPED);
    assert_int_equal(convert(t.o, "other.onnx"), OCTET_STOPPED);
    atomic_store(&t.over, true);
    pthread_join(thread, NULL);
    assert_int_equal(run(t.o, m, y), OCTET_OK);
    octet_model_free(m);
    octet_close(t.o);
}

/* A command that says when it runs, leaves a process in a session of its own, and ends neither by itself nor by
 * SIGTERM. */
#define NEVER_ENDS                                                                               \
    "echo > waiting; trap '' TERM; setsid sh -c 'echo $$ > stray; exec sleep 600' & sleep 600; " \
    "sleep 600 #"

static void *stop_when_waiting(void *arg)
{
    other_thread *t = arg;
    while (access("stray", F_OK) != 0)
        usleep(1000);
    usleep(50000);
    octet_stop(t->o);
    return NULL;
}

/* One that has ended has no command line, even when nobody waited for it. */
static bool is_running(long pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/cmdline", pid);
    FILE *f = fopen(path, "r");
    const bool is = f && fgetc(f) != EOF;
    if (f)
        fclose(f);
    return is;
}

static void assert_stray_ended(void)
{
    long pid = 0;
    FILE *f = fopen("stray", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld", &pid), 1);
    fclose(f);
    for (int i = 0; i < 100 && is_running(pid); i++)
        usleep(10000);
    assert_false(is_running(pid));
}

/* Nothing is left of the command, nor of its files, and the call does not wait for it. */
TEST(a_wait_for_a_command_is_stopped)
{
    static const char *const pipes[] = { "pipe:" NEVER_ENDS };
    const char *const quantized[] = { lib.model };
    octet_evaluate_options waits[4];
    for (size_t i = 0; i < 4; i++) {
        octet_evaluate_init(&waits[i], sizeof waits[i]);
        waits[i].model = lib.model;
        waits[i].quantized = (octet_texts){ quantized, 1 };
        waits[i].samples = demo_samples(4);
    }
    waits[0].runner = NEVER_ENDS;
    waits[1].metric_command = NEVER_ENDS;
    waits[2].samples = (octet_samples){ .data = { pipes, 1 }, .seed = -1 };
    waits[3].samples = (octet_samples){ .data = { pipes, 1 }, .samples = 4, .seed = -1 };
    const char *before = getenv("TMPDIR");
    char kept[4096] = "";
    snprintf(kept, sizeof kept, "%s", before ? before : "/tmp");
    assert_int_equal(mkdir("passing", 0700), 0);
    setenv("TMPDIR", "passing", 1);
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        pthread_t thread;
        struct timespec begin, end;
        other_thread t = { .o = octet_open() };
        clock_gettime(CLOCK_MONOTONIC, &begin);
        assert_int_equal(pthread_create(&thread, NULL, stop_when_waiting, &t), 0);
        octet_result *r;
        if (octet_evaluate_model(t.o, &waits[i], &r) != OCTET_STOPPED)
            fail_msg("wait %zu: '%s'", i, octet_error(t.o));
        assert_null(r);
        clock_gettime(CLOCK_MONOTONIC, &end);
        assert_string_equal(octet_error(t.o), "stopped");
        pthread_join(thread, NULL);
        assert_stray_ended();
        assert_true(end.tv_sec - begin.tv_sec < 60);
        unlink("stray");
        octet_close(t.o);
    }
    setenv("TMPDIR", kept, 1);
    assert_int_equal(rmdir("passing"), 0); /* empty */
    unlink("waiting");
}

/* ---- callbacks ---- */

typedef struct visitor {
    octet *o, *other;
    octet_model *m;
    pthread_t caller;
    int calls, elsewhere; /* elsewhere: on threads that the library has started, the first of them counts as well */
    octet_status same[2], command[2], model[2];
} visitor;

static void call_back(void *arg, const char *what, int64_t done, int64_t total)
{
    visitor *v = arg;
    float y[2 * CLASSES];
    const bool there = !pthread_equal(pthread_self(), v->caller);
    if (there ? v->elsewhere++ : v->calls++)
        return;
    v->same[there] = convert(v->o, "inner.onnx");
    v->command[there] = convert(v->other, "inner.onnx");
    v->model[there] = run(v->other, v->m, y);
    octet_close(v->o); /* it is in use */
}

/* Neither deadlock nor crash; other objects can be used. */
TEST(a_callback_runs_no_command)
{
    visitor v = { .o = octet_open(), .other = octet_open(), .caller = pthread_self() };
    load(v.other, 1, &v.m);
    octet_on_progress(v.o, call_back, &v);
    for (int i = 0; i < 50 && (i == 0 || !v.elsewhere); i++) /* which thread calibrates first is chance */
        assert_int_equal(convert(v.o, "outer.onnx"), OCTET_OK);
    for (int there = 0; there < 1 + (v.elsewhere > 0); there++) {
        assert_int_equal(v.same[there], OCTET_USAGE);
        assert_int_equal(v.command[there], OCTET_USAGE);
        assert_int_equal(v.model[there], OCTET_OK);
    }
    assert_true(v.calls > 0);
    assert_int_not_equal(access("inner.onnx", F_OK), 0);
    octet_model_free(v.m);
    octet_close(v.other);
    octet_close(v.o);
}

/* ---- locale ---- */

static size_t read_file(const char *name, char **text)
{
    FILE *f = fopen(name, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    const size_t n = (size_t)ftell(f);
    rewind(f);
    *text = calloc(n + 1, 1);
    assert_int_equal(fread(*text, 1, n, f), n);
    fclose(f);
    return n;
}

static void assert_same_files(const char *a, const char *b)
{
    char *x, *y;
    const size_t n = read_file(a, &x);
    if (read_file(b, &y) != n || memcmp(x, y, n) != 0)
        fail_msg("%s and %s differ", a, b);
    free(x);
    free(y);
}

/* Between two digits of a report there is never a comma: items of lists are in lines of their own. */
static void assert_points(const char *json)
{
    assert_int_equal(*json, '{');
    for (const char *s = strchr(json, ','); s; s = strchr(s + 1, ','))
        if (isdigit((unsigned char)s[-1]) && isdigit((unsigned char)s[1]))
            fail_msg("%.*s", 40, s - 10 > json ? s - 10 : json);
}

static void write_half(void *arg, const char *what, int64_t done, int64_t total)
{
    snprintf(arg, 8, "%g", 0.5);
}

static octet_status convert_learned(octet *o, const char *output)
{
    octet_convert_options x = demo_conversion(output);
    x.observer = "hist-percentile=99.9";
    x.min_sqnr = 3.5;
    return convert_only(o, &x);
}

TEST(commas_of_the_process_change_nothing)
{
    char of_callback[8] = "";
    octet *o = octet_open();
    assert_int_equal(convert_learned(o, "point.onnx"), OCTET_OK);
    if (!german_begin()) {
        print_message("# commas: not tried, since there is no locale de_DE.UTF-8, and none can be made\n");
        octet_close(o);
        return;
    }
    octet_on_progress(o, write_half, of_callback);
    const octet_status s = convert_learned(o, "comma.onnx");
    const char *const quantized[] = { "comma.onnx" };
    octet_evaluate_options x;
    octet_result *r = NULL;
    octet_evaluate_init(&x, sizeof x);
    x.model = lib.model;
    x.quantized = (octet_texts){ quantized, 1 };
    x.samples = demo_samples(16);
    x.min_sqnr = "3.5";
    x.latency = 0;
    const octet_status e = s == OCTET_OK ? octet_evaluate_model(o, &x, &r) : s;
    german_end();
    if (e != OCTET_OK)
        fail_msg("%s", octet_error(o));
    assert_points(octet_result_json(r));
    assert_same_files("point.onnx", "comma.onnx");
    assert_string_equal(of_callback, "0,5"); /* which belongs to the process */
    octet_result_free(r);
    octet_close(o);
}

/* ---- fork ---- */

typedef struct shared_model {
    octet *o;
    octet_model *m;
    float y[2 * CLASSES];
} shared_model;

/* The exit status of a child that runs fn, or 256 + the signal that ended it. A child that hangs is ended by
 * SIGALRM. */
static int in_child(int (*fn)(void *arg), void *arg)
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(fn(arg));
    }
    int status;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static int run_in_child(void *arg)
{
    const shared_model *x = arg;
    float y[2 * CLASSES];
    const octet_status s = run(x->o, x->m, y);
    octet_model_free(x->m);
    octet_close(x->o);
    return s != OCTET_OK ? 10 + (int)s : memcmp(y, x->y, sizeof y) != 0;
}

TEST(a_child_runs_the_model_of_its_parent)
{
    shared_model x = { .o = octet_open() };
    load(x.o, 4, &x.m);
    assert_int_equal(run(x.o, x.m, x.y), OCTET_OK);
    assert_int_equal(in_child(run_in_child, &x), 0);
    assert_int_equal(run_in_child(&x), 0); /* the parent still does */
}

static atomic_bool converting;

static void *convert_always(void *arg)
{
    octet *o = octet_open();
    octet_status s = OCTET_OK;
    while (atomic_load(&converting) && s == OCTET_OK)
        s = convert(o, "beside.onnx");
    octet_close(o);
    return (void *)(intptr_t)s;
}

static int convert_in_child(void *arg)
{
    octet *o = octet_open();
    const octet_status s = convert(o, "child.onnx");
    return s != OCTET_OK && s != OCTET_USAGE;
}

/* A child of a process that is running a command in another thread may be told so, but does not wait. */
TEST(a_child_does_not_wait_for_threads_of_its_parent)
{
    pthread_t thread;
    void *s;
    if (SANITIZED) { /* their memory is locked in the child, if the other thread was asking for some */
        print_message("# a child of a run: not tried under sanitizers\n");
        return;
    }
    atomic_store(&converting, true);
    assert_int_equal(pthread_create(&thread, NULL, convert_always, NULL), 0);
    for (int i = 0; i < 5; i++) {
        usleep(20000);
        assert_int_equal(in_child(convert_in_child, NULL), 0);
    }
    atomic_store(&converting, false);
    pthread_join(thread, &s);
    assert_int_equal((intptr_t)s, OCTET_OK);
}

/* ---- threads ---- */

typedef struct taker {
    octet_model *m;
    pthread_barrier_t *start;
    int done, refused, wrong;
} taker;

static void *take_model(void *arg)
{
    taker *t = arg;
    octet *o = octet_open();
    const octet_array *out;
    size_t n;
    pthread_barrier_wait(t->start);
    for (int i = 0; i < 200; i++) {
        const octet_status s = octet_model_run(o, t->m, &pictures, 1, &out, &n);
        t->done += s == OCTET_OK;
        t->refused += s == OCTET_USAGE;
        t->wrong += s != OCTET_OK && s != OCTET_USAGE;
    }
    octet_close(o);
    return NULL;
}

/* Two threads that use one model at once do not meet in it. */
TEST(a_model_in_use_is_refused)
{
    octet *o = octet_open();
    octet_model *m;
    pthread_barrier_t start;
    pthread_t thread[3];
    taker t[3];
    load(o, 2, &m);
    pthread_barrier_init(&start, NULL, 3);
    for (int i = 0; i < 3; i++) {
        t[i] = (taker){ .m = m, .start = &start };
        assert_int_equal(pthread_create(&thread[i], NULL, take_model, &t[i]), 0);
    }
    int done = 0;
    for (int i = 0; i < 3; i++) {
        pthread_join(thread[i], NULL);
        done += t[i].done;
        assert_int_equal(t[i].wrong, 0);
        assert_int_equal(t[i].done + t[i].refused, 200);
    }
    assert_true(done > 0);
    pthread_barrier_destroy(&start);
    octet_model_free(m);
    octet_close(o);
}

/* ---- what is as large as a model ---- */

enum { WIDE = 4096, ROWS = 2 };

/* A model y = x w of 64 MiB, above what a program that runs nothing else keeps in memory (session.c); its weights are
 * multiples of 1/64. */
static void write_wide(const char *path)
{
    proto node = { .n = 0 }, head = node, graph = node, start = node, raw = node, opset = node;
    const size_t bytes = (size_t)WIDE * WIDE * sizeof(float);
    float *w = malloc(bytes);
    FILE *f = fopen(path, "wb");
    assert_true(w && f);
    uint32_t x = 1;
    for (size_t i = 0; i < (size_t)WIDE * WIDE; i++) {
        x = x * 1664525 + 1013904223;
        w[i] = (float)((int)(x >> 26) - 32) / 64;
    }
    proto_text(&node, 1, "x");
    proto_text(&node, 1, "w");
    proto_text(&node, 2, "y");
    proto_text(&node, 3, "product");
    proto_text(&node, 4, "MatMul");
    proto_bytes(&graph, 1, node.v, node.n);
    proto_text(&graph, 2, "g");
    proto_matrix(&graph, 11, "x", OCTET_FLOAT32, WIDE);
    proto_matrix(&graph, 12, "y", OCTET_FLOAT32, WIDE);
    proto_int(&head, 1, WIDE);
    proto_int(&head, 1, WIDE);
    proto_int(&head, 2, OCTET_FLOAT32);
    proto_text(&head, 8, "w");
    proto_number(&head, 9 << 3 | 2);
    proto_number(&head, bytes);
    proto_number(&raw, 5 << 3 | 2);
    proto_number(&raw, head.n + bytes);
    proto_int(&opset, 2, 17);
    proto_int(&start, 1, 8);
    proto_bytes(&start, 8, opset.v, opset.n);
    proto_number(&start, 7 << 3 | 2);
    proto_number(&start, graph.n + raw.n + head.n + bytes);
    const proto *const parts[] = { &start, &graph, &raw, &head };
    for (size_t i = 0; i < 4; i++)
        fwrite(parts[i]->v, 1, parts[i]->n, f);
    assert_int_equal(fwrite(w, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
    free(w);
}

/* Row 1 is 2 in place 3, and 0 elsewhere; row 0 is ones. */
static octet_status run_wide(octet *o, octet_model *m, float *y)
{
    static float x[ROWS * WIDE];
    const octet_array in = { .name = "x", .type = OCTET_FLOAT32, .rank = 2, .dims = { ROWS, WIDE }, .data = x };
    const octet_array *out;
    size_t n;
    for (size_t i = 0; i < WIDE; i++)
        x[i] = 1;
    x[WIDE + 3] = 2;
    const octet_status s = octet_model_run(o, m, &in, 1, &out, &n);
    if (s == OCTET_OK)
        memcpy(y, out[0].data, ROWS * WIDE * sizeof *y);
    return s;
}

typedef struct large_work {
    const char *scheme;
    octet_result *r;
    octet_status status;
} large_work;

static void *convert_large(void *arg)
{
    large_work *w = arg;
    octet *o = octet_open();
    octet_convert_options x;
    octet_convert_init(&x, sizeof x);
    x.model = "wide.onnx";
    x.scheme = w->scheme;
    x.in_memory = true;
    x.threads = 1;
    w->status = octet_convert_model(o, &x, &w->r);
    octet_close(o);
    return NULL;
}

/* Conversions without samples, each of a thread, and models that are loaded while they run and used after them: none
 * has its blocks in a file that another one takes away, and each gives the bytes of a conversion alone. */
TEST(conversions_share_no_file_for_large_blocks)
{
    enum { MODELS = 3 };
    large_work alone[2] = { { .scheme = "weight-only" }, { .scheme = "fp16" } }, beside[2] = { alone[0], alone[1] };
    pthread_t thread[2];
    octet_model *m[MODELS];
    octet *o = octet_open();
    float *y = malloc((size_t)ROWS * WIDE * sizeof *y);
    write_wide("wide.onnx");
    for (int i = 0; i < 2; i++)
        convert_large(&alone[i]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, convert_large, &beside[i]), 0);
    for (int i = 0; i < MODELS; i++) {
        assert_int_equal(octet_model_load(o, "wide.onnx", 1, &m[i]), OCTET_OK);
        assert_int_equal(run_wide(o, m[i], y), OCTET_OK);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 2; i++) {
        size_t n = 0, want = 0;
        const void *p = octet_result_model(alone[i].r, &want), *q = octet_result_model(beside[i].r, &n);
        assert_int_equal(alone[i].status, OCTET_OK);
        assert_int_equal(beside[i].status, OCTET_OK);
        assert_true(n == want && n > (size_t)WIDE * WIDE / 2 && memcmp(p, q, n) == 0);
        octet_result_free(alone[i].r);
        octet_result_free(beside[i].r);
    }
    for (int i = 0; i < MODELS; i++) {
        uint32_t r = 1;
        assert_int_equal(run_wide(o, m[i], y), OCTET_OK);
        for (size_t k = 0; k < (size_t)4 * WIDE; k++) { /* row 1: twice row 3 of the weights */
            r = r * 1664525 + 1013904223;
            if (k >= (size_t)3 * WIDE)
                assert_true(y[k - (size_t)2 * WIDE] == 2 * ((float)((int)(r >> 26) - 32) / 64));
        }
        octet_model_free(m[i]);
    }
    free(y);
    unlink("wide.onnx");
    octet_close(o);
}

/* ---- stacks ---- */

typedef struct all_calls {
    octet_status status[6];
    char error[1000];
} all_calls;

/* Each function that works, one after the other; the first failure ends it. */
static void *call_all(void *arg)
{
    all_calls *c = arg;
    octet *o = octet_open();
    octet_model *m = NULL;
    float *y = malloc(2 * CLASSES * sizeof *y);
    const char *const quantized[] = { "stack.onnx" };
    octet_result *r[3] = { NULL };
    octet_convert_options lint;
    octet_calibrate_options calibrate;
    octet_convert_options convert_all = demo_conversion("stack.onnx");
    octet_evaluate_options evaluate;
    octet_calibrate_init(&calibrate, sizeof calibrate);
    calibrate.model = lib.model;
    calibrate.samples = demo_samples(16);
    calibrate.output = "stack.calib";
    convert_all.html = "stack.html";
    octet_convert_init(&lint, sizeof lint);
    lint.model = "stack.onnx";
    octet_evaluate_init(&evaluate, sizeof evaluate);
    evaluate.model = lib.model;
    evaluate.quantized = (octet_texts){ quantized, 1 };
    evaluate.samples = demo_samples(16);
    evaluate.latency = 0;
    evaluate.layers = 1;
    evaluate.html = "eval.html";
    c->status[0] = octet_model_load(o, lib.model, 2, &m);
    c->status[1] = c->status[0] ? c->status[0] : run(o, m, y);
    octet_model_free(m);
    c->status[2] = octet_calibrate_model(o, &calibrate, &r[0]);
    c->status[3] = convert_only(o, &convert_all);
    if (!c->status[3])
        c->status[4] = octet_evaluate_model(o, &evaluate, &r[1]);
    if (!c->status[4])
        c->status[5] = octet_lint_model(o, &lint, &r[2]);
    snprintf(c->error, sizeof c->error, "%s", octet_error(o));
    octet_result_free(r[0]);
    octet_result_free(r[1]);
    octet_result_free(r[2]);
    free(y);
    octet_close(o);
    return NULL;
}

static void assert_all_done(const all_calls *c)
{
    for (size_t i = 0; i < sizeof c->status / sizeof *c->status; i++)
        if (c->status[i] != OCTET_OK)
            fail_msg("call %zu: status %d (%s)", i, c->status[i], c->error);
}

TEST(threads_may_have_small_stacks)
{
    static const size_t sizes[] = { OCTET_STACK_MIN, 128 << 10 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pthread_attr_t attr;
        pthread_t thread;
        all_calls c = { .error = "" };
        pthread_attr_init(&attr);
        assert_int_equal(pthread_attr_setstacksize(&attr, sizes[i]), 0);
        assert_int_equal(pthread_create(&thread, &attr, call_all, &c), 0);
        pthread_attr_destroy(&attr);
        pthread_join(thread, NULL);
        assert_all_done(&c);
    }
}

/* What a call works with in place is the 512 kB of the header: the calls above take less than half of them. The bytes
 * of a stack that were never written are those that have not changed. */
TEST(calls_take_half_of_the_stack_they_ask_for)
{
    enum { SIZE = 1 << 20, LEAST = 512 << 10, PAINT = 0x5c };
    if (SANITIZED) {
        print_message("# bytes of stack: not counted under sanitizers\n");
        return;
    }
    unsigned char *stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attr;
    pthread_t thread;
    all_calls c = { .error = "" };
    assert_ptr_not_equal(stack, MAP_FAILED);
    memset(stack, PAINT, SIZE);
    pthread_attr_init(&attr);
    assert_int_equal(pthread_attr_setstack(&attr, stack, SIZE), 0);
    assert_int_equal(pthread_create(&thread, &attr, call_all, &c), 0);
    pthread_attr_destroy(&attr);
    pthread_join(thread, NULL);
    size_t untouched = 0;
    while (untouched < SIZE && stack[untouched] == PAINT)
        untouched++;
    munmap(stack, SIZE);
    assert_all_done(&c);
    if (SIZE - untouched > LEAST / 2)
        fail_msg("%zu bytes of stack were used, at most %d wanted", SIZE - untouched, LEAST / 2);
    print_message("# %zu bytes of stack\n", SIZE - untouched);
}
