/* A decoder writes on, one token after the other. */
#include "eval/run/generate.h"

#include "base/io.h"
#include "base/mem.h"
#include "eval/run/decoder_inputs.h"
#include "runtime/runner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_BYTES = 256 << 20 };

typedef struct prompt {
    char *name;
    oct_array *arrays; /* [n_inputs], owned */
} prompt;

struct oct_generator {
    oct_graph *g;
    oct_runner *runner;
    oct_carry *carry;
    size_t n_inputs, logits; /* logits: the output with the scores of the next token */
    size_t ids;
    oct_input_turn *turn; /* [n_inputs] */
    bool single;          /* it takes one token at a time, those of prompts, too */
    prompt *prompts;
    size_t n, room, bytes;
    oct_generate_options of; /* borrowed until it is created */
    int64_t line, step,
        next;       /* next: the token that was generated last; where `now` stands: the prompt (-1: none) and the run */
    int64_t ended;  /* prompts after which an id ended the text */
    int64_t *ends;  /* [n]: the runs of the prompts up to this one */
    oct_array *now; /* [n_inputs], apart from states */
    oct_given_samples samples;
    char *preprocess, *words;
};

/* ---- the inputs ---- */

static oct_status find_inputs(oct_generator *x, const oct_state *states, size_t n, oct_err *err)
{
    const oct_graph *g = x->g;
    const int found = oct_decoder_inputs(g, states, n, x->turn, &x->ids);
    if (found != 1) {
        oct_fail(err, OCT_EUSAGE,
                 found ? "--generate: %d inputs of the model may be its token ids"
                       : "--generate: none of the model's inputs is for token ids",
                 found);
        oct_hint(err, "an input of whole numbers, [samples, tokens], is named input_ids or decoder_input_ids");
        return OCT_EUSAGE;
    }
    const oct_value *v = &g->value[g->input[x->ids]];
    x->single = v->shape.rank == 2 && v->shape.d[1].n == 1;
    if (v->shape.rank != 2 || v->shape.d[1].n <= 1)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "--generate: input '%s' is of %lld tokens, and a step is of one", v->name,
             (long long)v->shape.d[1].n);
    oct_hint(err, "export the decoder with a free length");
    return OCT_EUSAGE;
}

/* The scores: an output of floats that is no state, best named so, or [samples, tokens, words]. */
static oct_status find_logits(oct_generator *x, const oct_state *states, size_t n, oct_err *err)
{
    const oct_graph *g = x->g;
    int best = 0;
    for (size_t i = 0; i < g->n_output; i++) {
        const oct_value *v = &g->value[g->output[i]];
        const int rank = v->shape.rank;
        bool is_state = false;
        for (size_t k = 0; k < n; k++)
            is_state |= states[k].output == i;
        const bool real = v->dtype == OCT_F32 || v->dtype == OCT_F16 || v->dtype == OCT_BF16 || v->dtype == OCT_F64;
        const int l = is_state || !real                    ? 0
                      : strncmp(v->name, "logits", 6) == 0 ? 4
                      : rank == 3                          ? 3
                      : rank < 0                           ? 2
                                                           : rank == 2;
        if (l > best) {
            best = l;
            x->logits = i;
        }
    }
    if (best)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "--generate: no output of the model has scores of the next token");
    oct_hint(err, "it is [samples, tokens, words], and best named logits");
    return OCT_EUSAGE;
}

/* ---- prompts ---- */

/* Columns from, from+1, ... of the last dimension. */
static oct_status columns(const oct_array *a, int64_t from, int64_t n, oct_array *to, oct_err *err)
{
    int64_t dims[OCT_ARRAY_RANK];
    const int64_t last = a->dims[a->rank - 1], rows = last ? oct_array_count(a) / last : 0;
    memcpy(dims, a->dims, sizeof dims);
    dims[a->rank - 1] = n;
    OCT_TRY(oct_array_create(to, a->dtype, a->rank, dims, err));
    const size_t size = rows && n ? to->bytes / (size_t)(rows * n) : 0;
    for (int64_t r = 0; r < rows && size; r++)
        memcpy((char *)to->data + (size_t)(r * n) * size, (const char *)a->data + (size_t)(r * last + from) * size,
               (size_t)n * size);
    return OCT_OK;
}

static bool is_along(const oct_generator *x, size_t i)
{
    return x->turn[i] == OCT_TURN_IDS || x->turn[i] == OCT_TURN_MASK || x->turn[i] == OCT_TURN_ALONG ||
           x->turn[i] == OCT_TURN_POSITIONS;
}

