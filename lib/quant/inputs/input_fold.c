/* Folds the preprocessing of pixels into the first convolutions. */
#include "quant/inputs/input_fold.h"

#include "forms/edit.h"
#include "forms/write/ends.h"
#include "passes/input_moves.h"
#include "passes/match.h"
#include "passes/opset.h"

#include <math.h>
#include <string.h>

#define WHOLE 1e-3 /* of a pixel: floats of preprocessing are not more exact */
enum { CHANNELS = 4, PIXEL_MAX = 255 };

typedef struct folder {
    oct_graph *g;
    int v, n;                  /* the input, and its number of channels */
    oct_input_position *place; /* [n_place]: the input, and what nodes make of it by moving its elements */
    size_t n_place;
    double mean[CHANNELS], std[CHANNELS], common; /* by channel of the float model; and one std for all */
    int zero;
    bool flip;
} folder;

static int64_t clamp_pixel(double x)
{
    return x < 0 ? 0 : x > PIXEL_MAX ? PIXEL_MAX : (int64_t)rint(x);
}

/* Expands the steps to all channels, and finds what they have in common. *alike: nothing needs to be folded. */
static void read_steps(folder *f, const oct_steps *s, bool *alike)
{
    double mean = 0, std = 0;
    *alike = true;
    for (int c = 0; c < f->n; c++) {
        f->mean[c] = s->n_mean ? (double)s->mean[s->n_mean > 1 ? c : 0] : 0;
        f->std[c] = s->n_std ? (double)s->std[s->n_std > 1 ? c : 0] : 1;
        mean += f->mean[c] / f->n;
        std += f->std[c] / f->n;
        *alike &= f->mean[c] == f->mean[0] && f->std[c] == f->std[0];
    }
    f->zero = (int)clamp_pixel(*alike ? f->mean[0] : mean);
    f->common = *alike ? f->std[0] : std;
    f->flip = s->has_order && s->order == OCT_ORDER_BGR && f->n > 1;
    *alike &= f->zero == f->mean[0] && !f->flip;
}

/* ---- whether it can be done ---- */

static bool is_padded(const oct_node *n)
{
    int count;
    bool any = false;
    const int64_t *pads = oct_node_ints(n, "pads", &count);
    for (int i = 0; pads && i < count; i++)
        any |= pads[i] != 0;
    return any;
}

/* The pixel of channel c that stands for x in the float model, before it is rounded. */
static double pixel_of(const folder *f, int c, double x)
{
    return x * f->std[c] + f->mean[c];
}

/* Whether no byte stands for a border of x in some channel. Zeros, which the convolution itself pads with, may be
 * rounded to the nearest pixel. */
static bool has_no_pixel(const folder *f, double x)
{
    bool none = false;
    for (int c = 0; c < f->n; c++) {
        const double p = pixel_of(f, c, x), off = x == 0 ? 0.5 : WHOLE;
        none |= !(p >= -off && p <= PIXEL_MAX + off && fabs(p - rint(p)) <= off);
    }
    return none;
}

/* Whether the node moves the elements of the input. If it is a Pad, b is its border. */
static bool is_move(const folder *f, const oct_node *n, int axis, oct_border *b, bool *pads)
{
    bool moves = false;
    for (size_t i = 1; i < f->n_place && n->n_out == 1; i++)
        moves |= f->place[i].value == n->out[0];
    *pads = moves && oct_input_border(f->g, n, axis, b);
    return moves;
}

/* The reason why a reader of the input cannot absorb the steps, or NULL. */
static const char *no_fold(const folder *f, int axis, oct_use u)
{
    const oct_node *n = &f->g->node[u.node];
    if (!oct_is_op(n, "Conv") || u.slot != 0)
        return "something else than a convolution reads it";
    const oct_tensor *w = oct_graph_floats(f->g, n->in[1]);
    const int64_t groups = oct_node_int(n, "group", 1);
    if (!w || (oct_input_at(n, 2) >= 0 && !oct_graph_floats(f->g, n->in[2])))
        return "the convolution's weights are not constant";
    if (axis != 1 || w->rank < 3 || groups < 1 || w->dims[0] % groups || w->dims[1] * groups != f->n)
        return "its channels are not those of the steps";
    if (f->flip && groups > 1)
        return "the convolution has groups, so that its channels must keep their order";
    if (is_padded(n) && has_no_pixel(f, 0))
        return "no pixel value becomes the 0 of the padding";
    const char *pad = oct_node_str(n, "auto_pad", "NOTSET");
    return strcmp(pad, "NOTSET") == 0 || strcmp(pad, "VALID") == 0 ? NULL
                                                                   : "the convolution's padding is not written out";
}

