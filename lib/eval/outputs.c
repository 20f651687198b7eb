/* A model's outputs over samples, into an .npz. */
#include "eval/outputs.h"

#include "runtime/runner.h"

#include <string.h>

typedef struct writer {
    oct_runner *runner;
    oct_npz_writer *npz;
    oct_array *chunk;
    size_t n;
} writer;

/* The rows of an output that are samples; of a batch the model fixes, the last may be repetitions. */
static oct_status add_outputs(writer *w, const oct_plan *p, int64_t rows, size_t n, oct_err *err)
{
    for (size_t i = 0; i < w->n; i++) {
        const oct_operand *t = oct_plan_output(p, i);
        oct_array *c = &w->chunk[i];
        *c = (oct_array){ .dtype = t->dtype, .rank = t->rank, .data = t->data };
        memcpy(c->dims, t->dims, (size_t)t->rank * sizeof c->dims[0]);
        if (!oct_dtype_bytes(t->dtype, t->count, &c->bytes))
            return oct_fail(err, OCT_EUNSUPPORTED, "output '%s' of type %s cannot be written", oct_plan_output_name(p, i),
                            oct_dtype_name(t->dtype));
        int64_t first, row = oct_row_elements(t->rank, t->dims, rows, &first);
        if (rows > 0 && t->rank && row != t->count && n < (size_t)rows) {
            c->dims[0] = first * (int64_t)n;
            oct_dtype_bytes(t->dtype, row * (int64_t)n, &c->bytes);
        }
    }
    return oct_npz_writer_add(w->npz, w->chunk, -1, err);
}

static oct_status run_all(writer *w, oct_source *src, size_t batch, oct_progress_fn progress, void *arg, oct_err *err)
{
    oct_batch b = OCT_BATCH_INIT;
    oct_status s;
    int64_t total = oct_source_count(src);
    while ((s = oct_source_next(src, batch, &b, err)) == OCT_OK && b.n) {
        oct_plan *p;
        if ((s = oct_runner_run(w->runner, b.tensors, &p, err)) != OCT_OK ||
            (s = add_outputs(w, p, oct_batch_rows(src, &b), b.n, err)) != OCT_OK)
            break;
        if (progress)
            progress(arg, "running", oct_source_given(src), total > 0 ? total : 0);
    }
    oct_batch_free(&b);
    return s;
}

oct_status oct_write_outputs(const oct_graph *g, oct_source *src, const char *path, size_t batch, oct_pool *pool,
                             oct_progress_fn progress, void *progress_arg, int64_t *samples, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    if (!a)
        return oct_nomem(err);
    writer w = { .n = g->n_output };
    const char **names = oct_arena_calloc(a, w.n + 1, sizeof *names);
    w.chunk = oct_arena_calloc(a, w.n + 1, sizeof *w.chunk);
    oct_input_desc *inputs;
    size_t n_inputs;
    oct_plan_opts opts = { .pool = pool };
    oct_status s = names && w.chunk ? oct_inputs_describe(&g, 1, a, &inputs, &n_inputs, err) : oct_nomem(err);
    for (size_t i = 0; s == OCT_OK && i < w.n; i++)
        names[i] = g->value[g->output[i]].name;
    if (s == OCT_OK)
        s = oct_runner_create(g, &opts, inputs, n_inputs, &w.runner, err);
    if (s == OCT_OK)
        s = oct_npz_writer_open(path, names, w.n, &w.npz, err);
    if (s == OCT_OK) {
        s = run_all(&w, src, batch, progress, progress_arg, err);
        if (s == OCT_OK && oct_source_given(src) == 0)
            s = oct_fail(err, OCT_EMALFORMED, "there is not one sample to run");
        if (s == OCT_OK)
            s = oct_npz_writer_commit(w.npz, err);
        else
            oct_npz_writer_abort(w.npz);
    }
    if (samples)
        *samples = s == OCT_OK ? oct_source_given(src) : 0;
    oct_runner_destroy(w.runner);
    oct_arena_destroy(a);
    return s;
}
