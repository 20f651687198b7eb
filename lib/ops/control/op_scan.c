/* Scan: a body over the parts of sequences, in both of its forms: batches as in opset 8, any axis since 9. */
#include "ops/control/control.h"

#include <string.h>

enum { MOST_SCANNED = 64 };

/* One Scan node. Inputs: [lengths, in opset 8 alone] states, scanned; the body: states, parts -> states, results. */
typedef struct scan {
    oct_graph *body;
    bool batched; /* opset 8: the first dimension is a batch, the second the sequence */
    int first;    /* input of the first state */
    size_t states, scanned, results;
    int64_t axis[MOST_SCANNED], out_axis[MOST_SCANNED];
    bool back[MOST_SCANNED], out_back[MOST_SCANNED];
} scan;

static oct_status read_list(const oct_node *n, const char *attr, size_t want, int64_t *v, oct_err *err)
{
    int count;
    const int64_t *list = oct_node_ints(n, attr, &count);
    if (list && (size_t)count != want)
        return oct_fail(err, OCT_EMALFORMED, "'%s' has %d entries, not %zu", attr, count, want);
    for (size_t i = 0; i < want; i++)
        v[i] = list ? list[i] : 0;
    return OCT_OK;
}

static oct_status read_flags(const oct_node *n, const char *attr, size_t want, bool *v, oct_err *err)
{
    int64_t list[MOST_SCANNED];
    OCT_TRY(read_list(n, attr, want, list, err));
    for (size_t i = 0; i < want; i++)
        v[i] = list[i] != 0;
    return OCT_OK;
}

static oct_status read_scan(const oct_node *n, int64_t opset, scan *s, oct_err *err)
{
    *s = (scan){ .batched = opset < 9, .first = opset < 9, .body = oct_node_graph(n, "body") };
    int64_t scanned = oct_node_int(n, "num_scan_inputs", 0);
    if (!s->body)
        return oct_fail(err, OCT_EMALFORMED, "Scan has no graph 'body'");
    if (scanned < 1 || scanned > n->n_in - s->first)
        return oct_fail(err, OCT_EMALFORMED, "'num_scan_inputs' is %lld, with %d inputs", (long long)scanned, n->n_in);
    s->scanned = (size_t)scanned;
    s->states = (size_t)(n->n_in - s->first) - s->scanned;
    if (s->body->n_input != s->states + s->scanned || s->body->n_output < s->states)
        return oct_fail(err, OCT_EMALFORMED, "its body should have %zu inputs and %zu outputs or more, not %zu and %zu",
                        s->states + s->scanned, s->states, s->body->n_input, s->body->n_output);
    s->results = s->body->n_output - s->states;
    if ((size_t)n->n_out > s->states + s->results)
        return oct_fail(err, OCT_EMALFORMED, "%d outputs; its body makes %zu", n->n_out, s->states + s->results);
    if (s->scanned > MOST_SCANNED || s->results > MOST_SCANNED)
        return oct_fail(err, OCT_EUNSUPPORTED, "more than %d scanned inputs or outputs", MOST_SCANNED);
    if (s->batched)
        return read_flags(n, "directions", s->scanned, s->back, err);
    OCT_TRY(read_list(n, "scan_input_axes", s->scanned, s->axis, err));
    OCT_TRY(read_list(n, "scan_output_axes", s->results, s->out_axis, err));
    OCT_TRY(read_flags(n, "scan_input_directions", s->scanned, s->back, err));
    return read_flags(n, "scan_output_directions", s->results, s->out_back, err);
}

/* ------------------------------------------------------------------ inference */

/* The shape of a part of input i, and the length of the sequence as that input has it. */
static oct_status infer_part(const oct_infer *c, const scan *s, size_t i, oct_dim *len, oct_err *err)
{
    int slot = s->first + (int)(s->states + i), axis;
    oct_shape x = oct_in_shape(c, slot);
    if (x.rank < 0 || x.rank > OCT_MAX_RANK)
        return oct_body_input(s->body, s->states + i, oct_in_dtype(c, slot), &(oct_shape){ -1, NULL }, err);
    OCT_TRY(oct_axis(s->axis[i], x.rank, &axis, err));
    oct_dim d[OCT_MAX_RANK];
    int rank = 0;
    for (int k = 0; k < x.rank; k++)
        if (k != axis)
            d[rank++] = x.d[k];
    if (axis < x.rank && (len->n < 0 || x.d[axis].n >= 0))
        *len = x.d[axis];
    return oct_body_input(s->body, s->states + i, oct_in_dtype(c, slot), &(oct_shape){ rank, d }, err);
}