/* The number of tokens without those that a mask leaves out at the end. */
static oct_status length_of(const oct_generator *x, const oct_array *arrays, int64_t *length, oct_err *err)
{
    const int64_t all = arrays[x->ids].dims[1];
    *length = all;
    for (size_t i = 0; i < x->n_inputs; i++) {
        const oct_value *v = &x->g->value[x->g->input[i]];
        const oct_array *a = &arrays[i];
        char text[96];
        if (!is_along(x, i) || i == x->ids)
            continue;
        if (a->rank < 1 || a->dims[a->rank - 1] != all ||
            (x->turn[i] != OCT_TURN_POSITIONS && (a->rank != 2 || a->dims[0] != 1)))
            return oct_fail(err, OCT_EMALFORMED, "%lld tokens, and input '%s' is %s", (long long)all, v->name,
                            oct_dims_text(text, a->rank, a->dims));
        if (!strstr(v->name, "mask"))
            continue;
        double m = 0;
        const size_t size = a->bytes / (size_t)all;
        int64_t used = all;
        for (; used > 0; used--) {
            OCT_TRY(
                oct_array_convert(a->dtype, (const char *)a->data + (size_t)(used - 1) * size, OCT_F64, &m, 1, err));
            if (m != 0)
                break;
        }
        *length = used < *length ? used : *length;
    }
    return *length ? OCT_OK : oct_fail(err, OCT_EMALFORMED, "no tokens: the mask is 0 everywhere");
}

static oct_status check_prompt(const oct_generator *x, const oct_array *arrays, const oct_input_desc *inputs,
                               oct_err *err)
{
    const oct_array *ids = &arrays[x->ids];
    char text[96];
    if (ids->rank != 2 || ids->dims[0] != 1 || ids->dims[1] < 1)
        return oct_fail(err, OCT_EMALFORMED, "input '%s' is %s, and a prompt is [1, tokens]", inputs[x->ids].name,
                        oct_dims_text(text, ids->rank, ids->dims));
    for (size_t i = 0; i < x->n_inputs; i++)
        if (x->turn[i] == OCT_TURN_NONE && inputs[i].past && oct_array_count(&arrays[i]) == 0) {
            oct_fail(err, OCT_EUSAGE, "--generate: no output of the model is seen to continue the cache '%s'",
                     inputs[i].name);
            oct_hint(err, "--state OUT=%s names the output; a cache that stays may come with the samples",
                     inputs[i].name);
            return OCT_EUSAGE;
        }
    return OCT_OK;
}

static oct_status keep_prompt(oct_generator *x, const oct_array *arrays, const char *name, oct_err *err)
{
    prompt *p = &x->prompts[x->n++];
    int64_t length;
    const size_t size = strlen(name) + 1;
    OCT_TRY(length_of(x, arrays, &length, err));
    *p = (prompt){ oct_alloc(size), oct_calloc(x->n_inputs + 1, sizeof *p->arrays) };
    if (!p->name || !p->arrays)
        return oct_nomem(err);
    memcpy(p->name, name, size);
    for (size_t i = 0; i < x->n_inputs; i++) {
        const oct_array *a = &arrays[i];
        oct_array *to = &p->arrays[i];
        if (is_along(x, i))
            OCT_TRY(columns(a, 0, length, to, err));
        else
            OCT_TRY(oct_array_create(to, a->dtype, a->rank, a->dims, err));
        if (!is_along(x, i) && a->bytes)
            memcpy(to->data, a->data, a->bytes);
        x->bytes += to->bytes;
    }
    if (x->bytes <= MOST_BYTES)
        return OCT_OK;
    oct_fail(err, OCT_EMALFORMED, "--generate: more than %d MB of prompts", MOST_BYTES >> 20);
    oct_hint(err, "--samples N takes N of them");
    return OCT_EMALFORMED;
}

static oct_status read_prompts(oct_generator *x, oct_source *src, const oct_input_desc *inputs, oct_err *err)
{
    oct_batch b = OCT_BATCH_INIT;
    oct_status s;
    while ((s = oct_source_next(src, 1, &b, err)) == OCT_OK && b.n) {
        if (x->n == x->room) {
            const size_t room = x->room ? 2 * x->room : 64;
            prompt *more = oct_realloc(x->prompts, x->room * sizeof *more, room * sizeof *more);
            if (!more) {
                s = oct_nomem(err);
                break;
            }
            x->prompts = more;
            x->room = room;
        }
        if ((s = check_prompt(x, b.tensors, inputs, err)) == OCT_OK)
            s = keep_prompt(x, b.tensors, b.names[0], err);
        if (s != OCT_OK) {
            oct_batch_within(&b, err);
            break;
        }
    }
    oct_batch_free(&b);
    return s == OCT_OK && !x->n ? oct_source_none(src, err) : s;
}

