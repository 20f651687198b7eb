/* Opens samples, and says of them what is to be known. */
#include "api/samples_int.h"

#include "api/beside.h"
#include "base/io.h"
#include "base/json_tree.h"
#include "base/mem.h"
#include "base/number_text.h"
#include "data/readers/readers.h"
#include "eval/run/decoder_inputs.h"
#include "eval/run/generate.h"
#include "passes/input_pixels.h"
#include "runtime/runner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

oct_status oct_samples_check(const octet_samples *s, oct_err *err)
{
    if (s->samples < 0 || s->count < 0)
        return oct_fail(err, OCT_EUSAGE, "a number of samples is below 0");
    if (s->get && s->data.n)
        return oct_fail(err, OCT_EUSAGE, "samples are given twice: as data, and by a function");
    if (s->generate < 0 || s->generate > OCT_GENERATE_MOST)
        return oct_fail(err, OCT_EUSAGE, "%lld tokens to generate: not between 0 and %d", (long long)s->generate,
                        OCT_GENERATE_MOST);
    if (s->generate && (s->skip_bad || s->labels))
        return oct_fail(err, OCT_EUSAGE, "samples that a decoder generates have no %s",
                        s->labels ? "labels" : "broken ones to leave out");
    return OCT_OK;
}

/* ---- states ---- */

/* The value with that name among n values; -1: there is none. */
static int find_value(const oct_graph *g, const int *values, size_t n, const char *name, size_t length)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(g->value[values[i]].name) == length && memcmp(g->value[values[i]].name, name, length) == 0)
            return (int)i;
    return -1;
}

/* "OUT=IN", or the other way round if only that is possible. Names may contain '=' as well. */
static bool read_state(const oct_graph *g, const char *text, oct_state *s)
{
    for (int turned = 0; turned < 2; turned++)
        for (const char *eq = strchr(text, '='); eq; eq = strchr(eq + 1, '=')) {
            const size_t left = (size_t)(eq - text), right = strlen(eq + 1);
            const int out = find_value(g, g->output, g->n_output, turned ? eq + 1 : text, turned ? right : left);
            const int in = find_value(g, g->input, g->n_input, turned ? text : eq + 1, turned ? left : right);
            if (out < 0 || in < 0)
                continue;
            *s = (oct_state){ (size_t)in, (size_t)out };
            return true;
        }
    return false;
}

static oct_status check_state(const oct_graph *g, oct_samples *d, const oct_state *s, oct_err *err)
{
    const oct_value *out = &g->value[g->output[s->output]], *in = &g->value[g->input[s->input]];
    for (size_t k = 0; k < d->n_state; k++)
        if (d->state[k].input == s->input)
            return oct_fail(err, OCT_EUSAGE, "--state: input '%s' is given twice", in->name);
    if (in->dtype != out->dtype && out->dtype != OCT_UNDEFINED)
        return oct_fail(err, OCT_EUSAGE, "--state: output '%s' is %s, input '%s' is %s", out->name,
                        oct_dtype_name(out->dtype), in->name, oct_dtype_name(in->dtype));
    if (in->shape.rank >= 0 && out->shape.rank >= 0 && in->shape.rank != out->shape.rank)
        return oct_fail(err, OCT_EUSAGE, "--state: output '%s' has %d dimensions, input '%s' has %d", out->name,
                        out->shape.rank, in->name, in->shape.rank);
    return OCT_OK;
}

oct_status oct_samples_read_states(const oct_graph *g, oct_samples *d, oct_err *err)
{
    d->n_state = 0;
    if (d->of.states.n > OCT_STATES_MAX)
        return oct_fail(err, OCT_EUSAGE, "more than %d states", OCT_STATES_MAX);
    for (size_t i = 0; i < d->of.states.n; i++) {
        oct_state s;
        if (!read_state(g, d->of.states.v[i], &s)) {
            oct_fail(err, OCT_EUSAGE,
                     "--state %s: this is not an output and an input of the model, joined by =", d->of.states.v[i]);
            if (g->n_output && g->n_input)
                oct_hint(err, "its first output is '%s', its last input '%s'", g->value[g->output[0]].name,
                         g->value[g->input[g->n_input - 1]].name);
            return OCT_EUSAGE;
        }
        OCT_TRY(check_state(g, d, &s, err));
        d->state[d->n_state++] = s;
    }
    return d->of.generate ? oct_cache_pairs(g, d->state, OCT_STATES_MAX, &d->n_state, err) : OCT_OK;
}

/* ---- opening ---- */