/* The input channel of the float model for kernel row `at` of w; a row is one input of one output. */
static int channel_of(const oct_tensor *w, int64_t groups, int64_t at)
{
    const int64_t out = at / w->dims[1];
    return (int)(out / (w->dims[0] / groups) * w->dims[1] + at % w->dims[1]);
}

/* The noise of a convolution's outputs for pixels with uniformly distributed values, by the formulas of uniform
 * rounding: from rounding its input, and from rounding weights to 8 bits for each output. folded: pixels are exact, and
 * the weights contain the std of each channel. */
static double noise_of(const folder *f, const oct_node *n, bool folded)
{
    const oct_tensor *w = oct_graph_floats(f->g, n->in[1]);
    const int64_t groups = oct_node_int(n, "group", 1), taps = w->count / (w->dims[0] * w->dims[1]);
    const float *x = w->data;
    double lo = 0, hi = 0, noise = 0;
    for (int c = 0; c < f->n; c++) {
        lo = fmin(lo, -f->mean[c] / f->std[c]);
        hi = fmax(hi, (PIXEL_MAX - f->mean[c]) / f->std[c]);
    }
    const double step = folded ? 0 : (hi - lo) / PIXEL_MAX;
    for (int64_t o = 0; o < w->dims[0]; o++) {
        double largest = 0, power = 0, weights = 0;
        for (int64_t i = 0; i < w->dims[1]; i++) {
            const int c = channel_of(w, groups, o * w->dims[1] + i);
            const double by = folded ? f->common / f->std[c] : 1, std = folded ? f->common : f->std[c],
                         off = PIXEL_MAX / 2.0 - (folded ? f->zero : f->mean[c]);
            power += (double)taps * (PIXEL_MAX * PIXEL_MAX / 12.0 + off * off) / (std * std);
            for (int64_t t = 0; t < taps; t++, x++) {
                largest = fmax(largest, fabs(*x * by));
                weights += (double)*x * *x;
            }
        }
        noise += step * step / 12 * weights + largest * largest / (127.0 * 127.0 * 12) * power;
    }
    return noise;
}

/* The reason why a Pad cannot have its border in pixels, or NULL. */
static const char *find_border_fault(const folder *f)
{
    for (size_t i = 0; i < f->n_place; i++) {
        const oct_value *v = &f->g->value[f->place[i].value];
        for (size_t k = 0; k < v->n_uses; k++) {
            oct_border b;
            bool pads;
            if (is_move(f, &f->g->node[v->uses[k].node], f->place[i].axis, &b, &pads) && pads && b.constant &&
                has_no_pixel(f, b.value))
                return "no pixel value becomes the value of a Pad around the picture";
        }
    }
    return NULL;
}

static const char *find_fault(const folder *f)
{
    double folded = 0, own = 0;
    for (size_t i = 0; i < f->n_place; i++) {
        const oct_value *v = &f->g->value[f->place[i].value];
        if (v->is_output || v->n_uses == 0)
            return "something else than a convolution reads it";
        for (size_t k = 0; k < v->n_uses; k++) {
            const oct_node *n = &f->g->node[v->uses[k].node];
            oct_border b;
            bool pads;
            if (is_move(f, n, f->place[i].axis, &b, &pads))
                continue;
            const char *why = no_fold(f, f->place[i].axis, v->uses[k]);
            if (why)
                return why;
            folded += noise_of(f, n, true);
            own += noise_of(f, n, false);
        }
    }
    const char *why = find_border_fault(f);
    if (why)
        return why;
    return folded <= own * pow(10, OCT_FOLD_LOSS / 10)
               ? NULL
               : "its channels differ so much that rounded weights would lose more than 0.5 dB";
}

/* ---- folding ---- */

