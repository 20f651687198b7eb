/* Advice after a conversion: what else to try, and the expected gain. Without samples, it is a command with samples.
 * For a target with bfloat16, it is bfloat16 if that is expected to be faster than the decisions. */
#include "api/session.h"

#include "base/number_text.h"
#include "kernels/cost.h"
#include "ops/traits.h"
#include "passes/input_pixels.h"

#include <stdio.h>
#include <string.h>

/* What the samples are, as far as the model tells. */
typedef struct picture {
    bool is, last; /* they are pictures; and their channels are last */
    int64_t c, h, w;
    oct_pixels pixels;
} picture;

/* Guesses from the type and the shape of the only input whether samples are pictures, and of which size. */
static bool guess_picture(const oct_graph *g, picture *p)
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
    return oct_input_is_picture(&(oct_input_desc){ .name = v->name, .dtype = v->dtype, .rank = 4, .dims = d });
}

/* The steps that give pixels the numbers which the model takes, as words of --preprocess; "": none. Where the model
 * does not tell, they are those of its kind. */
static const char *guess_numbers(const picture *p)
{
    switch (p->pixels) {
    case OCT_PIXELS_BYTES: return "";
    case OCT_PIXELS_UNIT: return "mean=0:std=255";
    case OCT_PIXELS_SIGNED: return "mean=127.5:std=127.5";
    default: return p->c == 1 ? "unit" : p->last ? "imagenet-tf" : p->h == 224 || p->h < 1 ? "imagenet" : "unit";
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
static void put_size(oct_buf *b, bool *any, const picture *p, bool preset)
{
    char step[80] = "";
    const bool usual = p->h == 224 && p->w == 224 && p->c != 1;
    if (p->h < 1 || p->w < 1 || (usual && preset))
        return;
    if (usual || (p->last && p->c == 3))
        snprintf(step, sizeof step, "resize=%lld:crop=%lldx%lld", (long long)((p->h < p->w ? p->h : p->w) * 256 / 224),
                 (long long)p->w, (long long)p->h);
    else
        snprintf(step, sizeof step, "resize=%lldx%lld", (long long)p->w, (long long)p->h);
    put_step(b, any, step);
}

static void put_data(const oct_graph *g, const picture *p, oct_buf *b)
{
    if (!p->is) {
        oct_buf_puts(b, g->n_input == 1 ? " --data SAMPLES.npy" : " --data SAMPLES.npz");
        return;
    }
    const char *numbers = guess_numbers(p);
    bool any = false;
    oct_buf_puts(b, " --data PHOTOS/");
    put_step(b, &any, numbers);
    put_step(b, &any, p->c == 1 ? "order=gray" : "");
    put_step(b, &any, p->last ? "layout=nhwc" : "");
    put_size(b, &any, p, strncmp(numbers, "imagenet", 8) == 0);
}

/* Lines of text: the names in them may hold whatever a file has, so each is apart. */
typedef struct lines {
    oct_json j;
    oct_buf b; /* the line so far */
} lines;

static void end_line(lines *l)
{
    oct_json_str(&l->j, NULL, oct_buf_str(&l->b));
    oct_buf_cut(&l->b, 0);
}

static void put_line(lines *l, const char *text)
{
    oct_buf_puts(&l->b, text);
    end_line(l);
}

/* ---- what samples would change ---- */

/* What the layers of the model in the file would become with samples. */
typedef struct forecast {
    oct_layer_count n;
    double bytes; /* by how much weights would take more than now; negative: less */
    picture p;
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
    oct_status st = oct_model_load(s->x.model, &m, err);
    if (st == OCT_OK && (f->p.is = guess_picture(m->graph, &f->p)))
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
static void put_gain(const oct_session *s, const forecast *f, size_t now, lines *l)
{
    enum { LEAST_SIZE = 32 << 10 };
    char text[32], part[32];
    const oct_layer_count *n = &f->n;
    if (n->integer <= now) {
        put_line(
            l,
            "Then the ranges of activations are known beforehand, so that nothing is measured while the model runs, and losses are measured.");
        put_line(l, "No more layers would be int8, and the file would be about as large.");
        return;
    }
    const double bytes = (double)s->c.size_after + f->bytes;
    oct_buf_printf(&l->b, "Then up to %zu of %zu would be int8: %s of the weights", n->integer, n->products,
                   oct_fmt_percent(text, n->weights ? (double)n->integer_weights / (double)n->weights : 0));
    if (n->macs)
        oct_buf_printf(&l->b, ", %s of the multiplications",
                       oct_fmt_percent(part, (double)n->integer_macs / (double)n->macs));
    if (bytes > 0 && s->c.size_before >= LEAST_SIZE) /* in smaller files names and nodes take more than weights */
        oct_buf_printf(&l->b, ", a file of about %s (%s now)", oct_fmt_bytes(text, (uint64_t)bytes),
                       oct_fmt_bytes(part, s->c.size_after));
    put_line(l, ".");
    put_line(l, "Layers that then lose too much stay float.");
}

static oct_status ask_for_samples(const oct_session *s, lines *l, oct_err *err)
{
    const oct_graph *g = s->c.m->graph;
    const oct_scheme scheme = s->c.o.job.scheme;
    forecast x = { 0 };
    const size_t now = oct_layers_count(s->c.layers, s->c.n_layers).integer;
    if (strcmp(s->x.model, "-") == 0 || scheme == OCT_SCHEME_BF16 || scheme == OCT_SCHEME_DYNAMIC ||
        scheme == OCT_SCHEME_WEIGHT_ONLY)
        return OCT_OK; /* nothing would change */
    if (scheme == OCT_SCHEME_FP16) {
        put_line(l, "");
        put_line(
            l,
            "There were no samples: whether the activations stay within float16's 65504 is not known, so what is known to be risky");
        put_line(l,
                 "stays float. With --data the layers of which they do not are found, and the others become float16.");
        put_line(l, "On CPUs float16 halves the file and is not faster than float32; 8 bits are.");
        return OCT_OK;
    }
    OCT_TRY(look_ahead(s, &x, err));
    if (x.n.integer == 0)
        return OCT_OK;
    const size_t left = x.n.products > now ? x.n.products - now : 0;
    put_line(l, "");
    oct_buf_puts(&l->b, "There were no samples");
    if (left)
        oct_buf_printf(
            &l->b,
            ": %zu of %zu layers with weights %s float (an integer Conv needs the range of its input and output)", left,
            x.n.products, left == 1 ? "stays" : "stay");
    put_line(l, ".");
    oct_buf_puts(&l->b, "With some 100 typical samples try");
    put_line(l, x.p.pixels == OCT_PIXELS_BYTES
                    ? " (the model scales pixels of 0 to 255 itself, so there is no mean and no std):"
                    : ":");
    put_line(l, "");
    oct_buf_puts(&l->b, "    ");
    oct_session_command(&s->x, false, &l->b);
    put_data(g, &x.p, &l->b);
    end_line(l);
    put_line(l, "");
    put_gain(s, &x, now, l);
    if (g->n_input > 1) {
        oct_buf_puts(&l->b, "The .npz holds an array per input:");
        for (size_t i = 0; i < g->n_input; i++)
            oct_buf_printf(&l->b, " %s", g->value[g->input[i]].name);
        end_line(l);
    }
    return OCT_OK;
}

oct_status oct_session_advice(const oct_session *s, oct_document *to, oct_err *err)
{
    lines l = { .j.to = to };
    oct_json_open(&l.j, NULL, '[');
    /* with a size, samples change what is chosen, but not the size */
    oct_status st = s->c.calib || s->c.size.n ? OCT_OK : ask_for_samples(s, &l, err);
    if (st == OCT_OK && l.b.failed)
        st = oct_nomem(err);
    oct_json_close(&l.j);
    oct_buf_free(&l.b);
    return st;
}
