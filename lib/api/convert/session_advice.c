/* Advice after a conversion without samples: a command with samples, and the expected gain. */
#include "api/answer.h"
#include "api/convert/session_guess.h"
#include "api/files.h"

#include "base/number_text.h"
#include "ops/traits.h"

#include <string.h>

typedef struct advice {
    oct_json j;
    oct_buf text, command; /* of the item that is next */
} advice;

static void end_item(advice *a)
{
    oct_answer_item(&a->j, "samples", &a->text, &a->command);
}

/* ---- what samples would change ---- */

/* What the layers of the model in the file would become with samples. */
typedef struct forecast {
    oct_layer_count n;
    double bytes; /* by how much weights would take more than now; negative: less */
    oct_picture p;
} forecast;

/* Whether an earlier layer has the same weights, as may happen in several bodies. */
static bool has_counted(const oct_layer *layers, size_t i)
{
    const oct_tensor *w = oct_layer_weights(layers[i].d.graph, layers[i].d.node);
    for (size_t k = 0; k < i && w; k++) {
        const oct_tensor *other = layers[k].d.integer ? oct_layer_weights(layers[k].d.graph, layers[k].d.node) : NULL;
        if (other && other->data == w->data)
            return true;
    }
    return false;
}

/* The bytes of a layer's weights in the file, and about those of the nodes around it: QuantizeLinear and
 * DequantizeLinear with their names, and for each output channel that has its own a scale and a zero point of the
 * weights and of the bias. */
static double layer_bytes(const oct_layer *l)
{
    enum { OF_NODES = 450, OF_CHANNEL = 12 };
    const bool is_static = l->d.integer && l->d.scheme == OCT_SCHEME_STATIC;
    const bool by_channel = l->product && l->depth > 0 && l->d.row && l->d.row->per_channel;
    const double channels = by_channel ? (double)l->weight_count / (double)l->depth : 0;
    const double around = is_static ? OF_NODES + OF_CHANNEL * channels : 0;

    const bool half = l->d.scheme == OCT_SCHEME_FP16 || l->d.scheme == OCT_SCHEME_BF16;
    const bool four = l->d.weights == OCT_S4 || l->d.weights == OCT_U4;
    return around + (double)l->weight_count * (four                                          ? 0.5
                                               : l->d.integer || oct_layer_is_weight_only(l) ? 1
                                               : half                                        ? 2
                                                                                             : 4);
}

/* The layer of that name now; NULL: there is none. Both lists have nearly the same order, so the search begins where
 * the last one ended. */
static const oct_layer *layer_now(const oct_session *s, const char *name, size_t *at)
{
    for (size_t i = 0; i < s->c.n_layers; i++) {
        const oct_layer *l = &s->c.layers[(*at + i) % s->c.n_layers];
        if (strcmp(l->name, name) == 0) {
            *at = (*at + i + 1) % s->c.n_layers;
            return l;
        }
    }
    return NULL;
}

static void compare_layers(const oct_session *s, const oct_layer *layers, size_t n, forecast *f)
{
    size_t at = 0;
    f->n = oct_layers_count(layers, n);
    for (size_t i = 0; i < n; i++) {
        const oct_layer *now = has_counted(layers, i) ? NULL : layer_now(s, layers[i].name, &at);
        if (now)
            f->bytes += layer_bytes(&layers[i]) - layer_bytes(now);
    }
}

/* Reads the model again, as it was before the conversion. */
static oct_status look_ahead(const oct_session *s, forecast *f, oct_err *err)
{
    oct_model *m = NULL;
    oct_qjob *job = NULL;
    oct_layer *layers = NULL;
    size_t n = 0;
    oct_status st = oct_load_any((oct_voice){ 0 }, s->x.model, NULL, 0, &m, err);
    if (st == OCT_OK && (f->p.is = oct_guess_picture(m->graph, &f->p)))
        f->p.pixels = oct_input_pixels(m->graph, m->graph->input[0]);
    if (st == OCT_OK)
        st = oct_session_preview(s, m->graph, &job, &layers, &n, err);
    if (st == OCT_OK)
        compare_layers(s, layers, n, f);
    oct_qjob_destroy(job);
    oct_model_free(m);
    return st;
}

/* What the command is expected to gain. Methods that measure what layers lose may leave some of them float, which
 * nobody can tell without samples. */