/* ---- steps ---- */

static void put(oct_generator *x, size_t i, const oct_array *a)
{
    oct_array_free(&x->now[i]);
    x->now[i] = *a;
}

/* An input for token `at` of the prompt alone, with the cache of those before. */
static oct_status prompt_input(const oct_generator *x, size_t i, int64_t at, oct_array *to, oct_err *err)
{
    const oct_array *a = &x->prompts[x->line].arrays[i];
    return columns(a, x->turn[i] == OCT_TURN_MASK ? 0 : at, x->turn[i] == OCT_TURN_MASK ? at + 1 : 1, to, err);
}

static oct_status start(oct_generator *x, int64_t line, oct_err *err)
{
    x->line = line;
    x->step = 0;
    x->next = -1;
    for (size_t i = 0; i < x->n_inputs; i++) {
        oct_array a = x->prompts[line].arrays[i];
        a.owned = false;
        if (x->single && is_along(x, i)) {
            a = (oct_array){ 0 };
            OCT_TRY(prompt_input(x, i, 0, &a, err));
        }
        put(x, i, &a);
    }
    return OCT_OK;
}

/* The likeliest token, the first of equal ones, after the last position. */
static oct_status likeliest(const oct_generator *x, const oct_operand *t, int64_t *id, oct_err *err)
{
    const char *name = x->g->value[x->g->output[x->logits]].name;
    const int64_t words = t->rank ? t->dims[t->rank - 1] : 0;
    char text[96];
    if (t->rank < 2 || t->rank > 3 || t->count < 1 || t->dims[0] != 1 || !t->data)
        return oct_fail(err, OCT_EMALFORMED, "output '%s' is %s, and scores are [1, tokens, words]", name,
                        oct_dims_text(text, t->rank, t->dims));
    float *v = oct_calloc((size_t)words, sizeof *v);
    size_t bytes;
    if (!v)
        return oct_nomem(err);
    oct_status s =
        oct_dtype_bytes(t->dtype, t->count, &bytes)
            ? oct_array_convert(t->dtype, (const char *)t->data + bytes / (size_t)t->count * (size_t)(t->count - words),
                                OCT_F32, v, (size_t)words, err)
            : oct_nomem(err);
    *id = -1;
    for (int64_t i = 0; s == OCT_OK && i < words; i++)
        if (!isnan(v[i]) && (*id < 0 || v[i] > v[*id]))
            *id = i;
    oct_free(v);
    return s != OCT_OK || *id >= 0 ? s : oct_fail(err, OCT_ENUMERIC, "output '%s' is NaN for every token", name);
}

static oct_status append_one(const oct_array *a, oct_array *to, oct_err *err)
{
    const int64_t one = 1;
    const size_t size = a->bytes / (size_t)a->dims[1];
    OCT_TRY(oct_array_create(to, a->dtype, 2, (int64_t[]){ 1, a->dims[1] + 1 }, err));
    memcpy(to->data, a->data, a->bytes);
    return oct_array_convert(OCT_S64, &one, to->dtype, (char *)to->data + (size_t)a->dims[1] * size, 1, err);
}

static oct_status next_positions(const oct_array *a, oct_array *to, oct_err *err)
{
    OCT_TRY(columns(a, a->dims[a->rank - 1] - 1, 1, to, err));
    const int64_t n = oct_array_count(to);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0;
        char *p = (char *)to->data + (size_t)i * (to->bytes / (size_t)n);
        OCT_TRY(oct_array_convert(to->dtype, p, OCT_S64, &at, 1, err));
        at++;
        OCT_TRY(oct_array_convert(OCT_S64, &at, to->dtype, p, 1, err));
    }
    return OCT_OK;
}

/* The input for the run on the new token. */
static oct_status next_input(const oct_generator *x, size_t i, int64_t id, oct_array *to, oct_err *err)
{
    const oct_array *a = &x->now[i];
    switch (x->turn[i]) {
    case OCT_TURN_IDS:
        OCT_TRY(oct_array_create(to, a->dtype, 2, (int64_t[]){ 1, 1 }, err));
        return oct_array_convert(OCT_S64, &id, to->dtype, to->data, 1, err);
    case OCT_TURN_MASK: return append_one(a, to, err);
    case OCT_TURN_ALONG: return columns(a, a->dims[1] - 1, 1, to, err);
    case OCT_TURN_POSITIONS: return next_positions(a, to, err);
    default: /* OCT_TURN_FLAG */
        OCT_TRY(oct_array_create(to, a->dtype, a->rank, a->dims, err));
        memset(to->data, 1, to->bytes);
        return OCT_OK;
    }
}