/* W'[c] = W[c] * common / std[c], in the order of the pixels' channels; each bias grows by sum W[c] * (zero - mean[c])
 * / std[c]. */
static oct_status fold_conv(const folder *f, int id, oct_err *err)
{
    const oct_node *n = &f->g->node[id];
    const oct_tensor *w = oct_graph_floats(f->g, n->in[1]), *b = n->n_in > 2 ? oct_graph_floats(f->g, n->in[2]) : NULL;
    const int64_t groups = oct_node_int(n, "group", 1), rows = w->dims[0] * w->dims[1], taps = w->count / rows;
    const char *name = f->g->value[n->in[1]].name;
    oct_tensor *to, *bias;
    int value;
    OCT_TRY(oct_tensor_new(f->g->arena, OCT_F32, w->rank, w->dims, &to, err));
    OCT_TRY(oct_tensor_new(f->g->arena, OCT_F32, 1, w->dims, &bias, err));
    float *y = (float *)(uintptr_t)to->data, *shift = (float *)(uintptr_t)bias->data;
    for (int64_t o = 0; o < w->dims[0]; o++) {
        double sum = b ? (double)((const float *)b->data)[o] : 0;
        for (int64_t i = 0; i < w->dims[1]; i++) {
            const int64_t row = o * w->dims[1] + i, into = f->flip ? o * w->dims[1] + w->dims[1] - 1 - i : row;
            const int c = channel_of(w, groups, row);
            for (int64_t t = 0; t < taps; t++) {
                const double x = (double)((const float *)w->data)[row * taps + t];
                y[into * taps + t] = (float)(x * (f->common / f->std[c]));
                sum += x * (f->zero - f->mean[c]) / f->std[c];
            }
        }
        shift[o] = (float)sum;
    }
    OCT_TRY(oct_edit_refer(f->g, name, "_folded", to, &value, err));
    OCT_TRY(oct_graph_set_input(f->g, id, 1, value, err));
    OCT_TRY(oct_edit_refer(f->g, name, "_folded_bias", bias, &value, err));
    return oct_graph_set_input(f->g, id, 2, value, err);
}

/* The pads of a convolution, in the form of Pad for a tensor of this rank. */
static oct_status pad_const(const folder *f, int id, int rank, int *v, oct_err *err)
{
    int64_t pads[2 * OCT_MAX_RANK] = { 0 };
    int count;
    const int64_t *own = oct_node_ints(&f->g->node[id], "pads", &count);
    for (int i = 0; i < rank - 2; i++) {
        pads[2 + i] = own[i];
        pads[rank + 2 + i] = own[rank - 2 + i];
    }
    return oct_edit_const(f->g, f->g->value[f->v].name, "_pads", OCT_S64, 1, (const int64_t[]){ 2 * rank }, pads, v,
                          err);
}

/* What stands for x of the float model around channel c of the pixels. */
static float fill_of(const folder *f, int c, double x)
{
    return (float)(((double)clamp_pixel(pixel_of(f, f->flip ? f->n - 1 - c : c, x)) - f->zero) / f->common);
}

static bool fills_differ(const folder *f, double x)
{
    bool differ = false;
    for (int c = 1; c < f->n; c++)
        differ |= fill_of(f, c, x) != fill_of(f, 0, x);
    return differ;
}

/* Inserts Split, a Pad for each channel, and Concat before a node. pads: a constant. In *to, what stands for x is
 * around each channel of value v. */
