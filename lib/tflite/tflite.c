#include "tflite/tflite.h"

#include "forms/forms.h"
#include "ops/op.h"
#include "passes/one_way.h"
#include "passes/pass.h"
#include "passes/to_float32.h"
#include "tflite/tfl_operators.h"

#include <string.h>

/* ---- the graph that is written ---- */

/* The axis of each value that is open, -1 where none is. *closed: some value has several, so the model is for one
 * batch. */
static oct_status find_open(const oct_graph *g, oct_arena *arena, int **open, bool *closed, oct_err *err)
{
    *closed = false;
    if (!(*open = oct_arena_alloc(arena, (g->n_value + 1) * sizeof **open)))
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_value; i++) {
        const oct_shape *s = &g->value[i].shape;
        int n = 0;
        (*open)[i] = -1;
        for (int k = 0; k < s->rank; k++)
            if (s->d[k].n < 0) {
                (*open)[i] = k;
                n++;
            }
        *closed = *closed || n > 1;
    }
    return OCT_OK;
}

/* Sets the batch to 1. Other open dimensions are errors: kernels of .tflite need them in numbers. */
static oct_status close_batch(oct_graph *g, oct_err *err)
{
    for (size_t i = 0; i < g->n_input; i++) {
        const oct_value *v = &g->value[g->input[i]];
        char text[160];
        for (int k = 0; k < v->shape.rank || v->shape.rank < 0; k++)
            if (v->shape.rank < 0 || (k > 0 && v->shape.d[k].n < 0)) {
                oct_fail(err, OCT_EUNSUPPORTED, "the model cannot be written to .tflite: its input '%s' is %s", v->name,
                         oct_shape_text(&v->shape, text, sizeof text));
                oct_hint(err, "give it a fixed shape in all but the batch");
                return OCT_EUNSUPPORTED;
            }
    }
    return oct_set_usual_shapes(g, err);
}

static oct_status prepare(oct_graph *g, oct_arena *arena, int **open, bool *closed, oct_err *err)
{
    const int *now;
    int *before;
    oct_widened done;
    OCT_TRY(oct_infer_shapes(g, err));
    OCT_TRY(oct_widen_floats(g, false, &done, err));
    OCT_TRY(oct_infer_shapes(g, err));
    OCT_TRY(find_open(g, arena, &before, closed, err));
    OCT_TRY(close_batch(g, err));
    OCT_TRY(oct_tfl_read_stored(g, err));
    OCT_TRY(oct_tfl_read_parts(g, err));
    OCT_TRY(oct_passes_flatten(g, err));
    OCT_TRY(oct_lstms_one_way(g, NULL, err));
    OCT_TRY(oct_infer_shapes(g, err));
    const size_t n = g->n_value;
    OCT_TRY(oct_forms_read(g, NULL, &now, err));
    OCT_TRY(oct_tflite_join(g, err));
    oct_graph_prune(g);
    OCT_TRY(oct_infer_shapes(g, err));
    if (!(*open = oct_arena_alloc(arena, (g->n_value + 1) * sizeof **open)))
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_value; i++)
        (*open)[i] = -1;
    for (size_t i = 0; i < n; i++)
        if (before[i] >= 0 && now[i] >= 0)
            (*open)[i] = (*open)[now[i]] = before[i];
    return OCT_OK;
}

/* ---- orders that readers ask for ---- */

static void wish(oct_tfl_writer *w, int value, const oct_tfl_order *order)
{
    if (value < 0 || oct_value_is_constant(&w->g->value[value]))
        return;
    w->value[value].wish = *order;
    w->value[value].has_wish = true;
}

/* Whether a Transpose makes the value that exchanges the first two of three axes; quantizers and slices may stand in
 * between. */
static bool exchanges_first(const oct_graph *g, int value)
{
    int p = g->value[value].producer, count = 0;
    while (p >= 0 && (oct_is_op(&g->node[p], "QuantizeLinear") || oct_is_op(&g->node[p], "DequantizeLinear") ||
                      oct_is_op(&g->node[p], "Slice")))
        p = g->value[g->node[p].in[0]].producer;
    const int64_t *perm =
        p >= 0 && oct_is_op(&g->node[p], "Transpose") ? oct_node_ints(&g->node[p], "perm", &count) : NULL;
    return perm && count == 3 && perm[0] == 1 && perm[1] == 0;
}