/* How many texts are read: those that calibrate, and a fifth besides that judges. 0: all. */
static int64_t texts_of(const oct_samples *d)
{
    const int64_t n = d->of.samples;
    return d->of.generate && d->hold && n < INT64_MAX / 2 ? n + (n + 3) / 4 : n;
}

/* What the first line of a file that is not blank holds: -1: it is no file of lines; 0: token ids, or values; 1: a
 * text, alone or as a member of a JSON object. */
static int holds_texts(const char *spec)
{
    const bool plain = oct_has_suffix(spec, ".txt");
    oct_map m;
    int is = -1;
    if ((!plain && !oct_has_suffix(spec, ".jsonl") && !oct_has_suffix(spec, ".ndjson")) || oct_path_is_stream(spec) ||
        oct_map_open(&m, spec, NULL) != OCT_OK)
        return -1;
    const char *t = (const char *)m.data, *end = t + m.size;
    for (; t < end && strchr(" \t\r\n", *t) && *t; t++)
        ;
    const char *stop = t < end ? memchr(t, '\n', (size_t)(end - t)) : NULL;
    const size_t n = (size_t)((stop ? stop : end) - t);
    oct_tree *root = NULL;
    oct_err ignored = OCT_ERR_INIT;
    if (n && *t == '{' && oct_tree_parse(t, n, "", &root, &ignored) == OCT_OK)
        is = oct_tree_text(oct_tree_member(root, "text")) != NULL;
    else if (n && plain)
        for (size_t i = is = 0; i < n && !is; i++)
            is = !t[i] || !strchr("0123456789 \t\r,[]", t[i]);
    oct_tree_free(root);
    oct_map_close(&m);
    return is;
}

/* Takes the tokenizer beside the model for texts, where the steps name none and no file of lines holds ids. */
static oct_status find_tokenizer(oct_samples *d, oct_err *err)
{
    int texts = 0;
    const char *path = NULL;
    d->tokenizer[0] = 0;
    for (size_t i = 0; i < d->of.preprocess.n; i++)
        if (strstr(d->of.preprocess.v[i], "tokenizer="))
            return OCT_OK;
    for (size_t i = 0; i < d->of.data.n; i++) {
        const int is = holds_texts(d->of.data.v[i]);
        if (is == 0)
            return OCT_OK;
        texts += is > 0;
    }
    oct_arena *a = texts ? oct_arena_create() : NULL;
    const oct_status s = !texts ? OCT_OK : a ? oct_beside_tokenizer(d->model, a, &path, err) : oct_nomem(err);
    if (path && strlen(path) < sizeof d->tokenizer && !strchr(path, ':')) /* as a step can name it */
        strcpy(d->tokenizer, path);
    oct_arena_destroy(a);
    return s;
}

/* The samples as they are asked for; tokens are generated after them later. */
static oct_status open_given(const oct_input_desc *in, size_t n, oct_samples *d, int threads, oct_source **src,
                             oct_err *err)
{
    const char *states[OCT_STATES_MAX];
    for (size_t i = 0; i < d->n_state; i++)
        states[i] = in[d->state[i].input].name;
    char step[sizeof d->tokenizer + 16];
    const char **steps = oct_calloc(d->of.preprocess.n + 1, sizeof *steps);
    oct_status s = steps ? find_tokenizer(d, err) : oct_nomem(err);
    for (size_t i = 0; i < d->of.preprocess.n && s == OCT_OK; i++)
        steps[i] = d->of.preprocess.v[i];
    if (s == OCT_OK && *d->tokenizer) {
        snprintf(step, sizeof step, "tokenizer=%s", d->tokenizer);
        steps[d->of.preprocess.n] = step;
    }
    oct_source_options o = { .states = states,
                             .n_states = d->n_state,
                             .specs = d->of.data.v,
                             .n_specs = d->of.data.n,
                             .preprocess = steps,
                             .n_preprocess = d->of.preprocess.n + (*d->tokenizer != 0),
                             .inputs = in,
                             .n_inputs = n,
                             .labels = d->of.labels,
                             .skip_bad = d->of.skip_bad,
                             .samples = texts_of(d),
                             .first = d->of.first,
                             .seed = d->of.seed < 0 ? 0 : (uint64_t)d->of.seed,
                             .hold = d->hold && !d->of.generate,
                             .shard_i = d->of.generate ? 0 : d->shard_i,
                             .shard_n = d->of.generate ? 0 : d->shard_n,
                             .threads = threads,
                             .synthetic = d->synthetic,
                             .given = d->of.get ? d->given : NULL };
    if (s == OCT_OK)
        s = oct_source_open(&o, src, err);
    oct_free(steps);
    return s;
}

