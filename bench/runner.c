/* bench/runner.c -- runs a model on its first sample, again and again, when it is told to; for bench/run.
 *
 *   runner MODEL DATA [THREADS]
 *
 * Each line of standard input is a number of seconds. The answer is one line, a JSON list of the milliseconds of every
 * run in that time, three at least. The line "profile" is answered by a line for each step of one run, tabs between:
 * name, operator, scheme, ms, MAC, bytes; then an empty line. OCT_ISA narrows the instruction set; with
 * OCT_BENCH_CLOCK=cpu the times are of the process's CPU, all threads, and not of the wall. */
#include "base/io.h"
#include "base/mem.h"
#include "data/data.h"
#include "onnx/model.h"
#include "runtime/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEAST = 3, MOST = 100000 };
static const double WARM_SECONDS = 0.3;

typedef struct bench {
    oct_model *model;
    oct_pool *pool;
    oct_arena *arena;
    oct_source *src;
    oct_batch sample;
    oct_runner *runner;
    oct_plan *plan;
} bench;

static oct_status open_sample(bench *b, const char *data, const oct_input_desc *in, size_t n, oct_err *err)
{
    const oct_source_options o = {
        .specs = &data, .n_specs = 1, .inputs = in, .n_inputs = n, .samples = 1, .first = true, .threads = 1
    };
    OCT_TRY(oct_source_open(&o, &b->src, err));
    OCT_TRY(oct_source_next(b->src, 1, &b->sample, err));
    return b->sample.n ? OCT_OK : oct_fail(err, OCT_EIO, "%s: no sample", data);
}

static oct_status prepare(bench *b, const char *model, const char *data, int threads, oct_err *err)
{
    oct_input_desc *in;
    size_t n;
    if (!(b->arena = oct_arena_create()) || (threads > 1 && !(b->pool = oct_pool_create(threads))))
        return oct_nomem(err);
    OCT_TRY(oct_model_load(model, &b->model, err));
    const oct_graph *g = b->model->graph;
    const oct_plan_opts opts = { .pool = b->pool };
    OCT_TRY(oct_inputs_describe(&g, 1, b->arena, &in, &n, err));
    OCT_TRY(open_sample(b, data, in, n, err));
    OCT_TRY(oct_runner_create(g, &opts, in, n, &b->runner, err));
    for (const double begin = oct_now(); oct_now() - begin < WARM_SECONDS;)
        OCT_TRY(oct_runner_run(b->runner, b->sample.tensors, &b->plan, err));
    return OCT_OK;
}

static void release(bench *b)
{
    oct_runner_destroy(b->runner);
    oct_batch_free(&b->sample);
    oct_source_close(b->src);
    oct_model_free(b->model);
    oct_pool_destroy(b->pool);
    oct_arena_destroy(b->arena);
}

static double clock_seconds(void)
{
    const char *kind = getenv("OCT_BENCH_CLOCK");
    if (!kind || strcmp(kind, "cpu") != 0)
        return oct_now();
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One run first, which is not timed: it brings the weights back into the caches. */
static oct_status measure(bench *b, double seconds, oct_err *err)
{
    OCT_TRY(oct_runner_run(b->runner, b->sample.tensors, &b->plan, err));
    const double end = oct_now() + seconds;
    for (int i = 0; i < MOST && (i < LEAST || oct_now() < end); i++) {
        const double begin = clock_seconds();
        OCT_TRY(oct_runner_run(b->runner, b->sample.tensors, &b->plan, err));
        printf("%c%.6g", i ? ',' : '[', (clock_seconds() - begin) * 1e3);
    }
    puts("]");
    return OCT_OK;
}

static oct_status profile(bench *b, oct_err *err)
{
    oct_plan_profile(b->plan, true);
    OCT_TRY(oct_runner_run(b->runner, b->sample.tensors, &b->plan, err));
    oct_plan_profile(b->plan, false);
    for (size_t i = 0; i < oct_plan_n_steps(b->plan); i++) {
        const oct_step_info s = oct_plan_step(b->plan, i);
        printf("%s\t%s\t%s\t%.6g\t%llu\t%llu\n", s.name, s.op, s.scheme ? s.scheme : "", s.seconds * 1e3,
               (unsigned long long)s.macs, (unsigned long long)s.bytes);
    }
    puts("");
    return OCT_OK;
}

static oct_status obey(bench *b, oct_err *err)
{
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        OCT_TRY(strncmp(line, "profile", 7) == 0 ? profile(b, err) : measure(b, strtod(line, NULL), err));
        fflush(stdout);
    }
    return OCT_OK;
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: runner MODEL DATA [THREADS]\n");
        return OCT_EUSAGE;
    }
    bench b = { .sample = OCT_BATCH_INIT };
    oct_err err = OCT_ERR_INIT;
    oct_status s = prepare(&b, argv[1], argv[2], argc > 3 ? atoi(argv[3]) : 1, &err);
    if (s == OCT_OK)
        s = obey(&b, &err);
    if (s != OCT_OK)
        fprintf(stderr, "runner: %s\n", err.text);
    release(&b);
    return s;
}