/* What those ask for that read a Reshape which adds or removes axes of one element. */
static void wish_reshaped(oct_tfl_writer *w, const oct_node *n)
{
    const int x = n->in[0], y = n->out[0];
    const oct_shape *of_x = &w->g->value[x].shape, *of_y = &w->g->value[y].shape;
    const oct_tfl_order order = w->value[y].wish;
    oct_tfl_order from = oct_tfl_plain();
    int axis[OCT_MAX_RANK], next = 0; /* of x, which each axis of y is; -1: of one element */
    for (int k = 0, i = 0; k < of_y->rank || i < of_x->rank;) {
        const bool one_x = i < of_x->rank && of_x->d[i].n == 1 && i != w->value[x].open;
        const bool one_y = k < of_y->rank && of_y->d[k].n == 1 && k != w->value[y].open;
        if (one_x) {
            i++;
        } else if (one_y) {
            axis[k++] = -1;
        } else if (i < of_x->rank && k < of_y->rank && of_x->d[i].n == of_y->d[k].n) {
            axis[k++] = i++;
        } else {
            return;
        }
    }
    for (int i = 0; i < of_x->rank; i++) {
        if (of_x->d[i].n == 1 && i != w->value[x].open)
            continue;
        while (axis[order.d[next]] < 0)
            next++;
        from.d[i] = (int8_t)axis[order.d[next++]];
    }
    wish(w, x, &from);
}

/* What the node's readers ask for, passed on to its inputs. */
static void pass_wish(oct_tfl_writer *w, const oct_node *n, const oct_tfl_rule *rule)
{
    const int out = n->n_out ? n->out[0] : -1, rank = out >= 0 ? w->g->value[out].shape.rank : -1;
    int count = 0;
    if (n->n_in < 1 || n->in[0] < 0 || (rule->asks != OCT_TFL_ASKS_STEPS && (out < 0 || rank < 0)))
        return;
    if (rule->asks == OCT_TFL_ASKS_LAST) {
        const oct_tfl_order last = oct_tfl_channels_last(w->g->value[n->in[0]].shape.rank);
        wish(w, n->in[0], &last);
        return;
    }
    if (rule->asks == OCT_TFL_ASKS_STEPS) {
        static const oct_tfl_order turned = { { 1, 0, 2 } };
        if (exchanges_first(w->g, n->in[0]))
            wish(w, n->in[0], &turned);
        return;
    }
    if (rule->write == oct_tfl_write_reshape && w->value[out].has_wish)
        wish_reshaped(w, n);
    if (rule->asks == OCT_TFL_ASKS_PLAIN)
        return;
    const oct_tfl_order order = w->value[out].has_wish ? w->value[out].wish : oct_tfl_plain();
    if (strcmp(n->op, "Transpose") == 0) {
        const int64_t *perm = oct_node_ints(n, "perm", &count);
        oct_tfl_order from = order;
        for (int i = 0; i < rank; i++)
            from.d[i] = (int8_t)(perm && count == rank ? perm[order.d[i]] : rank - 1 - order.d[i]);
        wish(w, n->in[0], &from);
        return;
    }
    for (int i = 0; i < n->n_in && w->value[out].has_wish; i++)
        if (n->in[i] >= 0 && w->g->value[n->in[i]].shape.rank == rank)
            wish(w, n->in[i], &order);
}

/* ---- inputs and outputs ---- */

static void say_order(oct_tfl_writer *w, const char *end, const char *name, int tensor, const oct_tfl_order *order,
                      int rank)
{
    const oct_tfl_order plain = oct_tfl_plain(), last = oct_tfl_channels_last(rank);
    if (oct_tfl_same_order(order, &plain, rank))
        return;
    oct_buf_printf(w->notes, "in the file %s '%s' is [", end, name);
    for (int i = 0; i < rank; i++)
        oct_buf_printf(w->notes, "%s%d", i ? "," : "", w->m->tensor[tensor].dims[i]);
    oct_buf_puts(w->notes, oct_tfl_same_order(order, &last, rank) ? rank == 4 ? "]: NHWC\n" : "]: channels last\n"
                                                                  : "]: axes in another order\n");
}

