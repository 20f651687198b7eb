/* Gives inputs and outputs the requested types. This is planned before the samples are opened, because pixels change
 * the samples' form. The model is changed at the very end, so that all measurements use the float model's own inputs
 * and outputs. */
#include "quant/convert/convert_int.h"

#include "passes/input_chain.h"
#include "passes/pass.h"
#include "quant/inputs/input_fold.h"

#include <math.h>
#include <string.h>

static const char as_it_is[] = "its numbers as they are";
static const char lost[] = "layers that do it lose more than 0.5 dB of the output SQNR";

/* The reason not to fold where that changes how layers are rounded; NULL: there is none. */
static const char *not_so(const oct_conversion *c)
{
    return c->fold->unfolded ? lost : NULL;
}

static bool is_end(const oct_graph *g, int v)
{
    return g->value[v].dtype == OCT_F32 && g->value[v].kind == OCT_VALUE_TENSOR;
}

/* ---- the requests ---- */

static const oct_end_ask *ask_for(const oct_conversion *c, const char *name, bool output)
{
    const oct_end_ask *all = NULL;
    for (size_t i = 0; i < c->o.n_ends; i++) {
        const oct_end_ask *a = &c->o.ends[i];
        if (a->output == output && a->name && strcmp(a->name, name) == 0)
            return a;
        if (a->output == output && !a->name)
            all = a;
    }
    return all;
}

/* If pixels are requested, whatever nodes before the layers compute with must be available as constants. So constants
 * are folded, but only small ones; those of layers that read pixels are small. */
static oct_status find_constants(const oct_conversion *c, oct_err *err)
{
    const oct_fold_bounds small = { 1 << 20, SIZE_MAX, 1e6, false };
    return oct_fold_constants(c->m->graph, &small, NULL, err);
}

static bool asks_for_bytes(const oct_conversion *c)
{
    bool any = false;
    for (size_t i = 0; i < c->o.n_ends; i++)
        any |= !c->o.ends[i].output && c->o.ends[i].type != OCT_F16;
    return any;
}

/* If nodes of the model normalise pixels of a uint8 input, the input becomes float32 until the model is written. */
static bool are_bytes(const oct_conversion *c, int v)
{
    const oct_end_ask *a = ask_for(c, c->m->graph->value[v].name, false);
    return a && a->type == OCT_U8 && oct_input_chain_of_bytes(c->m->graph, v);
}

/* Checks that each request refers to an input or output. */
static oct_status check_asks(const oct_conversion *c, oct_err *err)
{
    const oct_graph *g = c->m->graph;
    for (size_t i = 0; i < c->o.n_ends; i++) {
        const oct_end_ask *a = &c->o.ends[i];
        const char *what = a->output ? "output" : "input";
        bool found = false;
        for (size_t k = 0; k < (a->output ? g->n_output : g->n_input); k++) {
            const int v = a->output ? g->output[k] : g->input[k];
            found |= (is_end(g, v) || (!a->output && are_bytes(c, v))) &&
                     (!a->name || strcmp(a->name, g->value[v].name) == 0);
        }
        if (!found)
            return a->name ? oct_fail(err, OCT_EUSAGE, "--%s-type: the model has no %s '%s' of float32", what, what,
                                      a->name)
                           : oct_fail(err, OCT_EUSAGE, "--%s-type: the model has no %s of float32", what, what);
    }
    return OCT_OK;
}

/* ---- inputs ---- */

static int least_of(oct_dtype t)
{
    return t == OCT_S8 ? -128 : 0;
}

static bool are_pixels(const oct_steps *s)
{
    return s->n_mean || s->n_std || s->has_order;
}

/* Records the original steps: what the model reads for a pixel. */
static void record_steps(oct_end *e, const oct_steps *s, int channels)
{
    e->axis = channels < 0 ? 0 : channels;
    e->reversed = s->has_order && s->order == OCT_ORDER_BGR;
    e->n = s->n_mean > s->n_std ? s->n_mean : s->n_std;
    e->n = e->n ? e->n : 1;
    for (int i = 0; i < e->n; i++) {
        e->scale[i] = s->n_std ? 1.0f / s->std[s->n_std > 1 ? i : 0] : 1.0f;
        e->zero[i] = (s->n_mean ? s->mean[s->n_mean > 1 ? i : 0] : 0.0f) + (float)least_of(e->type);
    }
}

