/* Finds out what the elements of outputs are: walks the graph once, and notes for each value what its elements are. */
#include "eval/run/output_form.h"

#include "base/mem.h"
#include "ops/op.h"

typedef enum kind {
    EXACT, /* constants, shapes, and integers that come from integers: no error reaches them */
    REAL,
    CODES
} kind;

enum { OPEN = -1 }; /* rows: their number is not known */

typedef struct facts {
    kind kind;
    int64_t rows; /* values chose the rows or their order: the number of rows, or OPEN; 0: no */
    bool sorted;  /* numbers in the order of their size */
    bool varying; /* how many there are depends on values */
    bool layered; /* an operator with weights stands behind that choice, or behind what says how many there are */
} facts;

const char *oct_output_form_name(oct_output_form f)
{
    static const char *const names[] = { [OCT_HOLDS_NUMBERS] = "numbers",
                                         [OCT_HOLDS_SORTED] = "sorted numbers",
                                         [OCT_HOLDS_VARYING] = "varying numbers",
                                         [OCT_HOLDS_CODES] = "codes",
                                         [OCT_HOLDS_ROWS] = "rows" };
    return names[f];
}

bool oct_output_is_numbers(oct_output_form f)
{
    return f == OCT_HOLDS_NUMBERS || f == OCT_HOLDS_SORTED || f == OCT_HOLDS_VARYING;
}

static bool has_dim(const oct_shape *s, int64_t n)
{
    for (int i = 0; i < s->rank; i++)
        if (s->d[i].n == n)
            return true;
    return s->rank < 0;
}

static bool is_weighted(const oct_op *op)
{
    return op->quant == OCT_QUANT_WEIGHTED || op->quant == OCT_QUANT_RECURRENT;
}

static bool chooses(const oct_op *op, int slot)
{
    return slot < 32 && op->chooses >> slot & 1;
}

/* Whether an input's rows become rows of the outputs. A product takes its rows from input 0. */
static bool hands_on(const oct_op *op, int slot)
{
    return op->decision != OCT_RETURNS && (!is_weighted(op) || slot == 0);
}

static bool has_real_input(const oct_graph *g, const oct_node *n)
{
    bool any = false;
    for (int i = 0; i < n->n_in; i++)
        any |= n->in[i] >= 0 && oct_dtype_is_real(g->value[n->in[i]].dtype);
    return any;
}

/* Whether an input is a number of elements or repetitions: an integer of 32 bits or more beside real numbers, and no
 * quantized value. */
static bool says_how_many(const oct_graph *g, const oct_node *n, const oct_op *op, int slot)
{
    const oct_dtype t = g->value[n->in[slot]].dtype;
    const bool counts = slot < 32 && op->counts >> slot & 1;
    return (t == OCT_S64 || t == OCT_S32) && !op->is_qdq && (counts || has_real_input(g, n));
}

/* What the inputs of a node have in common. A mask that chooses elements leaves as many as it has ones. */
static facts join_inputs(const oct_graph *g, const facts *f, int node, const oct_op *op, bool *floats)
{
    const oct_node *n = &g->node[node];
    facts x = { .kind = EXACT };
    *floats = false;
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] < 0)
            continue;
        const oct_value *v = &g->value[n->in[i]];
        const facts *in = &f[n->in[i]];
        const bool places = chooses(op, i);
        x.varying |= in->varying || (!places && says_how_many(g, n, op, i) && in->kind != EXACT);
        x.layered |= in->varying && in->layered;
        x.sorted |= in->sorted && !is_weighted(op) && !op->reduces;
        *floats |= oct_dtype_is_real(v->dtype);
        if (in->kind != EXACT && !(places && in->kind == REAL))
            x.kind = x.kind == REAL || in->kind == REAL ? REAL : CODES;
        if (hands_on(op, i) && in->rows && (!x.rows || places)) {
            x.rows = in->rows;
            x.layered |= in->layered;
        }
        if (places && v->dtype == OCT_BOOL && in->kind == CODES)
            x.rows = OPEN;
    }
    return x;
}

static facts decide(const oct_graph *g, int node, const oct_op *op, facts x, int out)
{
    const oct_value *v = &g->value[g->node[node].out[out]];
    const int last = v->shape.rank - 1, axis = (int)oct_node_int(&g->node[node], "axis", -1);
    const int at = axis < 0 ? axis + v->shape.rank : axis;
    if (x.kind == EXACT)
        return x;
    if (op->decision == OCT_SORTS && out == 0) { /* sorted values move as little as the values do */
        x.sorted = x.kind == REAL;
        return x;
    }
    x.kind = CODES;
    if (op->decision == OCT_SORTS)
        x.rows = last >= 0 && at >= 0 && at <= last && v->shape.d[at].n >= 0 ? v->shape.d[at].n : OPEN;
    else if (op->decision == OCT_LISTS)
        x.rows = OPEN;
    return x;
}

static bool has_body(const oct_node *n)
{
    bool any = false;
    for (size_t i = 0; i < n->n_attr; i++)
        any |= n->attr[i].type == OCT_ATTR_GRAPH || n->attr[i].type == OCT_ATTR_GRAPHS;
    return any;
}