static oct_status write_inputs(oct_tfl_writer *w, oct_err *err)
{
    oct_tfl_model *m = w->m;
    const oct_graph *g = w->g;
    if (!(m->input = oct_arena_calloc(m->arena, g->n_input + 1, sizeof *m->input)))
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_input; i++) {
        const int value = g->input[i];
        const oct_tfl_order order = w->value[value].has_wish ? w->value[value].wish : oct_tfl_plain();
        int tensor;
        OCT_TRY(oct_tfl_result(w, value, &order, OCT_TFL_OWN, NULL, &tensor, err));
        m->input[m->n_input++] = (oct_tfl_end){ g->value[value].name, tensor, order };
        say_order(w, "input", g->value[value].name, tensor, &order, g->value[value].shape.rank);
    }
    return OCT_OK;
}

/* Whether a tensor cannot be an output itself, because it is already an end of the model, or a constant. */
static bool is_taken(const oct_tfl_model *m, int tensor)
{
    bool taken = m->tensor[tensor].data != NULL;
    for (size_t i = 0; i < m->n_input; i++)
        taken = taken || m->input[i].tensor == tensor;
    for (size_t i = 0; i < m->n_output; i++)
        taken = taken || m->output[i].tensor == tensor;
    return taken;
}

static oct_status write_output(oct_tfl_writer *w, int value, oct_err *err)
{
    oct_tfl_model *m = w->m;
    const oct_value *v = &w->g->value[value];
    const int rank = v->shape.rank;
    const oct_tfl_order made = oct_tfl_order_of(w, value), last = oct_tfl_channels_last(rank < 0 ? 0 : rank);
    const bool keeps = rank > 2 && oct_tfl_same_order(&made, &last, rank);
    oct_tfl_order order = keeps ? made : oct_tfl_plain();
    int tensor;
    for (size_t i = 0; i < w->value[value].n && keeps; i++) { /* ONNX's order, if it is there at no cost */
        const oct_tfl_order plain = oct_tfl_plain();
        if (oct_tfl_same_order(&w->value[value].form[i].order, &plain, rank))
            order = plain;
    }
    OCT_TRY(oct_tfl_read(w, value, &order, OCT_TFL_REAL, &tensor, err));
    if (is_taken(m, tensor)) {
        const oct_tfl_tensor t = m->tensor[tensor];
        const int from = tensor;
        int64_t dims[OCT_MAX_RANK];
        for (int i = 0; i < t.rank; i++)
            dims[i] = t.dims[i];
        OCT_TRY(oct_tfl_between(w, v->name, from, t.rank, dims, t.open, &tensor, err));
        OCT_TRY(oct_tfl_reshape(w, from, tensor, err));
    }
    m->tensor[tensor].name = v->name;
    m->output[m->n_output++] = (oct_tfl_end){ v->name, tensor, order };
    say_order(w, "output", v->name, tensor, &order, rank);
    return w->notes->failed ? oct_nomem(err) : OCT_OK;
}

/* ---- nodes ---- */

static bool is_border(const oct_node *n)
{
    return oct_is_op(n, "QuantizeLinear") || oct_is_op(n, "DequantizeLinear");
}

/* What stands behind the node and becomes part of it: an activation, and the border at which its result is rounded to
 * int8, where files have one. w->out is the value behind them. */
static void fuse(oct_tfl_writer *w, const oct_node *n, const oct_tfl_rule *rule)
{
    int id;
    w->activation = OCT_TFL_ACT_NONE;
    w->out = n->out[0];
    const oct_node *next = n->n_out == 1 ? oct_tfl_only_reader(w, w->out, &id) : NULL;
    if (next && rule->activates && (w->activation = oct_tfl_clamp_of(w, next))) {
        w->skip[id] = true;
        w->out = next->out[0];
        next = oct_tfl_only_reader(w, w->out, &id);
    }
    if (next && !is_border(n))
        w->out = oct_tfl_behind_border(w, w->out);
}

/* Kernels take float32 or int8. Values of 8 bits without a sign stand at the ends of a model alone. */
static oct_status check_types(const oct_tfl_writer *w, const oct_node *n, const oct_tfl_rule *rule, oct_err *err)
{
    const oct_value *x = &w->g->value[n->in[0]];
    for (int i = 0; i < n->n_in && !is_border(n); i++) {
        const oct_value *v = n->in[i] >= 0 ? &w->g->value[n->in[i]] : NULL;
        if (v && v->quant && !oct_value_is_constant(v) && v->quant->n && v->quant->dtype != OCT_S8 &&
            !oct_tfl_is_whole(w, n->in[i]))
            return oct_tfl_cannot(w, err, "convert the float model for --target litert",
                                  "its operand '%s' is %s, and kernels take int8, or int16 with zero point 0", v->name,
                                  oct_dtype_name(v->quant->dtype));
    }
    if (rule->takes != OCT_TFL_TAKES_ALL && !x->quant && x->dtype != OCT_F32)
        return oct_tfl_cannot(w, err, NULL, "its operand '%s' is %s, and it takes float32", x->name,
                              oct_dtype_name(x->dtype));
    return OCT_OK;
}