static oct_status scan_infer(const oct_infer *c, oct_err *err)
{
    scan s;
    oct_dim len = { -1, NULL };
    OCT_TRY(read_scan(oct_in_node(c), c->opset, &s, err));
    if (s.batched) /* batches of sequences: left to running */
        return OCT_OK;
    for (size_t i = 0; i < s.scanned; i++)
        OCT_TRY(infer_part(c, &s, i, &len, err));
    OCT_TRY(oct_body_infer(c, s.body, 0, 0, 0, s.states, err));
    for (size_t i = 0; i < s.states; i++)
        OCT_TRY(oct_out_stacked(c, (int)i, &s.body->value[s.body->input[i]], -1, len, err));
    for (size_t i = 0; i < s.results; i++) {
        const oct_value *v = oct_body_output(s.body, s.states + i);
        int axis = 0;
        if (v->shape.rank >= 0)
            OCT_TRY(oct_axis(s.out_axis[i], v->shape.rank + 1, &axis, err));
        OCT_TRY(oct_out_stacked(c, (int)(s.states + i), v, axis, len, err));
    }
    return OCT_OK;
}

/* ------------------------------------------------------------------ running */

/* The sequences of one run of the body: all states and scanned inputs; results pile up. */
typedef struct sequence_run {
    const scan *s;
    oct_datum **in;   /* states, scanned inputs as a whole */
    oct_datum **part; /* inputs of the body */
    oct_datum **out;
    oct_datum **piled; /* [results] */
    int64_t length;
} sequence_run;

static void end_run(sequence_run *r)
{
    size_t n = r->s->states + r->s->scanned;
    oct_release(r->in, n);
    oct_release(r->part, n);
    oct_release(r->out, r->s->states + r->s->results);
    oct_release(r->piled, r->s->results);
}

static oct_status start_run(sequence_run *r, const scan *s, oct_err *err)
{
    size_t n = s->states + s->scanned;
    *r = (sequence_run){ .s = s };
    r->in = oct_calloc(n, sizeof *r->in);
    r->part = oct_calloc(n, sizeof *r->part);
    r->out = oct_calloc(s->states + s->results + 1, sizeof *r->out);
    r->piled = oct_calloc(s->results + 1, sizeof *r->piled);
    if (!r->in || !r->part || !r->out || !r->piled)
        return oct_nomem(err);
    for (size_t i = 0; i < s->results; i++)
        OCT_TRY(oct_datum_sequence(OCT_UNDEFINED, &r->piled[i], err));
    return OCT_OK;
}

/* All scanned inputs must be as long as each other. axis: of each. */
static oct_status find_length(sequence_run *r, const int *axis, oct_err *err)
{
    for (size_t i = 0; i < r->s->scanned; i++) {
        int64_t n = r->in[r->s->states + i]->dims[axis[i]];
        if (i && n != r->length)
            return oct_fail(err, OCT_EMALFORMED, "its scanned inputs have %lld and %lld parts", (long long)r->length,
                            (long long)n);
        r->length = n;
    }
    return OCT_OK;
}

static oct_status take_parts(sequence_run *r, const int *axis, int64_t at, oct_err *err)
{
    for (size_t i = 0; i < r->s->scanned; i++) {
        oct_datum **part = &r->part[r->s->states + i];
        oct_datum_unref(*part);
        *part = NULL;
        OCT_TRY(oct_datum_range(r->in[r->s->states + i], axis[i], r->s->back[i] ? r->length - 1 - at : at, 1, false,
                                part, err));
    }
    return OCT_OK;
}

