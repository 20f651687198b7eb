/* Writes a model's outputs over samples to an .npz. */
#include "eval/run/outputs.h"

#include <string.h>

struct oct_output_writer {
    oct_arena *arena;
    oct_npz_writer *npz;
    const char **names; /* [n + 2], of chunk */
    const size_t *from; /* [n] */
    oct_array *chunk;   /* [n + 2]: outputs, names and labels of samples */
    size_t n;
    bool samples;
    oct_arena *texts; /* of the chunks of strings */
};

static oct_status set_up(oct_output_writer *w, const oct_graph *g, const size_t *from, const char *path, bool samples,
                         oct_err *err)
{
    static const char *const of_samples[] = { "sample_names", "sample_labels" };
    w->n = g->n_output;
    w->samples = samples;
    const char **names = oct_arena_calloc(w->arena, w->n + 2, sizeof *names);
    size_t *own = oct_arena_calloc(w->arena, w->n + 1, sizeof *own);
    w->chunk = oct_arena_calloc(w->arena, w->n + 2, sizeof *w->chunk);
    if (!names || !own || !w->chunk)
        return oct_nomem(err);
    for (size_t i = 0; i < w->n; i++) {
        names[i] = g->value[g->output[i]].name;
        own[i] = from ? from[i] : i;
        if (samples && (strcmp(names[i], of_samples[0]) == 0 || strcmp(names[i], of_samples[1]) == 0))
            return oct_fail(err, OCT_EUNSUPPORTED, "an output is called '%s', as what is said of samples", names[i]);
    }
    w->names = names;
    w->from = own;
    memcpy(names + w->n, of_samples, sizeof of_samples);
    return oct_npz_writer_open(path, names, w->n + (samples ? 2 : 0), &w->npz, err);
}

oct_status oct_output_writer_open(const oct_graph *g, const size_t *from, const char *path, bool samples,
                                  oct_output_writer **out, oct_err *err)
{
    *out = NULL;
    oct_arena *a = oct_arena_create();
    oct_output_writer *w = a ? oct_arena_calloc(a, 1, sizeof *w) : NULL;
    if (!w) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    w->arena = a;
    const oct_status s = set_up(w, g, from, path, samples, err);
    if (s != OCT_OK)
        oct_output_writer_abort(w);
    else
        *out = w;
    return s;
}

/* Texts of an output, one for each row, as the writer takes them. */
static oct_status take_texts(oct_output_writer *w, size_t i, const oct_operand *t, int64_t rows, const oct_batch *b,
                             oct_err *err)
{
    const oct_str *s = t->data;
    const int64_t n = rows > 0 && t->count == rows && b->n < (size_t)rows ? (int64_t)b->n : t->count;
    size_t bytes;
    w->texts = w->texts ? w->texts : oct_arena_create();
    char **text =
        w->texts && oct_mul_size((size_t)n + 1, sizeof *text, &bytes) ? oct_arena_alloc(w->texts, bytes) : NULL;
    if (!text)
        return oct_nomem(err);
    for (int64_t k = 0; k < n; k++)
        if (!(text[k] = oct_arena_strndup(w->texts, s[k].n ? s[k].s : "", s[k].n)))
            return oct_nomem(err);
    w->chunk[i] = (oct_array){ .dtype = OCT_STRING, .rank = 1, .dims = { n }, .data = text };
    return OCT_OK;
}

/* Appends the rows of an output that belong to samples. If the model fixes the batch size, the last rows may be
 * repetitions. */