static oct_status write_node(oct_tfl_writer *w, int id, oct_err *err)
{
    const oct_node *n = &w->g->node[id];
    const oct_tfl_rule *rule = oct_tfl_rule_of(n);
    w->node = id;
    if (!rule)
        return oct_tfl_cannot(w, err, NULL, "it has no operator %s%s%s", n->domain, n->domain[0] ? "." : "", n->op);
    if (n->n_in < 1 || n->in[0] < 0 || n->n_out < 1 ||
        (n->out[0] < 0 && (n->n_out == 1 || rule->write != oct_tfl_write_lstm)))
        return oct_tfl_cannot(w, err, NULL, "its first input or output is absent");
    w->wide = rule->takes != OCT_TFL_TAKES_REALS;
    OCT_TRY(check_types(w, n, rule, err));
    fuse(w, n, rule);
    OCT_TRY(rule->write(w, n, err));
    return oct_tfl_finish(w, err);
}

static oct_status write_graph(oct_tfl_writer *w, oct_err *err)
{
    const oct_graph *g = w->g;
    if (!(w->skip = oct_arena_calloc(w->arena, g->n_node + 1, sizeof *w->skip)) ||
        !(w->m->output = oct_arena_calloc(w->m->arena, g->n_output + 1, sizeof *w->m->output)))
        return oct_nomem(err);
    for (size_t i = g->n_order; i-- > 0;) {
        const oct_node *n = &g->node[g->order[i]];
        const oct_tfl_rule *rule = oct_tfl_rule_of(n);
        if (rule)
            pass_wish(w, n, rule);
    }
    OCT_TRY(write_inputs(w, err));
    for (size_t i = 0; i < g->n_order; i++)
        if (!w->skip[g->order[i]])
            OCT_TRY(write_node(w, g->order[i], err));
    w->node = -1;
    for (size_t i = 0; i < g->n_output; i++)
        OCT_TRY(write_output(w, g->output[i], err));
    return OCT_OK;
}

/* Whether a node states sizes of the batch in numbers. */
static bool fixes_batch(const oct_graph *g)
{
    for (size_t i = 0; i < g->n_order; i++)
        if (oct_is_op(&g->node[g->order[i]], "ConvTranspose") || oct_is_op(&g->node[g->order[i]], "LSTM"))
            return true;
    return false;
}

static oct_status make(oct_tflite *t, oct_arena *work, oct_err *err)
{
    oct_tfl_writer *w = oct_arena_calloc(work, 1, sizeof *w);
    int *open;
    bool closed;
    if (!w)
        return oct_nomem(err);
    OCT_TRY(prepare(t->read, work, &open, &closed, err));
    *w = (oct_tfl_writer){ .g = t->read, .arena = work, .m = &t->model, .node = -1, .notes = &t->notes };
    if (!(w->value = oct_arena_calloc(work, t->read->n_value + 1, sizeof *w->value)))
        return oct_nomem(err);
    closed = closed || fixes_batch(t->read);
    bool asked = false;
    for (size_t i = 0; i < t->read->n_value; i++) {
        w->value[i].open = closed ? -1 : open[i];
        asked = asked || open[i] >= 0;
    }
    if (closed && asked)
        oct_buf_puts(&t->notes, "the batch is 1: the model's shapes need it in numbers\n");
    return write_graph(w, err);
}

oct_status oct_tflite_make(const oct_graph *g, const char *description, oct_tflite *t, oct_err *err)
{
    oct_arena *work = oct_arena_create();
    *t = (oct_tflite){ .arena = oct_arena_create(), .notes = OCT_BUF_INIT };
    oct_status s = work && t->arena ? oct_graph_clone(g, &t->read, err) : oct_nomem(err);
    if (s == OCT_OK) {
        t->model = (oct_tfl_model){ .arena = t->arena,
                                    .name = t->read->name ? t->read->name : "main",
                                    .description = description };
        s = make(t, work, err);
    }
    oct_arena_destroy(work);
    return s;
}

void oct_tflite_free(oct_tflite *t)
{
    oct_buf_free(&t->notes);
    oct_graph_destroy(t->read);
    oct_arena_destroy(t->arena);
}
