/* What the model tells of its samples and outputs, as questions and commands: how pixels are prepared, which rule finds
 * boxes, and how tokens are judged. All of it is a guess. */
#include "api/convert/session_guess.h"

#include "api/answer.h"
#include "eval/sets/judging.h"

#include <stdio.h>
#include <string.h>

/* The built-in rules for boxes that the outputs fit. */
static size_t guess_rules(const oct_graph *g, const char *rule[OCT_GUESSES])
{
    enum { MOST_OUTPUTS = 32 };
    oct_set_tensor out[MOST_OUTPUTS];
    int64_t dims[MOST_OUTPUTS][OCT_MAX_RANK];
    size_t n = 0;
    for (size_t i = 0; i < g->n_output && n < MOST_OUTPUTS; i++) {
        const oct_value *v = &g->value[g->output[i]];
        if (v->shape.rank < 2)
            continue;
        for (int k = 1; k < v->shape.rank; k++) /* without the batch */
            dims[n][k - 1] = v->shape.d[k].n > 0 ? v->shape.d[k].n : -1;
        out[n] = (oct_set_tensor){ .name = v->name, .rank = v->shape.rank - 1, .dims = dims[n] };
        n++;
    }
    return oct_rule_guess(out, n, rule);
}

/* Boxes in pixels, or in cells of them, are of pictures that kept their proportions; those in shares of the input (as
 * of SSD) are of pictures that were stretched. */
static bool keeps_proportions(const oct_graph *g)
{
    const char *rule[OCT_GUESSES];
    const size_t n = guess_rules(g, rule);
    bool keeps = n > 0;
    for (size_t i = 0; i < n; i++) {
        oct_decode *r = NULL;
        keeps &= oct_decode_open(rule[i], &r, NULL) == OCT_OK && r->box.unit != OCT_UNIT_INPUT;
        oct_decode_close(r);
    }
    return keeps;
}

bool oct_guess_picture(const oct_graph *g, oct_picture *p)
{
    int64_t d[4];
    const oct_value *v = g->n_input == 1 ? &g->value[g->input[0]] : NULL;
    if (!v || v->shape.rank != 4)
        return false;
    for (int i = 0; i < 4; i++)
        d[i] = v->shape.d[i].n > 0 ? v->shape.d[i].n : -1;
    p->last = d[1] != 3 && d[1] != 1 && (d[3] == 3 || d[3] == 1);
    p->c = d[p->last ? 3 : 1];
    p->h = d[p->last ? 1 : 2];
    p->w = d[p->last ? 2 : 3];
    p->padded = keeps_proportions(g);
    return oct_input_is_picture(&(oct_input_desc){ .name = v->name, .dtype = v->dtype, .rank = 4, .dims = d });
}

/* The steps that give pixels the numbers which the model takes, as words of --preprocess; "": none. Where the model
 * does not tell, they are those of its kind. */
static const char *guess_numbers(const oct_picture *p)
{
    switch (p->pixels) {
    case OCT_PIXELS_BYTES: return "";
    case OCT_PIXELS_UNIT: return "mean=0:std=255";
    case OCT_PIXELS_SIGNED: return "mean=127.5:std=127.5";
    default:
        return p->c == 1 || p->padded    ? "unit"
               : p->last                 ? "imagenet-tf"
               : p->h == 224 || p->h < 1 ? "imagenet"
                                         : "unit";
    }
}

static void put_step(oct_buf *b, bool *any, const char *step)
{
    if (!*step)
        return;
    oct_buf_printf(b, "%s%s", *any ? ":" : " --preprocess ", step);
    *any = true;
}

/* Steps to the size of the model, of which the presets for 224 x 224 have some. */
static void put_size(oct_buf *b, bool *any, const oct_picture *p, bool preset)
{
    char step[80] = "";
    const bool usual = p->h == 224 && p->w == 224 && p->c != 1;
    if (p->h < 1 || p->w < 1 || (usual && preset))
        return;
    if (p->padded)
        snprintf(step, sizeof step, "letterbox=%lldx%lld", (long long)p->w, (long long)p->h);
    else if (usual || (p->last && p->c == 3))
        snprintf(step, sizeof step, "resize=%lld:crop=%lldx%lld", (long long)((p->h < p->w ? p->h : p->w) * 256 / 224),
                 (long long)p->w, (long long)p->h);
    else
        snprintf(step, sizeof step, "resize=%lldx%lld", (long long)p->w, (long long)p->h);
    put_step(b, any, step);
}

static void put_steps(const oct_picture *p, oct_buf *b)
{
    const char *numbers = guess_numbers(p);
    bool any = false;
    put_step(b, &any, numbers);
    put_step(b, &any, p->c == 1 ? "order=gray" : "");
    put_step(b, &any, p->last ? "layout=nhwc" : "");
    put_size(b, &any, p, strncmp(numbers, "imagenet", 8) == 0);
}

void oct_guess_data(const oct_graph *g, const oct_picture *p, oct_buf *b)
{
    oct_buf_puts(b, p->is ? " --data PHOTOS/" : g->n_input == 1 ? " --data SAMPLES.npy" : " --data SAMPLES.npz");
    if (p->is)
        put_steps(p, b);
}

const char *oct_guess_said(const oct_picture *p)
{
    return p->is && (p->padded || p->pixels == OCT_PIXELS_UNKNOWN) ? " (--preprocess is a guess)" : "";
}

/* ---- the command of qeval ---- */