/* How many runs read a prompt. */
static int64_t reads_of(const oct_generator *x, int64_t line)
{
    return x->single ? x->prompts[line].arrays[x->ids].dims[1] : 1;
}

/* Runs what stands in `now`, and puts the inputs of the next run there. */
static oct_status advance(oct_generator *x, oct_err *err)
{
    oct_plan *plan;
    int64_t id = -1;
    const bool reads = x->step + 1 < reads_of(x, x->line); /* the next token of the prompt */
    OCT_TRY(oct_runner_run(x->runner, oct_carry_arrays(x->carry, x->now, x->step > 0), &plan, err));
    if (!reads)
        OCT_TRY(likeliest(x, oct_plan_output(plan, x->logits), &id, err));
    OCT_TRY(oct_carry_keep(x->carry, oct_carry_plan, plan, err));
    for (size_t i = 0; i < x->n_inputs; i++) {
        oct_array a = { 0 };
        if (x->turn[i] == OCT_TURN_NONE || x->turn[i] == OCT_TURN_STATE)
            continue;
        const oct_status s =
            reads && is_along(x, i) ? prompt_input(x, i, x->step + 1, &a, err) : next_input(x, i, id, &a, err);
        if (s != OCT_OK) {
            oct_array_free(&a);
            return s;
        }
        put(x, i, &a);
    }
    x->step++;
    x->next = id;
    return OCT_OK;
}

static bool is_end(const oct_generator *x, int64_t id)
{
    for (size_t i = 0; i < x->of.n_end && id >= 0; i++)
        if (x->of.end[i] == id)
            return true;
    return false;
}

/* Makes `now` the inputs of a run of a prompt; stop: no further than the token that ends the text. */
static oct_status advance_to(oct_generator *x, int64_t line, int64_t step, bool stop, oct_err *err)
{
    oct_status s = OCT_OK;
    if (line != x->line || step < x->step)
        s = start(x, line, err);
    while (s == OCT_OK && x->step < step && !(stop && is_end(x, x->next))) {
        const int64_t at = x->step + 1;
        if ((s = advance(x, err)) != OCT_OK)
            oct_within(err, "%s, step %lld", x->prompts[line].name, (long long)at);
    }
    if (s != OCT_OK)
        x->line = -1;
    return s;
}

/* ---- samples ---- */

static size_t input_of(const oct_graph *g, const char *name)
{
    size_t i = 0;
    while (i < g->n_input && strcmp(g->value[g->input[i]].name, name) != 0)
        i++;
    return i;
}

/* The prompt whose run is sample i, and *step: which of its runs. */
static int64_t line_of(const oct_generator *x, int64_t i, int64_t *step)
{
    size_t from = 0, to = x->n - 1;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (x->ends[middle] > i)
            to = middle;
        else
            from = middle + 1;
    }
    *step = i - (from ? x->ends[from - 1] : 0);
    return (int64_t)from;
}

static oct_status get(void *arg, int64_t i, const oct_input_desc *inputs, size_t n, oct_array *array, oct_err *err)
{
    oct_generator *x = arg;
    int64_t step;
    const int64_t line = line_of(x, i, &step);
    OCT_TRY(advance_to(x, line, step, false, err));
    const oct_array *now = oct_carry_arrays(x->carry, x->now, step > 0);
    for (size_t k = 0; k < n; k++) {
        array[k] = now[input_of(x->g, inputs[k].name)];
        array[k].owned = false;
    }
    return OCT_OK;
}

static char *name_of(void *arg, int64_t i)
{
    enum { NUMBER = 24 };
    const oct_generator *x = arg;
    int64_t step;
    const char *text = x->prompts[line_of(x, i, &step)].name;
    const size_t size = strlen(text) + NUMBER;
    char *name = oct_alloc(size);
    if (name && step)
        snprintf(name, size, "%s+%lld", text, (long long)step);
    else if (name)
        snprintf(name, size, "%s", text);
    return name;
}

static char *copy(const char *text)
{
    char *to = oct_alloc(strlen(text) + 1);
    return to ? strcpy(to, text) : NULL;
}