static oct_status pad_channels(const folder *f, oct_input_position at, int id, int pads, double x, int *to,
                               oct_err *err)
{
    oct_graph *g = f->g;
    const char *name = g->value[f->v].name;
    const int64_t ones[CHANNELS] = { 1, 1, 1, 1 }, n = f->n;
    int split[2] = { at.value, -1 }, part[CHANNELS], node;
    OCT_TRY(oct_edit_const(g, name, "_split", OCT_S64, 1, &n, ones, &split[1], err));
    const char *number =
        g->value[split[1]].name + strlen(name) + strlen("_split"); /* of a second one; names of values are unique */
    OCT_TRY(oct_graph_add_node(g, "Split", "", oct_arena_printf(g->arena, "%s_Split%s", name, number), 2, f->n, id,
                               &node, err));
    OCT_TRY(oct_node_set_int(g, node, "axis", at.axis, err));
    for (int i = 0; i < 2; i++)
        OCT_TRY(oct_graph_set_input(g, node, i, split[i], err));
    for (int c = 0; c < f->n; c++) {
        const float fill = fill_of(f, c, x);
        int in[3] = { -1, pads, -1 };
        OCT_TRY(oct_edit_value(g, name, "_channel", OCT_F32, -1, &part[c], err));
        OCT_TRY(oct_graph_set_output(g, node, c, part[c], err));
        in[0] = part[c];
        OCT_TRY(oct_edit_const(g, name, "_border", OCT_F32, 0, NULL, &fill, &in[2], err));
        OCT_TRY(oct_edit_value(g, name, "_padded", OCT_F32, -1, &part[c], err));
        OCT_TRY(oct_edit_node(g, "Pad", in, 3, part[c], id, NULL, err));
    }
    OCT_TRY(oct_edit_value(g, name, "_with_border", OCT_F32, -1, to, err));
    OCT_TRY(oct_edit_node(g, "Concat", part, f->n, *to, id, &node, err));
    return oct_node_set_int(g, node, "axis", at.axis, err);
}

/* The pads of a Pad for all dimensions: its own input, or those that its axes name. */
static oct_status whole_pads(const folder *f, const oct_node *n, int *v, oct_err *err)
{
    int64_t pads[2 * OCT_MAX_RANK] = { 0 };
    const int rank = f->g->value[f->v].shape.rank;
    *v = n->in[1];
    if (n->n_in < 4 || n->in[3] < 0)
        return OCT_OK;
    const oct_tensor *own = f->g->value[n->in[1]].constant, *axes = f->g->value[n->in[3]].constant;
    for (int64_t i = 0; i < axes->count; i++) {
        const int64_t d = ((const int64_t *)axes->data)[i], at = d < 0 ? d + rank : d;
        pads[at] = ((const int64_t *)own->data)[i];
        pads[rank + at] = ((const int64_t *)own->data)[axes->count + i];
    }
    return oct_edit_const(f->g, f->g->value[f->v].name, "_pads", OCT_S64, 1, (const int64_t[]){ 2 * rank }, pads, v,
                          err);
}

/* Gives a Pad with a constant border the pixels that stand for it. *to: what its readers read then. */
static oct_status fold_pad(const folder *f, oct_input_position at, int id, double x, int *to, oct_err *err)
{
    int fill, pads;
    if (fills_differ(f, x)) {
        OCT_TRY(whole_pads(f, &f->g->node[id], &pads, err));
        OCT_TRY(pad_channels(f, at, id, pads, x, to, err));
        return oct_graph_replace_uses(f->g, f->g->node[id].out[0], *to, err);
    }
    const float one = fill_of(f, 0, x);
    *to = f->g->node[id].out[0];
    OCT_TRY(oct_edit_const(f->g, f->g->value[f->v].name, "_border", OCT_F32, 0, NULL, &one, &fill, err));
    return oct_graph_set_input(f->g, id, 2, fill, err);
}

/* Computes in the original graph the old input from the new one: common / std[c] times it, plus (zero - mean[c]) /
 * std[c]. */
static oct_status read_pixels(const folder *f, oct_graph *g, oct_err *err)
{
    float by[CHANNELS], plus[CHANNELS];
    for (int c = 0; c < f->n; c++) {
        by[c] = (float)(f->common / f->std[c]);
        plus[c] = (float)((f->zero - f->mean[c]) / f->std[c]);
    }
    return oct_input_scale(g, f->g->value[f->v].name, f->place[0].axis, f->flip, f->n, by, plus, err);
}

static oct_status add_read(const folder *f, oct_input_fold *r, size_t *cap, int value, oct_err *err)
{
    for (size_t i = 0; i < r->n_reads; i++)
        if (r->reads[i] == value)
            return OCT_OK;
    if (!OCT_GROW(f->g->arena, r->reads, r->n_reads, *cap))
        return oct_nomem(err);
    r->reads[r->n_reads++] = value;
    return OCT_OK;
}