/* Of one with labels, rules or truth it is what the conversion was given. */
static void put_judging(const oct_session *s, oct_buf *b)
{
    const octet_convert_options *x = &s->x;
    const struct {
        const char *option, *value;
    } given[] = { { "--labels", x->samples.labels },
                  { "--decode", x->decode },
                  { "--truth", x->truth },
                  { "--metric", x->metric },
                  { "--metric-cmd", x->metric_command } };
    for (size_t i = 0; i < OCT_COUNT(given); i++)
        if (given[i].value) {
            oct_buf_printf(b, " %s ", given[i].option);
            oct_quote(b, given[i].value);
        }
}

/* Whether logits of tokens come out: an input of ids, and an output of [N, L, V]. */
static bool is_of_tokens(const oct_graph *g)
{
    enum { LEAST_TOKENS = 8 };
    bool ids = false, logits = false;
    for (size_t i = 0; i < g->n_input; i++) {
        const oct_value *v = &g->value[g->input[i]];
        ids |= (v->dtype == OCT_S64 || v->dtype == OCT_S32) && v->shape.rank == 2;
    }
    for (size_t i = 0; i < g->n_output && i < 1; i++) {
        const oct_value *v = &g->value[g->output[i]];
        logits = v->shape.rank == 3 && v->shape.d[2].n >= LEAST_TOKENS;
    }
    return ids && logits;
}

void oct_guess_comparison(const oct_session *s, oct_buf *b)
{
    const octet_convert_options *x = &s->x;
    const oct_graph *g = s->c.m->graph;
    oct_picture p = { .pixels = s->pixels };
    oct_buf_puts(b, "qeval ");
    oct_quote(b, x->model);
    oct_buf_puts(b, " ");
    oct_quote(b, s->output);
    bool stream = false; /* that has been read, and cannot be again */
    for (size_t i = 0; i < x->samples.data.n; i++)
        stream |= oct_path_is_stream(x->samples.data.v[i]);
    if (x->samples.data.n && !stream && !s->c.o.synthetic) {
        for (size_t i = 0; i < x->samples.data.n; i++) {
            oct_buf_puts(b, " --data ");
            oct_quote(b, x->samples.data.v[i]);
        }
        for (size_t i = 0; i < x->samples.preprocess.n; i++) {
            oct_buf_puts(b, " --preprocess ");
            oct_quote(b, x->samples.preprocess.v[i]);
        }
        for (size_t i = 0; i < x->samples.states.n; i++) {
            oct_buf_puts(b, " --state ");
            oct_quote(b, x->samples.states.v[i]);
        }
        if (x->samples.generate)
            oct_buf_printf(b, " --generate %lld", (long long)x->samples.generate);
    } else {
        p.is = oct_guess_picture(g, &p);
        oct_guess_data(g, &p, b);
        if (is_of_tokens(g))
            oct_buf_puts(b, " --metric perplexity");
    }
    put_judging(s, b);
}

/* ---- questions ---- */

/* Pictures without any preprocessing: pixels are as the files have them, which few models take. */
static void ask_of_pixels(const oct_session *s, oct_json *j, oct_buf *text, oct_buf *command)
{
    const octet_convert_options *x = &s->x;
    oct_picture p = { .pixels = s->pixels };
    if (!s->src || x->samples.preprocess.n || x->input_types.n || s->pixels == OCT_PIXELS_BYTES ||
        (s->pixels == OCT_PIXELS_UNKNOWN && s->spread > OCT_SPREAD_BYTES) || !oct_source_has_bytes(s->src) ||
        !(p.is = oct_guess_picture(s->c.m->graph, &p)))
        return;
    if (s->pixels == OCT_PIXELS_UNKNOWN)
        oct_buf_puts(text, "Are pixels of 0 to 255 what the model takes? If not, try (a guess):");
    else
        oct_buf_printf(text,
                       "No --preprocess is given, so pixels go in as 0 to 255, but the first nodes of the model "
                       "take %s. Give it%s:",
                       s->pixels == OCT_PIXELS_UNIT ? "0 to 1" : "-1 to 1", p.padded ? " (letterbox is a guess)" : "");
    oct_session_command(x, false, command);
    put_steps(&p, command);
    oct_answer_item(j, "question", text, command);
}

/* Outputs that look like boxes, and no rule that finds these: only the distance of numbers was judged. */
static bool ask_of_boxes(const oct_session *s, oct_json *j, oct_buf *text, oct_buf *command)
{
    const oct_graph *g = s->c.m->graph;
    const char *rule[OCT_GUESSES];
    oct_picture p = { .pixels = s->pixels };
    if (s->x.decode || s->x.dry_run || s->x.in_memory || !oct_guess_picture(g, &p))
        return false;
    const size_t found = guess_rules(g, rule);
    if (!found)
        return false;
    oct_buf_printf(text, "Are the outputs boxes? Then judge these by their truth; by the shapes the rule is %s",
                   rule[0]);
    for (size_t i = 1; i < found; i++)
        oct_buf_printf(text, "%s%s", i + 1 == found ? " or " : ", ", rule[i]);
    oct_buf_puts(text, " (a guess):");
    oct_guess_comparison(s, command);
    oct_buf_printf(command, " --decode %s --truth TRUTH.json", rule[0]);
    oct_answer_item(j, "question", text, command);
    return true;
}

bool oct_guess_questions(const oct_session *s, oct_json *j)
{
    oct_buf text = OCT_BUF_INIT, command = OCT_BUF_INIT;
    ask_of_pixels(s, j, &text, &command);
    const bool compares = ask_of_boxes(s, j, &text, &command);
    oct_buf_free(&text);
    oct_buf_free(&command);
    return compares;
}