/* How many runs each prompt has. */
static oct_status measure(oct_generator *x, oct_err *err)
{
    int64_t all = 0;
    if (!(x->ends = oct_calloc(x->n, sizeof *x->ends)))
        return oct_nomem(err);
    for (size_t k = 0; k < x->n; k++) {
        int64_t n = reads_of(x, (int64_t)k) + x->of.tokens;
        if (x->of.n_end) {
            OCT_TRY(advance_to(x, (int64_t)k, n - 1, true, err));
            const bool ended = is_end(x, x->next);
            n = ended ? x->step : n;
            x->ended += ended;
        }
        if (__builtin_add_overflow(all, n, &all))
            return oct_fail(err, OCT_EUSAGE, "--generate: too many tokens");
        x->ends[k] = all;
    }
    return OCT_OK;
}

static oct_status create(oct_generator *x, const oct_graph *g, const oct_state *states, size_t n, oct_source *prompts,
                         const oct_input_desc *inputs, oct_err *err)
{
    if (n == 0) {
        oct_fail(err, OCT_EUSAGE, "--generate: no output of the model is seen to continue a cache among its inputs");
        oct_hint(err, "names such as present.0.key and past_key_values.0.key tell; --state OUT=IN names others");
        return OCT_EUSAGE;
    }
    OCT_TRY(oct_graph_clone(g, &x->g, err));
    x->turn = oct_calloc(x->n_inputs + 1, sizeof *x->turn);
    x->now = oct_calloc(x->n_inputs + 1, sizeof *x->now);
    x->preprocess = copy(oct_source_preprocess(prompts));
    x->words = copy(oct_source_preprocess_words(prompts));
    if (!x->turn || !x->now || !x->preprocess || !x->words)
        return oct_nomem(err);
    OCT_TRY(find_inputs(x, states, n, err));
    OCT_TRY(find_logits(x, states, n, err));
    OCT_TRY(oct_carry_create(states, n, x->n_inputs, &x->carry, err));
    OCT_TRY(oct_runner_create(x->g, &(oct_plan_opts){ .no_passes = true }, NULL, 0, &x->runner, err));
    return read_prompts(x, prompts, inputs, err);
}

oct_status oct_generator_create(const oct_graph *g, const oct_state *states, size_t n_states, oct_source *prompts,
                                const oct_input_desc *inputs, size_t n_inputs, const oct_generate_options *o,
                                oct_generator **out, oct_err *err)
{
    *out = NULL;
    oct_generator *x = oct_calloc(1, sizeof *x);
    if (!x)
        return oct_nomem(err);
    *x = (oct_generator){ .n_inputs = n_inputs, .of = *o, .line = -1 };
    oct_status s = create(x, g, states, n_states, prompts, inputs, err);
    if (s == OCT_OK)
        s = measure(x, err);
    if (s != OCT_OK) {
        oct_generator_destroy(x);
        return s;
    }
    x->samples =
        (oct_given_samples){ .get = get,
                             .arg = x,
                             .count = x->ends[x->n - 1],
                             .whole = true,
                             .ends = x->ends,
                             .n_groups = (int64_t)x->n,
                             .name = name_of,
                             .preprocess = x->preprocess,
                             .words = x->words,
                             .stamp = oct_hash(oct_source_list_hash(prompts), o->end, o->n_end * sizeof *o->end) };
    x->of = (oct_generate_options){ 0 };
    *out = x;
    return OCT_OK;
}

void oct_generator_destroy(void *generator)
{
    oct_generator *x = generator;
    if (!x)
        return;
    for (size_t k = 0; k < x->n; k++) {
        for (size_t i = 0; x->prompts[k].arrays && i < x->n_inputs; i++)
            oct_array_free(&x->prompts[k].arrays[i]);
        oct_free(x->prompts[k].arrays);
        oct_free(x->prompts[k].name);
    }
    oct_free(x->prompts);
    oct_free(x->ends);
    for (size_t i = 0; x->now && i < x->n_inputs; i++)
        oct_array_free(&x->now[i]);
    oct_free(x->now);
    oct_free(x->turn);
    oct_free(x->preprocess);
    oct_free(x->words);
    oct_runner_destroy(x->runner);
    oct_carry_destroy(x->carry);
    oct_graph_destroy(x->g);
    oct_free(x);
}

const oct_given_samples *oct_generator_samples(const oct_generator *x)
{
    return &x->samples;
}

int64_t oct_generator_prompts(const oct_generator *x, int64_t *ended)
{
    *ended = x->ended;
    return (int64_t)x->n;
}