oct_status oct_output_writer_add(oct_output_writer *w, const oct_engine *e, const oct_source *src, const oct_batch *b,
                                 oct_err *err)
{
    const int64_t rows = oct_batch_rows(src, b);
    oct_arena_destroy(w->texts);
    w->texts = NULL;
    for (size_t i = 0; i < w->n; i++) {
        const oct_operand *t = oct_engine_output(e, w->from[i]);
        oct_array *c = &w->chunk[i];
        *c = (oct_array){ .dtype = t->dtype, .rank = t->rank, .data = t->data };
        memcpy(c->dims, t->dims, (size_t)t->rank * sizeof c->dims[0]);
        if (t->dtype == OCT_STRING && t->rank == 1) {
            OCT_TRY(take_texts(w, i, t, rows, b, err));
            continue;
        }
        if (!oct_dtype_bytes(t->dtype, t->count, &c->bytes))
            return oct_fail(err, OCT_EUNSUPPORTED, "output '%s' of type %s cannot be written", w->names[i],
                            oct_dtype_name(t->dtype));
        int64_t first, row = oct_row_elements(t->rank, t->dims, rows, &first);
        if (rows > 0 && t->rank && row != t->count && b->n < (size_t)rows) {
            c->dims[0] = first * (int64_t)b->n;
            oct_dtype_bytes(t->dtype, row * (int64_t)b->n, &c->bytes);
        }
    }
    if (w->samples) {
        w->chunk[w->n] =
            (oct_array){ .dtype = OCT_STRING, .rank = 1, .dims = { (int64_t)b->n }, .data = (void *)b->names };
        w->chunk[w->n + 1] = (oct_array){
            .dtype = OCT_S64, .rank = 1, .dims = { (int64_t)b->n }, .data = b->labels, .bytes = b->n * sizeof(int64_t)
        };
    }
    return oct_npz_writer_add(w->npz, w->chunk, -1, err);
}

oct_status oct_output_writer_commit(oct_output_writer *w, oct_err *err)
{
    const oct_status s = oct_npz_writer_commit(w->npz, err);
    w->npz = NULL;
    oct_output_writer_abort(w);
    return s;
}

void oct_output_writer_abort(oct_output_writer *w)
{
    if (!w)
        return;
    oct_npz_writer_abort(w->npz);
    oct_arena_destroy(w->texts);
    oct_arena_destroy(w->arena);
}

static oct_status run_all(oct_output_writer *w, oct_engine *e, oct_carry *carry, oct_source *src, size_t batch,
                          oct_progress_fn progress, void *arg, oct_err *err)
{
    oct_batch b = OCT_BATCH_INIT;
    oct_status s;
    int64_t total = oct_source_count(src);
    while ((s = oct_source_next(src, batch, &b, err)) == OCT_OK && b.n) {
        double seconds;
        if ((s = oct_engine_run(e, oct_carry_arrays(carry, b.tensors, b.follows), &seconds, err)) != OCT_OK ||
            (s = oct_carry_keep(carry, oct_engine_left, e, err)) != OCT_OK ||
            (s = oct_output_writer_add(w, e, src, &b, err)) != OCT_OK)
            break;
        if (progress)
            progress(arg, "running", oct_source_given(src), total > 0 ? total : 0);
    }
    oct_batch_free(&b);
    return s;
}

static oct_status open_engine(const oct_graph *g, const oct_engine_opts *how, oct_engine *e, oct_err *err)
{
    oct_input_desc *inputs;
    size_t n;
    oct_arena *a = oct_arena_create();
    oct_status s = a ? oct_inputs_describe(&g, 1, a, &inputs, &n, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = oct_engine_open(e, g, how, inputs, n, err);
    oct_arena_destroy(a);
    return s;
}

oct_status oct_write_outputs(const oct_graph *g, const oct_state *states, size_t n_states, const oct_engine_opts *how,
                             oct_source *src, const char *path, size_t batch, oct_progress_fn progress,
                             void *progress_arg, int64_t *samples, oct_err *err)
{
    oct_engine e = { NULL };
    oct_output_writer *w = NULL;
    oct_carry *carry = NULL;
    oct_status s = open_engine(g, how, &e, err);
    if (s == OCT_OK)
        s = oct_carry_create(states, n_states, g->n_input, &carry, err);
    if (s == OCT_OK)
        s = oct_output_writer_open(g, NULL, path, false, &w, err);
    if (s == OCT_OK) {
        s = run_all(w, &e, carry, src, batch, progress, progress_arg, err);
        if (s == OCT_OK && oct_source_given(src) == 0)
            s = oct_source_none(src, err);
        if (s == OCT_OK)
            s = oct_output_writer_commit(w, err);
        else
            oct_output_writer_abort(w);
    }
    if (samples)
        *samples = s == OCT_OK ? oct_source_given(src) : 0;
    oct_carry_destroy(carry);
    oct_engine_close(&e);
    return s;
}