static oct_status give(oct_conversion *c, oct_given_params p, oct_err *err)
{
    oct_given_params *all = oct_arena_calloc(c->arena, c->o.job.n_given + 1, sizeof *all);
    if (!all)
        return oct_nomem(err);
    if (c->o.job.n_given)
        memcpy(all, c->o.job.given, c->o.job.n_given * sizeof *all);
    all[c->o.job.n_given++] = p;
    c->o.job.given = all;
    return OCT_OK;
}

/* An input of pixels. The preprocessing is folded if possible; otherwise nodes compute the float input from the
 * pixels. */
static oct_status take_pixels(oct_conversion *c, oct_conversion_end *x, int v, int channels, oct_steps *s, oct_err *err)
{
    oct_input_fold f = { 0 };
    oct_steps left = *s;
    record_steps(&x->record, s, channels);
    x->close = x->record;
    const bool table = c->calib && (x->record.n > 1 || x->record.reversed);
    if (!table)
        OCT_TRY(oct_input_fold_steps(c->m->graph, v, channels, &left, not_so(c), &c->from_pixels, &f, err));
    const char *why = table ? "the table's ranges are of the float model's own input" : f.why_not;
    x->close.computed = why != NULL;
    x->compared = why ? why == lost : !f.exact;
    x->how = why ? oct_arena_printf(c->arena, "its pixels are normalised in front of the model, as %s", why)
                 : "its pixels go in as they are, and mean, std and order of channels are in the layers that read them";
    if (!x->how)
        return oct_nomem(err);
    if (why)
        return OCT_OK;
    *s = left;
    x->close.reversed = false;
    x->close.n = 1;
    x->close.scale[0] = 1.0f / f.std;
    x->close.zero[0] = (float)(f.zero + least_of(x->close.type));
    for (size_t i = 0; i < f.n_reads; i++)
        OCT_TRY(give(c, (oct_given_params){ .value = f.reads[i], .scale = x->close.scale[0], .zero = f.zero }, err));
    return OCT_OK;
}

/* Decides for an input of pixels that the model normalises itself: fold the normalization, or place bytes before these
 * nodes. */
static oct_status settle_chain(oct_conversion *c, oct_conversion_end *x, const oct_input_chain *chain,
                               const oct_input_fold *f, oct_err *err)
{
    x->compared = f->why_not ? f->why_not == lost : !f->exact;
    x->close.computed = f->why_not != NULL;
    x->how = f->why_not
                 ? oct_arena_printf(c->arena, "its pixels are normalised by nodes of the model, as %s", f->why_not)
                 : "its pixels go in as they are, and mean, std and order of channels are in the layers that read them";
    if (!x->how)
        return oct_nomem(err);
    if (f->why_not)
        return OCT_OK;
    OCT_TRY(oct_input_chain_replace(c->m->graph, chain, (float)f->zero, f->std, err));
    x->chain_end = oct_arena_strdup(c->arena, c->m->graph->value[chain->end].name);
    x->close.scale[0] = 1.0f / f->std;
    x->close.zero[0] = (float)(f->zero + least_of(x->close.type));
    for (size_t i = 0; i < f->n_reads; i++)
        OCT_TRY(give(c, (oct_given_params){ .value = f->reads[i], .scale = x->close.scale[0], .zero = f->zero }, err));
    return x->chain_end ? OCT_OK : oct_nomem(err);
}

