/* The walk over a file's operators, and the check that the graph has the shapes that the file states. */
#include "tflite/read/tflite_read.h"

#include "base/io.h"
#include "passes/pass.h"
#include "tflite/read/read_operators.h"

#include <string.h>

enum { OPSET = 17, OPSET_GELU = 20, OPSET_INT16 = 21, LONGEST_NAME = 1000, COPY_FACTOR = 16, COPY_LEAST = 1 << 20 };

/* ---- names ---- */

typedef struct names {
    const char **slot; /* open addressing */
    size_t cap;
} names;

/* Adds a name; false: it is there. */
static bool add_name(names *s, const char *name)
{
    size_t i = oct_hash(OCT_HASH_INIT, name, strlen(name)) & (s->cap - 1);
    for (; s->slot[i]; i = (i + 1) & (s->cap - 1))
        if (strcmp(s->slot[i], name) == 0)
            return false;
    s->slot[i] = name;
    return true;
}

static bool usable(const char *name)
{
    return *name && strnlen(name, LONGEST_NAME) < LONGEST_NAME;
}

/* Gives each tensor a name of its own: ends those that programs know, and the others that of the file, if no other
 * tensor has it. */
static oct_status name_tensors(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_model *m = r->m;
    names s = { .cap = 16 };
    while (s.cap < 3 * m->n_tensor)
        s.cap *= 2;
    if (!(s.slot = oct_arena_calloc(r->arena, s.cap, sizeof *s.slot)))
        return oct_nomem(err);
    for (size_t i = 0; i < m->n_input + m->n_output; i++) {
        const oct_tfl_end *e = i < m->n_input ? &m->input[i] : &m->output[i - m->n_input];
        oct_tfl_found *f = &r->tensor[e->tensor];
        if (!f->name && usable(e->name) && add_name(&s, e->name))
            f->name = e->name;
    }
    for (size_t i = 0; i < m->n_tensor; i++) {
        const char *name = m->tensor[i].name;
        if (!r->tensor[i].name)
            r->tensor[i].name = usable(name) && add_name(&s, name) ? name : oct_arena_printf(r->arena, "tensor_%zu", i);
        if (!r->tensor[i].name)
            return oct_nomem(err);
    }
    return OCT_OK;
}

/* ---- orders that readers ask for ---- */

static void wish(oct_tfl_reader *r, int tensor, const oct_tfl_order *order)
{
    if (tensor < 0 || r->m->tensor[tensor].data)
        return;
    r->tensor[tensor].wish = *order;
    r->tensor[tensor].has_wish = true;
}

/* What those ask for that read a TRANSPOSE. */
static void wish_turned(oct_tfl_reader *r, const oct_tfl_operator *o, const oct_tfl_order *order)
{
    const oct_tfl_tensor *perm = o->n_in > 1 && o->in[1] >= 0 ? &r->m->tensor[o->in[1]] : NULL;
    const int rank = o->in[0] >= 0 ? r->m->tensor[o->in[0]].rank : 0;
    oct_tfl_order from = *order;
    if (!perm || !perm->data || perm->type != OCT_TFL_INT32 || perm->bytes != 4 * (size_t)rank ||
        r->m->tensor[o->out[0]].rank != rank)
        return;
    for (int i = 0; i < rank; i++) {
        const int32_t axis = ((const int32_t *)perm->data)[order->d[i]];
        if (axis < 0 || axis >= rank)
            return;
        from.d[i] = (int8_t)axis;
    }
    wish(r, o->in[0], &from);
}

/* What those ask for that read a RESHAPE that adds or removes axes of one element. */
static void wish_reshaped(oct_tfl_reader *r, const oct_tfl_operator *o, const oct_tfl_order *order)
{
    const oct_tfl_tensor *y = &r->m->tensor[o->out[0]], *x = o->in[0] >= 0 ? &r->m->tensor[o->in[0]] : NULL;
    oct_tfl_order from = oct_tfl_plain();
    int axis[OCT_MAX_RANK], next = 0;
    if (!x || !oct_tfl_same_axes(x, y, axis))
        return;
    for (int i = 0; i < x->rank; i++) {
        if (oct_tfl_is_one(x, i))
            continue;
        while (axis[order->d[next]] < 0)
            next++;
        from.d[i] = (int8_t)axis[order->d[next++]];
    }
    wish(r, o->in[0], &from);
}

static void pass_wish(oct_tfl_reader *r, const oct_tfl_operator *o, const oct_tfl_reading *how)
{
    const int out = o->n_out ? o->out[0] : -1;
    if (out < 0 || !o->n_in)
        return;
    const int rank = r->m->tensor[out].rank;
    const int x = o->in[o->code == OCT_TFL_TRANSPOSE_CONV && o->n_in > 2 ? 2 : 0];
    const oct_tfl_order first = oct_tfl_channels_first(x < 0 ? 0 : r->m->tensor[x].rank);
    const oct_tfl_order order = r->tensor[out].has_wish ? r->tensor[out].wish : oct_tfl_plain();
    if (how->wants == OCT_TFL_WANTS_FIRST)
        wish(r, x, &first);
    else if (how->read == oct_tfl_read_reshape && r->tensor[out].has_wish)
        wish_reshaped(r, o, &order);
    else if (o->code == OCT_TFL_TRANSPOSE)
        wish_turned(r, o, &order);
    else if (how->wants == OCT_TFL_WANTS_ANY && r->tensor[out].has_wish)
        for (int i = 0; i < o->n_in; i++)
            if (o->in[i] >= 0 && r->m->tensor[o->in[i]].rank == rank)
                wish(r, o->in[i], &order);
}

