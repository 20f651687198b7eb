/* Opens the samples of a command line. */
#include "common/common.h"

#include "base/mem.h"
#include "cli/textfmt.h"
#include "passes/input_pixels.h"
#include "runtime/runner.h"

#include <math.h>
#include <string.h>

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

static oct_status check_state(const oct_graph *g, const tool_data *d, const oct_state *s, oct_err *err)
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

oct_status tool_read_states(const oct_graph *g, tool_data *d, oct_err *err)
{
    d->n_state = 0;
    if (d->states.n > TOOL_STATES)
        return oct_fail(err, OCT_EUSAGE, "more than %d states", TOOL_STATES);
    for (size_t i = 0; i < d->states.n; i++) {
        oct_state s;
        if (!read_state(g, d->states.v[i], &s)) {
            oct_fail(err, OCT_EUSAGE,
                     "--state %s: this is not an output and an input of the model, joined by =", d->states.v[i]);
            if (g->n_output && g->n_input)
                oct_hint(err, "its first output is '%s', its last input '%s'", g->value[g->output[0]].name,
                         g->value[g->input[g->n_input - 1]].name);
            return OCT_EUSAGE;
        }
        OCT_TRY(check_state(g, d, &s, err));
        d->state[d->n_state++] = s;
    }
    return OCT_OK;
}

oct_status tool_open_inputs(const oct_input_desc *in, size_t n, const tool_data *d, int threads, oct_source **src,
                            oct_err *err)
{
    const char *states[TOOL_STATES];
    for (size_t i = 0; i < d->n_state; i++)
        states[i] = in[d->state[i].input].name;
    oct_source_options o = { .states = states,
                             .n_states = d->n_state,
                             .specs = d->specs.v,
                             .n_specs = d->specs.n,
                             .preprocess = d->preprocess.v,
                             .n_preprocess = d->preprocess.n,
                             .inputs = in,
                             .n_inputs = n,
                             .labels = d->labels,
                             .skip_bad = d->skip_bad,
                             .samples = d->samples,
                             .first = d->first,
                             .seed = (uint64_t)d->seed,
                             .hold = d->hold,
                             .shard_i = d->shard_i,
                             .shard_n = d->shard_n,
                             .threads = threads,
                             .synthetic = d->synthetic };
    return oct_source_open(&o, src, err);
}

oct_status tool_open_data(const oct_graph *g, const tool_data *asked, int threads, oct_source **src, oct_err *err)
{
    tool_data read = *asked, *d = &read;
    OCT_TRY(tool_read_states(g, d, err));
    oct_arena *a = oct_arena_create();
    oct_input_desc *in;
    size_t n;
    oct_status s = a ? oct_inputs_describe(&g, 1, a, &in, &n, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = tool_open_inputs(in, n, d, threads, src, err);
    if (s == OCT_OK && d->n_state && (s = oct_follow(*src, g, d->state, d->n_state, err)) != OCT_OK) {
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

static void warn_of_input(oct_cli *cli, const oct_graph *g, int input, const oct_steps *s)
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
        oct_cli_warn(
            cli,
            "the model scales the pixels of input '%s' itself and takes %g to %g, but --preprocess makes %.4g to %.4g of them before: %s, or they are scaled twice",
            g->value[input].name, least[p], most[p], lo, hi, remedy[p]);
}

void tool_warn_pixels(oct_cli *cli, const oct_graph *g, const oct_cli_list *preprocess)
{
    oct_steps *steps = oct_calloc(g->n_input + 1, sizeof *steps);
    const char **names = oct_calloc(g->n_input + 1, sizeof *names);
    oct_err err = OCT_ERR_INIT;
    bool good = steps && names;
    for (size_t i = 0; i < g->n_input && good; i++)
        names[i] = g->value[g->input[i]].name;
    for (size_t i = 0; i < preprocess->n && good; i++)
        good = oct_steps_parse(preprocess->v[i], names, g->n_input, steps, &err) == OCT_OK;
    for (size_t i = 0; i < g->n_input && good; i++)
        warn_of_input(cli, g, g->input[i], &steps[i]);
    oct_free(steps);
    oct_free(names);
}

void tool_say_samples(oct_cli *cli, const oct_source *src)
{
    const oct_source_choice c = oct_source_chosen(src);
    const long long asked = (long long)c.asked, total = (long long)c.total, chosen = (long long)c.chosen;
    char bytes[32];
    if (c.asked && c.total >= 0 && c.total < c.asked)
        oct_cli_note(cli, 0, "samples: there are %lld, not %lld", total, asked);
    if (c.how == OCT_CHOICE_FIRST && c.total < 0)
        oct_cli_note(cli, 0, "samples: the first %lld", asked);
    else if (c.how == OCT_CHOICE_FIRST && c.chosen < c.total)
        oct_cli_note(cli, 0, "samples: the first %lld of %lld", chosen, total);
    else if (c.how == OCT_CHOICE_SPREAD && c.chosen < c.total)
        oct_cli_note(cli, 0, "samples: %lld of %lld, spread over all", chosen, total);
    else if (c.how == OCT_CHOICE_STREAM && c.chosen < c.total)
        oct_cli_note(cli, 0, "samples: %lld of the stream's %lld, by hashes of their places (%s kept in memory)",
                     chosen, total, oct_fmt_bytes(bytes, c.stored));
    if (c.how == OCT_CHOICE_STREAM && c.chosen < c.asked && c.chosen + c.aside < c.total)
        oct_cli_warn(cli, "only %lld of the %lld samples asked for fit in memory; --first takes any number of a stream",
                     chosen, asked);
}

void tool_say_bad(oct_cli *cli, const oct_source *src)
{
    int64_t n = oct_source_bad_count(src);
    const char *where, *left;
    for (size_t i = 0; (left = oct_source_left_out(src, i, &where)); i++)
        oct_cli_warn(cli, "%s: %s", where, left);
    if (n == 0)
        return;
    oct_cli_warn(cli, "%lld broken sample%s left out", (long long)n, n == 1 ? " was" : "s were");
    const char *text;
    for (size_t i = 0; (text = oct_source_bad_text(src, i)) && (i < 5 || cli->verbose); i++)
        oct_cli_note(cli, 0, "  %s", text);
}

/* ---- how results are judged ---- */

const char *tool_rule_file(const char *decode)
{
    return decode && strchr(decode, '/') ? decode : NULL;
}

oct_status tool_open_judging(const char *decode, const char *truth, oct_decode **rule, oct_truth **t, oct_err *err)
{
    if (decode)
        OCT_TRY(oct_decode_open(decode, rule, err));
    return truth ? oct_truth_open(truth, t, err) : OCT_OK;
}