/* The same if a chain of nodes after the input normalises pixels. *found: whether there is such a chain. */
static oct_status take_chain(oct_conversion *c, oct_conversion_end *x, int v, bool *found, oct_err *err)
{
    oct_graph *before = NULL;
    oct_input_chain chain;
    oct_input_fold f;
    oct_steps s = { 0 };
    OCT_TRY(oct_infer_shapes(c->m->graph, err));
    *found = oct_input_chain_find(c->m->graph, v, &chain);
    if (!*found)
        return OCT_OK;
    s.n_mean = s.n_std = chain.n;
    for (int i = 0; i < chain.n; i++) {
        s.mean[i] = (float)chain.mean[i];
        s.std[i] = (float)chain.std[i];
    }
    s.has_order = chain.reversed;
    s.order = OCT_ORDER_BGR;
    x->record.n = x->close.n = 1;
    x->record.scale[0] = x->close.scale[0] = 1;
    x->record.zero[0] = x->close.zero[0] = (float)least_of(x->record.type);
    OCT_TRY(oct_graph_clone(c->m->graph, &before, err));
    oct_status st = oct_input_fold_steps(c->m->graph, chain.end, chain.axis, &s, not_so(c), NULL, &f, err);
    if (st == OCT_OK)
        st = settle_chain(c, x, &chain, &f, err);
    if (st == OCT_OK && !f.why_not && !f.exact && !c->from_pixels)
        c->from_pixels = before;
    else
        oct_graph_destroy(before);
    return st;
}

static oct_status take_input(oct_conversion *c, oct_conversion_end *x, int v, oct_steps *s, oct_err *err)
{
    const oct_value *in = &c->m->graph->value[v];
    int64_t dims[OCT_MAX_RANK];
    for (int k = 0; k < in->shape.rank; k++)
        dims[k] = in->shape.d[k].n;
    const bool picture = in->shape.rank == 4;
    const bool last =
        picture &&
        oct_input_is_nhwc(
            &(oct_input_desc){ .name = in->name, .dtype = in->dtype, .rank = in->shape.rank, .dims = dims }, s);
    x->record.nhwc = x->close.nhwc = c->o.nhwc && picture && !last;
    bool chain = false;
    if (x->record.type != OCT_F16 && !are_pixels(s))
        OCT_TRY(take_chain(c, x, v, &chain, err));
    if (x->record.type == OCT_F16 || !are_pixels(s)) {
        x->how = chain ? x->how : x->record.type == OCT_F16 ? as_it_is : NULL;
        return OCT_OK;
    }
    return take_pixels(c, x, v, !picture ? -1 : last ? 3 : 1, s, err);
}

/* ---- all of them ---- */

oct_status oct_conversion_take_ends(oct_conversion *c, oct_steps *steps, oct_err *err)
{
    if (!c->o.n_ends)
        return OCT_OK;
    if (asks_for_bytes(c)) {
        OCT_TRY(oct_fold_begin(c, steps, err));
        OCT_TRY(find_constants(c, err));
    }
    const oct_graph *g = c->m->graph;
    OCT_TRY(check_asks(c, err));
    if (!(c->end = oct_arena_calloc(c->arena, g->n_input + g->n_output, sizeof *c->end)))
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_input + g->n_output; i++) {
        const bool output = i >= g->n_input;
        const int v = output ? g->output[i - g->n_input] : g->input[i];
        const oct_end_ask *a = ask_for(c, g->value[v].name, output);
        const bool bytes = a && !output && are_bytes(c, v);
        if (!a || !(is_end(g, v) || bytes))
            continue;
        if (bytes)
            OCT_TRY(oct_input_chain_widen(c->m->graph, v, err));
        oct_conversion_end *x = &c->end[c->n_end++];
        x->was_bytes = bytes;
        x->record = x->close =
            (oct_end){ .name = oct_arena_strdup(c->arena, g->value[v].name), .output = output, .type = a->type };
        if (!x->record.name)
            return oct_nomem(err);
        if (output && a->type == OCT_F16)
            x->how = as_it_is;
        if (!output)
            OCT_TRY(take_input(c, x, v, &steps[i], err));
        else if (a->type != OCT_F16)
            OCT_TRY(give(c, (oct_given_params){ .value = v, .range_alone = true }, err));
    }
    return OCT_OK;
}

/* ---- at the end of the conversion ---- */

/* The parameters of an output that has no quantizer: they cover all values seen on the samples. */
static oct_status params_of_range(const oct_conversion *c, oct_end *e, oct_err *err)
{
    const oct_calib_tensor *t = c->calib ? oct_calib_find(c->calib, e->name) : NULL;
    oct_qrange range;
    if (!t || t->off || oct_stats_finite(&t->stats) == 0)
        return OCT_OK;
    OCT_TRY(oct_qrange_of(e->type, false, &range, err));
    const oct_qparams q =
        oct_qparams_from_range(t->pinned ? t->pin : (oct_range){ (float)t->stats.min, (float)t->stats.max }, range);
    e->n = 1;
    e->scale[0] = q.scale;
    e->zero[0] = (float)q.zero;
    return OCT_OK;
}