/* ---- the walk ---- */

static oct_status read_operator(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_reading *how = oct_tfl_reading_of(r->op->code);
    if (!how)
        return oct_tfl_unread(r, err, NULL, "this operator is not known here (docs/tflite.md lists those that are)");
    if (r->op->n_out < 1 || (r->op->n_out > 1 && how->read != oct_tfl_read_split && how->read != oct_tfl_read_unpack))
        return oct_tfl_unread(r, err, NULL, "it has %d results", r->op->n_out);
    return how->read(r, err);
}

static int64_t opset_of(const oct_tfl_model *m)
{
    int64_t opset = OPSET;
    for (size_t i = 0; i < m->n_op; i++)
        if (m->op[i].code == OCT_TFL_GELU)
            opset = OPSET_GELU;
    for (size_t i = 0; i < m->n_tensor; i++)
        if (m->tensor[i].quant && oct_tfl_type_bits(m->tensor[i].type) == 16)
            opset = OPSET_INT16;
    return opset;
}

static void hint_damaged(oct_err *err)
{
    oct_hint(err, "the file is damaged, or made by a faulty converter: export the model again");
}

/* The value of a result has the shape that the file states, as far as both are known. */
static oct_status check_shapes(const oct_tfl_reader *r, oct_err *err)
{
    char text[300], shape[160];
    for (size_t i = 0; i < r->m->n_op; i++)
        for (int k = 0; k < r->m->op[i].n_out; k++) {
            const int tensor = r->m->op[i].out[k];
            const oct_tfl_tensor *t = &r->m->tensor[tensor];
            const oct_tfl_found *f = &r->tensor[tensor];
            const oct_shape *s = f->n ? &r->g->value[f->shown[0].value].shape : NULL;
            bool same = !s || s->rank < 0 || s->rank == t->rank;
            for (int a = 0; s && same && a < s->rank; a++) {
                const int axis = f->shown[0].order.d[a];
                same = s->d[a].n < 0 || axis == t->open || s->d[a].n == t->dims[axis];
            }
            if (same)
                continue;
            oct_fail(err, OCT_EMALFORMED, "%s: its result %d is %s by its operands, and the file says otherwise",
                     oct_tfl_operator_text(r->m, i, text, sizeof text), k, oct_shape_text(s, shape, sizeof shape));
            hint_damaged(err);
            return OCT_EMALFORMED;
        }
    return OCT_OK;
}

static oct_status walk(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_model *m = r->m;
    for (size_t i = m->n_op; i-- > 0;) {
        const oct_tfl_reading *how = oct_tfl_reading_of(m->op[i].code);
        if (how)
            pass_wish(r, &m->op[i], how);
    }
    for (size_t i = 0; i < m->n_input; i++)
        OCT_TRY(oct_tfl_read_input(r, i, err));
    for (r->at = 0; r->at < m->n_op; r->at++) {
        r->op = &m->op[r->at];
        OCT_TRY(read_operator(r, err));
    }
    r->op = NULL;
    for (size_t i = 0; i < m->n_output; i++)
        OCT_TRY(oct_tfl_read_output(r, i, err));
    const oct_status fits = oct_infer_shapes(r->g, err);
    if (fits == OCT_EMALFORMED) /* such as weights of another number of channels */
        hint_damaged(err);
    OCT_TRY(fits);
    OCT_TRY(check_shapes(r, err));
    oct_graph_prune(r->g);
    return r->notes->failed ? oct_nomem(err) : OCT_OK;
}

bool oct_tflite_is(const void *data, size_t size)
{
    return oct_tfl_is_model(data, size);
}

oct_status oct_tflite_read(const void *data, size_t size, oct_graph *g, const char **maker, oct_buf *notes,
                           oct_err *err)
{
    oct_tfl_model m;
    OCT_TRY(oct_tfl_model_read(data, size, NULL, g->arena, &m, err));
    oct_arena *work = oct_arena_create();
    oct_tfl_reader r = { .m = &m, .g = g, .arena = work, .notes = notes };
    r.most_copied = (uint64_t)size * COPY_FACTOR + COPY_LEAST;
    r.tensor = work ? oct_arena_calloc(work, m.n_tensor + 1, sizeof *r.tensor) : NULL;
    oct_status s = r.tensor ? oct_graph_set_opset(g, "", opset_of(&m), err) : oct_nomem(err);
    g->name = *m.name ? m.name : "main";
    *maker = m.description;
    if (s == OCT_OK)
        s = name_tensors(&r, err);
    if (s == OCT_OK)
        s = walk(&r, err);
    oct_arena_destroy(work);
    return s;
}