/* Folds the steps into one reader of a place. */
static oct_status fold_reader(const folder *f, size_t place, int id, oct_input_fold *r, size_t *cap, oct_err *err)
{
    oct_graph *g = f->g;
    oct_input_position at = f->place[place];
    oct_border b;
    bool pads;
    int to = at.value;
    if (is_move(f, &g->node[id], at.axis, &b, &pads)) {
        const int out = g->node[id].out[0];
        OCT_TRY(add_read(f, r, cap, at.value, err));
        if (!pads || !b.constant)
            return OCT_OK;
        OCT_TRY(fold_pad(f, at, id, b.value, &to, err));
        for (size_t i = place + 1; i < f->n_place; i++)
            if (f->place[i].value == out)
                f->place[i].value = to;
        return OCT_OK;
    }
    OCT_TRY(fold_conv(f, id, err));
    if (is_padded(&g->node[id]) && (fills_differ(f, 0) || fill_of(f, 0, 0) != 0)) {
        int own;
        OCT_TRY(pad_const(f, id, oct_graph_floats(g, g->node[id].in[1])->rank, &own, err));
        OCT_TRY(pad_channels(f, at, id, own, 0, &to, err));
        OCT_TRY(oct_graph_set_input(g, id, 0, to, err));
        oct_node_drop_attr(g, id, "pads");
    }
    return add_read(f, r, cap, to, err);
}

static oct_status fold_all(const folder *f, oct_input_fold *r, oct_err *err)
{
    oct_graph *g = f->g;
    size_t cap = 0;
    for (size_t i = 0; i < f->n_place; i++) {
        const oct_value *v = &g->value[f->place[i].value];
        const size_t n = v->n_uses;
        const oct_use *use = oct_arena_memdup(g->arena, v->uses, n * sizeof *use);
        if (!use)
            return oct_nomem(err);
        for (size_t k = 0; k < n; k++)
            OCT_TRY(fold_reader(f, i, use[k].node, r, &cap, err));
    }
    oct_graph_prune(g);
    OCT_TRY(oct_infer_shapes(g, err));
    return oct_graph_check(g, err);
}

/* Nothing needs to be folded: all places hold the numbers that the float model has there. */
static oct_status keep_all(const folder *f, oct_input_fold *r, oct_err *err)
{
    size_t cap = 0;
    r->why_not = find_border_fault(f);
    for (size_t i = 0; i < f->n_place; i++)
        OCT_TRY(add_read(f, r, &cap, f->place[i].value, err));
    return OCT_OK;
}

oct_status oct_input_fold_steps(oct_graph *g, int v, int channels, oct_steps *s, const char *not_so, oct_graph **before,
                                oct_input_fold *r, oct_err *err)
{
    enum { PADS_ARE_INPUTS = 13 };
    const oct_shape *shape = &g->value[v].shape;
    folder f = { .g = g, .v = v };
    bool alike;
    f.n = channels >= 0 && channels < shape->rank && shape->d[channels].n > 0 && shape->d[channels].n <= CHANNELS
              ? (int)shape->d[channels].n
              : 1;
    *r = (oct_input_fold){ 0 };
    read_steps(&f, s, &alike);
    r->std = (float)f.common;
    r->zero = f.zero;
    r->exact = alike;
    OCT_TRY(oct_infer_shapes(g, err));
    OCT_TRY(oct_input_positions(g, v, channels < 0 ? 1 : channels, g->arena, &f.place, &f.n_place, err));
    if (alike)
        return keep_all(&f, r, err);
    r->why_not = channels < 0 ? "its channels are not dimension 1" : find_fault(&f);
    r->why_not = r->why_not ? r->why_not : not_so;
    if (r->why_not)
        return OCT_OK;
    if (before && !*before)
        OCT_TRY(oct_graph_clone(g, before, err));
    if (before)
        OCT_TRY(read_pixels(&f, *before, err));
    if (oct_graph_opset(g, "") < PADS_ARE_INPUTS)
        OCT_TRY(oct_raise_opset(g, PADS_ARE_INPUTS, err));
    OCT_TRY(fold_all(&f, r, err));
    s->n_mean = s->n_std = 1;
    s->mean[0] = (float)f.zero;
    s->std[0] = r->std;
    if (f.flip)
        s->order = OCT_ORDER_RGB;
    return OCT_OK;
}