/* The parameters of an input or output whose float values are rounded: those of its quantizer, or for outputs those of
 * the range. */
static oct_status find_params(const oct_conversion *c, oct_conversion_end *x, oct_err *err)
{
    if (x->how || x->close.type == OCT_F16)
        return OCT_OK;
    oct_end_find(c->m->graph, &x->close);
    if (!x->close.n && x->close.output)
        OCT_TRY(params_of_range(c, &x->close, err));
    x->record.n = x->close.n;
    x->record.scale[0] = x->close.scale[0];
    x->record.zero[0] = x->close.zero[0];
    if (x->close.n && !(x->how = oct_arena_printf(c->arena, x->close.zero[0] < 0 ? "(q + %g) * %g" : "(q - %g) * %g",
                                                  fabs((double)x->close.zero[0]), (double)x->close.scale[0])))
        return oct_nomem(err);
    return OCT_OK;
}

/* Adds the loss of both choices, at the output that loses most by folding. */
static oct_status add_comparison(const oct_conversion *c, oct_conversion_end *x, oct_err *err)
{
    if (!x->compared)
        return OCT_OK;
    const oct_fold *f = c->fold;
    if (!f->db || !f->other_db) {
        x->how = oct_arena_printf(
            c->arena, "%s; what that costs was not measured: by its weights, the first layer loses at most %g dB",
            x->how, OCT_FOLD_LOSS);
        return x->how ? OCT_OK : oct_nomem(err);
    }
    x->how = oct_arena_printf(c->arena, "%s; '%s' has an SQNR of %.2f dB, and would have %.2f dB with preprocessing %s",
                              x->how, f->worst_output, f->db[f->worst], f->other_db[f->worst],
                              f->unfolded ? "in these layers" : "in front of the model");
    return x->how ? OCT_OK : oct_nomem(err);
}

static oct_status close_end(oct_conversion *c, oct_conversion_end *x, oct_buf *b, oct_err *err)
{
    const char *what = x->close.output ? "output" : "input", *type = oct_dtype_name(x->close.type);
    OCT_TRY(find_params(c, x, err));
    x->reached = x->close.n || x->close.type == OCT_F16;
    if (x->chain_end)
        OCT_TRY(oct_input_chain_drop(c->m->graph, x->close.name, x->chain_end, err));
    oct_err fault = OCT_ERR_INIT;
    const oct_status st = x->reached ? oct_end_close(c->m->graph, &x->close, &fault) : OCT_EUNSUPPORTED;
    if (st == OCT_EUNSUPPORTED) {
        x->how = x->reached        ? oct_arena_strdup(c->arena, fault.text)
                 : x->close.output ? "no integer layer computes it, and its range is not known"
                                   : "no integer layer reads it";
        x->reached = false;
        oct_conversion_say(c, OCT_NOTE_WARNING, "%s '%s' stays float32: %s", what, x->close.name, x->how ? x->how : "");
        return x->how ? OCT_OK : oct_nomem(err);
    }
    if (st != OCT_OK) {
        *err = fault;
        return st;
    }
    OCT_TRY(add_comparison(c, x, err));
    oct_conversion_say(c, 0, "%s '%s' is %s%s: %s", what, x->close.name, type, x->close.nhwc ? ", NHWC" : "", x->how);
    if (!x->was_bytes)
        oct_end_put(b, &x->record);
    return OCT_OK;
}

oct_status oct_conversion_close_ends(oct_conversion *c, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    oct_status st = OCT_OK;
    for (size_t i = 0; i < c->n_end && st == OCT_OK; i++)
        st = close_end(c, &c->end[i], &b, err);
    if (st == OCT_OK && c->n_end && !oct_target_rules_of(c->o.job.target)->never_in_ort)
        st = oct_keep_moved_captures(c->m->graph, err);
    if (st == OCT_OK && b.len)
        st = b.failed ? oct_nomem(err) : oct_model_set_meta(c->m, OCT_ENDS_KEY, oct_buf_str(&b), err);
    oct_buf_free(&b);
    return st;
}