/* Lets prompts be longer than the step of one token that a decoder takes: it reads them token by token. dims: [n], room
 * for the dimensions that change. */
static void free_lengths(const oct_graph *g, const oct_samples *d, oct_input_turn *turn, oct_input_desc *in,
                         int64_t (*dims)[OCT_ARRAY_RANK], size_t n)
{
    size_t ids = 0;
    if (oct_decoder_inputs(g, d->state, d->n_state, turn, &ids) != 1 || in[ids].rank != 2 || in[ids].dims[1] != 1)
        return;
    for (size_t i = 0; i < n; i++) {
        const int last = in[i].rank - 1;
        const bool along = turn[i] == OCT_TURN_IDS || turn[i] == OCT_TURN_MASK || turn[i] == OCT_TURN_ALONG ||
                           turn[i] == OCT_TURN_POSITIONS;
        if (!along || last < 0 || last >= OCT_ARRAY_RANK || in[i].dims[last] != 1)
            continue;
        memcpy(dims[i], in[i].dims, (size_t)in[i].rank * sizeof **dims);
        dims[i][last] = -1;
        in[i].dims = dims[i];
    }
}

static oct_status open_prompts(const oct_graph *g, const oct_input_desc *in, size_t n, oct_samples *d, int threads,
                               oct_source **src, oct_err *err)
{
    oct_input_desc *open = oct_calloc(n + 1, sizeof *open);
    oct_input_turn *turn = oct_calloc(n + 1, sizeof *turn);
    int64_t(*dims)[OCT_ARRAY_RANK] = oct_calloc(n + 1, sizeof *dims);
    oct_status s = open && turn && dims ? OCT_OK : oct_nomem(err);
    if (s == OCT_OK) {
        memcpy(open, in, n * sizeof *open);
        free_lengths(g, d, turn, open, dims, n);
        s = open_given(open, n, d, threads, src, err);
    }
    oct_free(open);
    oct_free(turn);
    oct_free(dims);
    return s;
}