/* Runs the body `length` times; then part[0..states) are the last states. */
static oct_status run_body(oct_exec *x, sequence_run *r, const int *axis, oct_err *err)
{
    const scan *s = r->s;
    for (size_t i = 0; i < s->states; i++)
        r->part[i] = oct_datum_ref(r->in[i]);
    for (int64_t t = 0; t < r->length; t++) {
        OCT_TRY(take_parts(r, axis, t, err));
        OCT_TRY(x->body(x->arg, "body", r->part, s->states + s->scanned, r->out, s->states + s->results, err));
        OCT_TRY(oct_carry(r->part, s->states, r->out, s->states + s->results, r->piled, err));
    }
    return OCT_OK;
}

static void give(oct_exec *x, size_t slot, oct_datum *item)
{
    if ((int)slot < x->node->n_out && x->node->out[slot] >= 0)
        x->out[slot] = item;
    else
        oct_datum_unref(item);
}

static oct_status exec_plain(oct_exec *x, const scan *s, sequence_run *r, oct_err *err)
{
    int axis[MOST_SCANNED];
    for (size_t i = 0; i < s->states + s->scanned; i++) {
        if (!x->in[i] || (i >= s->states && x->in[i]->kind != OCT_DATUM_TENSOR))
            return oct_fail(err, OCT_EMALFORMED, "input %zu is missing or no tensor", i);
        r->in[i] = oct_datum_ref(x->in[i]);
        if (i < s->states)
            continue;
        if (x->in[i]->t.rank < 1)
            return oct_fail(err, OCT_EMALFORMED, "input %zu is a single number and has no parts", i);
        OCT_TRY(oct_axis(s->axis[i - s->states], x->in[i]->t.rank, &axis[i - s->states], err));
    }
    OCT_TRY(find_length(r, axis, err));
    OCT_TRY(run_body(x, r, axis, err));
    for (size_t i = 0; i < s->states; i++)
        give(x, i, oct_datum_ref(r->part[i]));
    for (size_t i = 0; i < s->results; i++) {
        oct_datum *stacked;
        OCT_TRY(oct_datum_stack(r->piled[i], s->out_axis[i], s->out_back[i], oct_body_output(s->body, s->states + i),
                                &stacked, err));
        give(x, s->states + i, stacked);
    }
    return OCT_OK;
}

/* ---- opset 8 ---- */

/* The steps of sample b; steps beyond its length are zeros. */
static oct_status sample_length(const oct_exec *x, int64_t b, int64_t longest, int64_t *length, oct_err *err)
{
    const oct_datum *l = x->in[0];
    *length = longest;
    if (!l)
        return OCT_OK;
    if (l->kind != OCT_DATUM_TENSOR || l->t.dtype != OCT_S64 || l->t.rank != 1 || b >= l->dims[0])
        return oct_fail(err, OCT_EMALFORMED,
                        "the lengths of its sequences are no int64 tensor with one for each sample");
    *length = ((const int64_t *)l->t.data)[b];
    if (*length < 0 || *length > longest)
        return oct_fail(err, OCT_EMALFORMED, "a sequence of %lld parts in a tensor of %lld", (long long)*length,
                        (long long)longest);
    return OCT_OK;
}

/* Zeros like the first part, until there are `longest`. */
static oct_status pad(oct_datum *piled, const oct_value *like, int64_t longest, oct_err *err)
{
    int64_t dims[OCT_MAX_RANK];
    oct_datum *zero;
    if ((int64_t)piled->n >= longest)
        return OCT_OK;
    if (piled->n)
        OCT_TRY(oct_datum_tensor(piled->at[0]->t.dtype, piled->at[0]->t.rank, piled->at[0]->dims, &zero, err));
    else if (oct_shape_known(&like->shape, dims) && like->dtype != OCT_UNDEFINED)
        OCT_TRY(oct_datum_tensor(like->dtype, like->shape.rank, dims, &zero, err));
    else
        return oct_fail(err, OCT_EUNSUPPORTED, "the shape of '%s' is not known, and a sequence is empty", like->name);
    if (zero->t.bytes)
        memset(oct_datum_data(zero), 0, zero->t.bytes);
    oct_status s = OCT_OK;
    while (s == OCT_OK && (int64_t)piled->n < longest)
        s = oct_datum_push(piled, zero, err);
    oct_datum_unref(zero);
    return s;
}