static void put_gain(const oct_session *s, const forecast *f, size_t now, oct_buf *b)
{
    enum { LEAST_SIZE = 32 << 10 };
    char text[32], part[32];
    const oct_layer_count *n = &f->n;
    if (n->integer <= now) {
        oct_buf_puts(
            b,
            "Then the ranges of activations are found now and not in every run, and losses are measured. No more layers "
            "would be int8, and the file would be about as large.");
        return;
    }
    const double bytes = (double)s->c.size_after + f->bytes;
    oct_buf_printf(b, "Then up to %zu of %zu would be int8: %s of the weights", n->integer, n->products,
                   oct_fmt_percent(text, n->weights ? (double)n->integer_weights / (double)n->weights : 0));
    if (n->macs)
        oct_buf_printf(b, ", %s of the multiply-accumulates",
                       oct_fmt_percent(part, (double)n->integer_macs / (double)n->macs));
    if (bytes > 0 && s->c.size_before >= LEAST_SIZE) /* in smaller files names and nodes take more than weights */
        oct_buf_printf(b, ", a file of about %s (%s now)", oct_fmt_bytes(text, (uint64_t)bytes),
                       oct_fmt_bytes(part, s->c.size_after));
    oct_buf_puts(b, ". Layers that then lose too much stay float.");
}

static void ask_for_halves(advice *a)
{
    oct_buf_puts(
        &a->text,
        "There were none, so it is not known which activations exceed 65504, float16's largest value: operators that "
        "are known to be risky stay float. With --data the layers that exceed it are found, and the others become "
        "float16. On CPUs float16 halves the file and is not faster than float32; 8 bits are.");
    end_item(a);
}

static oct_status ask_for_samples(const oct_session *s, advice *a, oct_err *err)
{
    const oct_graph *g = s->c.m->graph;
    const oct_scheme scheme = s->c.o.job.scheme;
    forecast x = { 0 };
    const size_t now = oct_layers_count(s->c.layers, s->c.n_layers).integer;
    if (strcmp(s->x.model, "-") == 0 || scheme == OCT_SCHEME_BF16 || scheme == OCT_SCHEME_DYNAMIC ||
        scheme == OCT_SCHEME_WEIGHT_ONLY)
        return OCT_OK; /* nothing would change */
    if (scheme == OCT_SCHEME_FP16) {
        ask_for_halves(a);
        return OCT_OK;
    }
    OCT_TRY(look_ahead(s, &x, err));
    if (x.n.integer == 0)
        return OCT_OK;
    const size_t left = x.n.products > now ? x.n.products - now : 0;
    oct_buf_puts(&a->text, "There were none");
    if (left)
        oct_buf_printf(
            &a->text,
            ": %zu of %zu layers with weights %s float (an integer Conv needs the range of its input and output)", left,
            x.n.products, left == 1 ? "stays" : "stay");
    oct_buf_printf(&a->text, ". With some 100 typical ones try%s:",
                   x.p.pixels == OCT_PIXELS_BYTES
                       ? " (the model scales pixels of 0 to 255 itself, so there is no mean and no std)"
                       : oct_guess_said(&x.p));
    oct_session_command(&s->x, false, &a->command);
    oct_guess_data(g, &x.p, &a->command);
    end_item(a);
    put_gain(s, &x, now, &a->text);
    if (g->n_input > 1) {
        oct_buf_puts(&a->text, " The .npz holds an array per input:");
        for (size_t i = 0; i < g->n_input; i++)
            oct_buf_printf(&a->text, " %s", g->value[g->input[i]].name);
        oct_buf_puts(&a->text, ".");
    }
    end_item(a);
    return OCT_OK;
}

oct_status oct_session_advice(const oct_session *s, oct_document *to, oct_err *err)
{
    advice a = { .j.to = to };
    oct_json_open(&a.j, NULL, '[');
    /* with a size, samples change what is chosen, but not the size */
    oct_status st = s->c.calib || s->c.size.n ? OCT_OK : ask_for_samples(s, &a, err);
    if (st == OCT_OK && (a.text.failed || a.command.failed))
        st = oct_nomem(err);
    oct_json_close(&a.j);
    oct_buf_free(&a.text);
    oct_buf_free(&a.command);
    return st;
}