static oct_status create_generator(const oct_graph *g, const oct_input_desc *in, size_t n, oct_samples *d,
                                   oct_source *prompts, oct_generator **x, oct_err *err)
{
    oct_text_ends ends = { 0 };
    oct_arena *a = oct_arena_create();
    oct_status s = a ? oct_beside_ends(d->model, a, &ends, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = oct_generator_create(g, d->state, d->n_state, prompts, in, n,
                                 &(oct_generate_options){ d->of.generate, ends.id, ends.n }, x, err);
    oct_arena_destroy(a);
    if (s != OCT_OK)
        return s;
    d->made_of.file = ends.file;
    d->made_of.texts = oct_generator_prompts(*x, &d->made_of.ended);
    return OCT_OK;
}

/* The samples that the decoder makes of prompts. */
static oct_status open_generated(const oct_graph *g, const oct_input_desc *in, size_t n, oct_samples *d, int threads,
                                 oct_source *prompts, oct_source **src, oct_err *err)
{
    oct_generator *x;
    const char *states[OCT_STATES_MAX];
    OCT_TRY(create_generator(g, in, n, d, prompts, &x, err));
    for (size_t i = 0; i < d->n_state; i++)
        states[i] = in[d->state[i].input].name;
    const oct_source_options o = { .states = states,
                                   .n_states = d->n_state,
                                   .samples = d->of.samples,
                                   .first = d->of.first,
                                   .seed = d->of.seed < 0 ? 0 : (uint64_t)d->of.seed,
                                   .inputs = in,
                                   .n_inputs = n,
                                   .hold = d->hold,
                                   .shard_i = d->shard_i,
                                   .shard_n = d->shard_n,
                                   .threads = threads,
                                   .given = oct_generator_samples(x) };
    const oct_status s = oct_source_open(&o, src, err);
    if (s == OCT_OK)
        oct_source_set_visit(*src, NULL, oct_generator_destroy, x);
    else
        oct_generator_destroy(x);
    return s;
}

oct_status oct_samples_open_inputs(const oct_graph *g, const oct_input_desc *in, size_t n, oct_samples *d, int threads,
                                   oct_source **src, oct_err *err)
{
    oct_source *prompts = NULL;
    if (!d->of.generate)
        return open_given(in, n, d, threads, src, err);
    OCT_TRY(open_prompts(g, in, n, d, threads, &prompts, err));
    const oct_status s = open_generated(g, in, n, d, threads, prompts, src, err);
    oct_source_close(prompts);
    return s;
}

oct_status oct_samples_open(const oct_graph *g, oct_samples *d, int threads, oct_source **src, oct_err *err)
{
    OCT_TRY(oct_samples_read_states(g, d, err));
    oct_arena *a = oct_arena_create();
    oct_input_desc *in;
    size_t n;
    oct_status s = a ? oct_inputs_describe(&g, 1, a, &in, &n, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = oct_samples_open_inputs(g, in, n, d, threads, src, err);
    if (s == OCT_OK && d->n_state && !d->of.generate &&
        (s = oct_follow(*src, g, d->state, d->n_state, in, err)) != OCT_OK) {
        oct_source_close(*src);
        *src = NULL;
    }
    oct_arena_destroy(a);
    return s;
}

/* ---- pixels that the model scales itself ---- */

/* The least and the largest number that the steps make of pixels. */
static void range_of(const oct_steps *s, double *lo, double *hi)
{
    *lo = INFINITY;
    *hi = -INFINITY;
    for (int c = 0; c == 0 || c < s->n_mean || c < s->n_std; c++) {
        const double mean = s->n_mean ? (double)s->mean[s->n_mean > 1 ? c : 0] : 0,
                     std = s->n_std ? (double)s->std[s->n_std > 1 ? c : 0] : 1;
        *lo = fmin(*lo, -mean / std);
        *hi = fmax(*hi, (255 - mean) / std);
    }
}

static void warn_of_input(oct_voice v, const oct_graph *g, int input, const oct_steps *s)
{
    static const double least[] = { [OCT_PIXELS_BYTES] = 0, [OCT_PIXELS_UNIT] = 0, [OCT_PIXELS_SIGNED] = -1 },
                        most[] = { [OCT_PIXELS_BYTES] = 255, [OCT_PIXELS_UNIT] = 1, [OCT_PIXELS_SIGNED] = 1 };
    static const char *const remedy[] = { [OCT_PIXELS_BYTES] = "leave out mean and std",
                                          [OCT_PIXELS_UNIT] = "give mean=0:std=255",
                                          [OCT_PIXELS_SIGNED] = "give mean=127.5:std=127.5" };
    enum { PICTURE = 4 };
    double lo, hi;
    const oct_pixels p = g->value[input].shape.rank == PICTURE && s->n_mean + s->n_std && !oct_steps_of_sound(s)
                             ? oct_input_pixels(g, input)
                             : OCT_PIXELS_UNKNOWN;
    if (p == OCT_PIXELS_UNKNOWN)
        return;
    range_of(s, &lo, &hi);
    const double near = 0.1 * (most[p] - least[p]);
    if (!(fabs(lo - least[p]) <= near && fabs(hi - most[p]) <= near))
        oct_say(
            v, OCT_NOTE_WARNING,
            "the model scales the pixels of input '%s' itself and takes %g to %g, but --preprocess makes %.4g to %.4g of them before: %s, or they are scaled twice",
            g->value[input].name, least[p], most[p], lo, hi, remedy[p]);
}

void oct_samples_warn_pixels(oct_voice v, const oct_graph *g, octet_texts preprocess)
{
    oct_steps *steps = oct_calloc(g->n_input + 1, sizeof *steps);
    const char **names = oct_calloc(g->n_input + 1, sizeof *names);
    oct_err err = OCT_ERR_INIT;
    bool good = steps && names;
    for (size_t i = 0; i < g->n_input && good; i++)
        names[i] = g->value[g->input[i]].name;
    for (size_t i = 0; i < preprocess.n && good; i++)
        good = oct_steps_parse(preprocess.v[i], names, g->n_input, steps, &err) == OCT_OK;
    for (size_t i = 0; i < g->n_input && good; i++)
        warn_of_input(v, g, g->input[i], &steps[i]);
    oct_free(steps);
    oct_free(names);
}

void oct_samples_warn_incomplete(oct_voice v, const char *path, const oct_calib *c)
{
    oct_buf missing = OCT_BUF_INIT;
    if (oct_calib_missing(c, &missing))
        oct_say(v, OCT_NOTE_WARNING, "%s is made from part of its samples: it lacks %s", path, oct_buf_str(&missing));
    oct_buf_free(&missing);
}

void oct_samples_say_chosen(oct_voice v, const oct_source *src)
{
    const oct_source_choice c = oct_source_chosen(src);
    const long long asked = (long long)c.asked, total = (long long)c.total, chosen = (long long)c.chosen;
    char bytes[32];
    if (c.asked && c.total >= 0 && c.total < c.asked)
        oct_say(v, 0, "samples: there are %lld, not %lld", total, asked);
    if (c.how == OCT_CHOICE_FIRST && c.total < 0)
        oct_say(v, 0, "samples: the first %lld", asked);
    else if (c.how == OCT_CHOICE_FIRST && c.chosen < c.total)
        oct_say(v, 0, "samples: the first %lld of %lld", chosen, total);
    else if (c.how == OCT_CHOICE_SPREAD && c.chosen < c.total)
        oct_say(v, 0, "samples: %lld of %lld, spread over all", chosen, total);
    else if (c.how == OCT_CHOICE_STREAM && c.chosen < c.total)
        oct_say(v, 0, "samples: %lld of the stream's %lld, by hashes of their places (%s kept in memory)", chosen,
                total, oct_fmt_bytes(bytes, c.stored));
    if (c.how == OCT_CHOICE_STREAM && c.chosen < c.asked && c.chosen + c.aside < c.total)
        oct_say(v, OCT_NOTE_WARNING,
                "only %lld of the %lld samples asked for fit in memory; --first takes any number of a stream", chosen,
                asked);
}

void oct_samples_say_beside(oct_voice v, const oct_samples *s)
{
    const oct_generated *x = &s->made_of;
    if (*s->tokenizer)
        oct_say(v, 0, "samples: texts become token ids by %s, as no tokenizer is given", s->tokenizer);
    if (s->of.generate && x->file)
        oct_say(v, 0, "samples: %lld of %lld texts end before %lld more token%s, by the eos_token_id of %s",
                (long long)x->ended, (long long)x->texts, (long long)s->of.generate, s->of.generate == 1 ? "" : "s",
                x->file);
}

void oct_samples_put_generated(oct_json *j, const oct_samples *s)
{
    if (!s->of.generate)
        return;
    oct_json_open(j, "generated", '{');
    oct_json_int(j, "texts", s->made_of.texts);
    oct_json_int(j, "ended_early", s->made_of.ended);
    oct_json_str(j, "ended_by", s->made_of.file);
    oct_json_close(j);
}

static void say_empty(oct_voice v, const oct_source *src)
{
    const char *name;
    const size_t n = oct_source_empty_caches(src, &name);
    if (n > 1)
        oct_say(v, 0, "samples: %zu caches such as '%s' are empty, as nothing was given for them", n, name);
    else if (n)
        oct_say(v, 0, "samples: the cache '%s' is empty, as nothing was given for it", name);
}

static void say_made(oct_voice v, const oct_source *src)
{
    char text[512] = "";
    const char *name, *contents;
    size_t n = 0;
    for (size_t i = 0; (name = oct_source_made(src, i, &contents)) && n + 80 < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%.60s (%s)", i ? ", " : "", name, contents);
    if (n)
        oct_say(v, 0,
                "samples: nothing was given for %s, made for the token ids; padded tokens need a mask or 'lengths'",
                text);
}

static void say_turned(oct_voice v, const oct_source *src)
{
    const char *form, *name = oct_source_turned(src, &form);
    if (name)
        oct_say(v, 0, "samples: by their shapes these arrays are %s, so they were turned for input '%s'", form, name);
}

static void say_other_name(oct_voice v, const oct_source *src)
{
    const char *where, *input, *name = oct_source_other_name(src, &where, &input);
    if (name)
        oct_say(v, 0, "%s: array '%s' is read as the input '%s', the only one", where, name, input);
}

void oct_samples_say_bad(oct_voice v, const oct_source *src)
{
    const int64_t n = oct_source_bad_count(src);
    if (n == 0)
        return;
    oct_say(v, OCT_NOTE_WARNING, "%lld broken sample%s left out", (long long)n, n == 1 ? " was" : "s were");
    const char *text;
    for (size_t i = 0; (text = oct_source_bad_text(src, i)) && i < 100; i++)
        oct_say(v, i < 5 ? 0 : 1, "  %s", text);
}

void oct_samples_say_taken(oct_voice v, const oct_source *src)
{
    const char *where, *left;
    say_empty(v, src);
    say_made(v, src);
    say_turned(v, src);
    say_other_name(v, src);
    for (size_t i = 0; (left = oct_source_left_out(src, i, &where)); i++)
        oct_say(v, OCT_NOTE_WARNING, "%s: %s", where, left);
    oct_samples_say_bad(v, src);
}

/* ---- how results are judged ---- */

const char *oct_rule_file(const char *decode)
{
    return decode && strchr(decode, '/') ? decode : NULL;
}

oct_status oct_judging_open(const char *decode, const char *truth, oct_decode **rule, oct_truth **t, oct_err *err)
{
    if (decode)
        OCT_TRY(oct_decode_open(decode, rule, err));
    const int points = decode && (*rule)->box.keypoints.given ? (*rule)->box.point_size : 0;
    return truth ? oct_truth_open(truth, points, t, err) : OCT_OK;
}