/* Results of all samples: sequences of states and results by sample. */
static oct_status exec_sample(oct_exec *x, const scan *s, int64_t b, oct_datum **all, oct_err *err)
{
    sequence_run r;
    int axis[MOST_SCANNED] = { 0 };
    oct_status st = start_run(&r, s, err);
    for (size_t i = 0; st == OCT_OK && i < s->states + s->scanned; i++)
        st = oct_datum_range(x->in[1 + i], 0, b, 1, false, &r.in[i], err);
    if (st == OCT_OK)
        st = find_length(&r, axis, err);
    int64_t longest = r.length;
    if (st == OCT_OK)
        st = sample_length(x, b, longest, &r.length, err);
    if (st == OCT_OK)
        st = run_body(x, &r, axis, err);
    for (size_t i = 0; st == OCT_OK && i < s->states; i++)
        st = oct_datum_push(all[i], r.part[i], err);
    for (size_t i = 0; st == OCT_OK && i < s->results; i++) {
        const oct_value *like = oct_body_output(s->body, s->states + i);
        oct_datum *stacked = NULL;
        st = pad(r.piled[i], like, longest, err);
        if (st == OCT_OK)
            st = oct_datum_stack(r.piled[i], 0, false, like, &stacked, err);
        if (st == OCT_OK)
            st = oct_datum_push(all[s->states + i], stacked, err);
        oct_datum_unref(stacked);
    }
    end_run(&r);
    return st;
}

static oct_status exec_batched(oct_exec *x, const scan *s, oct_datum **all, oct_err *err)
{
    size_t n = s->states + s->scanned, results = s->states + s->results;
    int64_t batch = -1;
    for (size_t i = 1; i <= n; i++) {
        const oct_datum *t = x->in[i];
        if (!t || t->kind != OCT_DATUM_TENSOR || t->t.rank < (i > s->states ? 2 : 1) ||
            (batch >= 0 && t->dims[0] != batch))
            return oct_fail(err, OCT_EMALFORMED, "input %zu is missing, or no batch like the others", i);
        batch = t->dims[0];
    }
    for (size_t i = 0; i < results; i++)
        OCT_TRY(oct_datum_sequence(OCT_UNDEFINED, &all[i], err));
    for (int64_t b = 0; b < batch; b++)
        OCT_TRY(exec_sample(x, s, b, all, err));
    for (size_t i = 0; i < results; i++) {
        oct_datum *stacked;
        OCT_TRY(oct_datum_stack(all[i], 0, false, oct_body_output(s->body, i), &stacked, err));
        give(x, i, stacked);
    }
    return OCT_OK;
}

static oct_status scan_exec(oct_exec *x, oct_err *err)
{
    scan s;
    OCT_TRY(read_scan(x->node, x->opset, &s, err));
    if (s.batched) {
        oct_datum **all = oct_calloc(s.states + s.results + 1, sizeof *all);
        oct_status st = all ? exec_batched(x, &s, all, err) : oct_nomem(err);
        oct_release(all, s.states + s.results);
        return st;
    }
    sequence_run r;
    oct_status st = start_run(&r, &s, err);
    if (st == OCT_OK)
        st = exec_plain(x, &s, &r, err);
    end_run(&r);
    return st;
}

/* Since opset 9 there is no batch around the sequence, nor lengths of its members: bodies would have to change. */
static oct_status scan_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    oct_fail(err, OCT_EUNSUPPORTED, "Scan of opset 8 goes over a batch of sequences, which no newer opset has");
    oct_hint(err, "export the model with opset 9 or newer");
    return OCT_EUNSUPPORTED;
}

const oct_op oct_op_scan_8 = {
    OCT_SCHEMA("Scan", "", 8, 0, -1, 1, -1),
    .until = 8,
    .infer = scan_infer,
    .exec = scan_exec,
    .raise = scan_raise,
    .repeats = true,
};
const oct_op oct_op_scan = {
    OCT_SCHEMA("Scan", "", 9, 0, -1, 1, -1),
    .repeats = true,
    .infer = scan_infer,
    .exec = scan_exec,
};