static facts find_facts(const oct_graph *g, const facts *f, int node, int out)
{
    const oct_op *op = oct_op_of(g, node);
    const oct_value *v = &g->value[g->node[node].out[out]];
    bool floats;
    if (v->constant || !op)
        return (facts){ .kind = v->constant || !oct_dtype_is_real(v->dtype) ? EXACT : REAL };
    facts x = join_inputs(g, f, node, op, &floats);
    if (op->decision == OCT_DECIDES || (op->decision == OCT_CLASSIFIES && out == 0) || op->decision == OCT_LISTS ||
        op->decision == OCT_SORTS)
        return decide(g, node, op, x, out);
    if (has_body(&g->node[node])) { /* what a body takes from the graph around it is no input, so that a condition is
                                       not all that it computes from */
        x = (facts){ .kind = oct_dtype_is_real(v->dtype) ? REAL : EXACT, .varying = x.varying };
    } else if (is_weighted(op)) {
        x.kind = REAL;
        x.layered |= x.rows != 0 || x.varying;
    } else if (x.kind == EXACT && floats && oct_dtype_is_real(v->dtype)) {
        x.kind = REAL; /* rows of a table of floats, which can be rounded */
    } else if (x.kind == REAL && !oct_dtype_is_real(v->dtype) && floats && !op->converts && !op->is_qdq) {
        x = (facts){ .kind = EXACT }; /* Shape, Size */
    }
    /* A reduction along the rows leaves no order. */
    if (x.rows > 0 ? !has_dim(&v->shape, x.rows) : x.rows == OPEN && op->reduces && !has_dim(&v->shape, -1))
        x.rows = 0;
    x.varying &= has_dim(&v->shape, -1);
    x.layered &= x.rows != 0 || x.varying;
    return x;
}

static oct_status walk(const oct_graph *g, facts **f, oct_err *err)
{
    if (!(*f = oct_calloc(g->n_value + 1, sizeof **f)))
        return oct_nomem(err);
    for (size_t v = 0; v < g->n_value; v++)
        if (g->value[v].producer < 0 && !g->value[v].constant && oct_dtype_is_real(g->value[v].dtype))
            (*f)[v].kind = REAL;
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_node *n = &g->node[g->order[i]];
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k] >= 0)
                (*f)[n->out[k]] = find_facts(g, *f, g->order[i], k);
    }
    return OCT_OK;
}

static oct_output_form form_of(const facts *f)
{
    return f->rows            ? OCT_HOLDS_ROWS
           : f->kind == CODES ? OCT_HOLDS_CODES
           : f->varying       ? OCT_HOLDS_VARYING
           : f->sorted        ? OCT_HOLDS_SORTED
                              : OCT_HOLDS_NUMBERS;
}

oct_status oct_output_forms(const oct_graph *g, oct_output_form *form, oct_err *err)
{
    facts *f;
    OCT_TRY(walk(g, &f, err));
    for (size_t i = 0; i < g->n_output; i++)
        form[i] = form_of(&f[g->output[i]]);
    oct_free(f);
    return OCT_OK;
}

/* Whether the real numbers behind a value are to be found in front of its node. */
static bool goes_on(const oct_graph *g, const facts *f, int v)
{
    const oct_output_form form = form_of(&f[v]);
    return form != OCT_HOLDS_NUMBERS && form != OCT_HOLDS_SORTED && !f[v].layered && g->value[v].producer >= 0;
}

/* Goes back from the values in list[n], which grows at its end; what is not passed is kept. */
static size_t go_back(const oct_graph *g, const facts *f, int *list, size_t n, bool *seen, int *value, bool *rows)
{
    size_t kept = 0;
    for (size_t at = 0; at < n; at++) {
        const int v = list[at];
        if (!goes_on(g, f, v)) {
            value[kept] = v;
            rows[kept] = f[v].rows != 0;
            kept += g->value[v].producer >= 0;
            continue;
        }
        const oct_node *p = &g->node[g->value[v].producer];
        for (int i = 0; i < p->n_in; i++) {
            const int in = p->in[i];
            if (in < 0 || seen[in] || (f[in].kind == EXACT && !f[in].rows))
                continue;
            seen[in] = true;
            list[n++] = in;
        }
    }
    return kept;
}

oct_status oct_output_reals(const oct_graph *g, int *value, bool *rows, size_t *n, oct_err *err)
{
    facts *f;
    OCT_TRY(walk(g, &f, err));
    int *list = oct_calloc(g->n_value + 1, sizeof *list);
    bool *seen = oct_calloc(g->n_value + 1, sizeof *seen);
    size_t first = 0;
    *n = 0;
    for (size_t i = 0; list && seen && i < g->n_output; i++)
        if (!seen[g->output[i]]) {
            seen[g->output[i]] = true;
            list[first++] = g->output[i];
        }
    if (list && seen)
        *n = go_back(g, f, list, first, seen, value, rows);
    const bool memory = list && seen;
    oct_free(list);
    oct_free(seen);
    oct_free(f);
    return memory ? OCT_OK : oct_nomem(err);
}
