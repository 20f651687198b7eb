/* Layer by layer: the reference model's values are kept for one batch, the others' compared as they are computed. Each of these runs twice:
 * once as it is, and once with the reference's values put in place of its own once they are compared. There every layer reads what the
 * reference reads, as far as its parameters can hold it, and its error is its own.
 *
 * Values of bodies are shown once an iteration: the k-th time of one model belongs to the k-th of the other. */
#include "eval/eval_int.h"
#include "eval/scaled.h"
#include "ops/op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct side {
    const oct_eval_model *model;
    oct_runner *runner;
    oct_error *error;    /* per tap, of everything before it too */
    oct_error *own;      /* per tap, of the layer alone */
    const char **scheme; /* per tap; NULL: never shown */
    bool news;           /* this run has shown taps that none before it has */
    size_t *shown;       /* per tap: how often in this run */
    oct_scaled_channels *scaled; /* values whose channels are not the float model's as they are */
    size_t n_scaled;
    ev_layers *l;
} side;

/* What the reference has shown of a tap in this run. */
typedef struct ev_shown {
    ev_floats values;
    int64_t *end;  /* [n]: elements up to that time */
    size_t n, cap;
    bool full;     /* there was no room for more */
} ev_shown;

/* Elements of all that is shown again, such as in loops: beyond them later iterations are not compared. */
enum { MOST_AGAIN = 1 << 24 };

struct ev_layers {
    oct_arena *arena;
    const char **tap; /* names in the reference model */
    size_t n_tap, cap_tap, cap_varies;
    ev_shown *kept;   /* per tap */
    int64_t again;    /* elements in them but for the first time of each */
    bool *varies;     /* per tap: it depends on an input */
    side *side;
    size_t n_side;
    ev_floats scratch;
    int64_t rows;
    size_t n;
    bool replacing;   /* this run reads the reference's values */
    bool no_own;      /* a model cannot run so */
};

/* The value of a graph that stands for a name: itself, or in operator form the integers that the runtime shows under it. -1:
 * none. */
static int find_value(const oct_graph *g, oct_arena *a, const char *name)
{
    int at = oct_graph_find(g, name);
    if (at >= 0)
        return at;
    const char *integers = oct_arena_printf(a, "%s_quantized", name);
    return integers ? oct_graph_find(g, integers) : -1;
}

/* A value in a graph or in one that is nested in it. */
typedef struct place {
    const oct_graph *g;
    int value;
    size_t n; /* how many of them compute one of that name; 0: none, and the rest is not set */
} place;

/* Where a name is computed. path (may be NULL): the path to g, to which that to the place is added if there is one. */
static void find_place(const oct_graph *g, oct_arena *a, const char *name, oct_buf *path, place *found)
{
    const int at = find_value(g, a, name);
    const oct_graph *nested;
    if (at >= 0 && g->value[at].producer >= 0 && found->n++ == 0)
        *found = (place){ g, at, 1 };
    for (size_t i = 0; i < g->n_order && g->n_nested; i++)
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++) {
            const size_t here = path ? path->len : 0, before = found->n;
            if (path)
                oct_node_put_place(g, g->order[i], k, path);
            find_place(nested, a, name, path, found);
            if (path && (before || !found->n))
                oct_buf_cut(path, here);
        }
}

static place place_of(const oct_graph *g, oct_arena *a, const char *name)
{
    place p = { .n = 0 };
    find_place(g, a, name, NULL, &p);
    return p;
}

/* Whether a value is worth comparing: computed, real, and computed in another model too. Names that several graphs of a nest use for values of
 * their own are left out. */
static bool is_common(const ev_layers *l, const oct_eval_model *m, size_t n, const oct_value *v)
{
    if (v->dead || v->producer < 0 || v->constant || (v->dtype != OCT_F32 && v->dtype != OCT_UNDEFINED && v->dtype != OCT_F16))
        return false;
    bool any = false;
    for (size_t k = 0; k < n; k++) {
        const size_t places = place_of(m[k].graph, l->arena, v->name).n;
        if (places > 1)
            return false;
        any |= k && places;
    }
    return any;
}

/* Which values follow from inputs. Others may lie in constants, which nobody may write to. */
static bool *find_varying(const ev_layers *l, const oct_graph *g)
{
    bool *varies = oct_arena_calloc(l->arena, g->n_value + 1, sizeof *varies);
    for (size_t k = 0; varies && k < g->n_input; k++)
        varies[g->input[k]] = !g->value[g->input[k]].constant;
    for (size_t i = 0; varies && i < g->n_order; i++) {
        const oct_node *n = &g->node[g->order[i]];
        bool any = false;
        for (int k = 0; k < n->n_in; k++)
            any |= n->in[k] >= 0 && varies[n->in[k]];
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k] >= 0)
                varies[n->out[k]] = any;
    }
    return varies;
}

/* Of g, the reference's graph or one nested in it. */
static oct_status add_taps(ev_layers *l, const oct_graph *g, const oct_eval_model *m, size_t n, oct_err *err)
{
    const bool *varies = find_varying(l, g);
    if (!varies)
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_node *node = &g->node[g->order[i]];
        const oct_graph *nested;
        for (int k = 0; k < node->n_out; k++) {
            const int v = node->out[k];
            if (v < 0 || !is_common(l, m, n, &g->value[v]))
                continue;
            size_t taps = l->n_tap;
            if (!OCT_GROW(l->arena, l->tap, taps, l->cap_tap) || !OCT_GROW(l->arena, l->varies, l->n_tap, l->cap_varies))
                return oct_nomem(err);
            l->varies[l->n_tap] = varies[v] && !g->outer;
            l->tap[l->n_tap++] = g->value[v].name;
        }
        for (size_t k = 0; (nested = oct_node_graph_at(node, k)); k++)
            OCT_TRY(add_taps(l, nested, m, n, err));
    }
    return OCT_OK;
}

static oct_status choose_taps(ev_layers *l, const oct_eval_model *m, size_t n, oct_err *err)
{
    OCT_TRY(add_taps(l, m[0].graph, m, n, err));
    l->kept = oct_arena_calloc(l->arena, l->n_tap + 1, sizeof *l->kept);
    return l->kept ? OCT_OK : oct_nomem(err);
}

static int find_tap(const ev_layers *l, const char *name)
{
    for (size_t i = 0; i < l->n_tap; i++)
        if (l->tap[i] == name || strcmp(l->tap[i], name) == 0)
            return (int)i;
    return -1;
}

/* A shown value as real numbers of the float model. */
static oct_status take_value(const side *s, const char *value, const oct_operand *t, float *to, oct_err *err)
{
    const oct_scaled_channels *scaled = oct_scaled_find(s->scaled, s->n_scaled, value);
    OCT_TRY(oct_operand_to_f32(t, to, err));
    if (scaled)
        oct_scaled_undo(scaled, t->rank, t->dims, false, to);
    return OCT_OK;
}

/* Room for n more elements behind those that are kept. */
static oct_status extend(ev_shown *k, int64_t n, oct_err *err)
{
    const size_t used = k->n ? (size_t)k->end[k->n - 1] : 0, need = used + (size_t)n;
    if (!used || need <= k->values.cap)
        return ev_reserve(&k->values, need, err);
    const size_t cap = need > 2 * k->values.cap ? need : 2 * k->values.cap;
    float *v = oct_realloc(k->values.v, used * sizeof *v, cap * sizeof *v);
    if (!v)
        return oct_nomem(err);
    k->values = (ev_floats){ v, cap };
    return OCT_OK;
}

static oct_status keep_value(void *arg, const char *value, const oct_operand *t, oct_err *err)
{
    side *s = arg;
    ev_layers *l = s->l;
    int i = find_tap(l, value);
    if (i < 0)
        return OCT_OK;
    ev_shown *k = &l->kept[i];
    const int64_t used = k->n ? k->end[k->n - 1] : 0;
    k->full |= k->n && t->count > MOST_AGAIN - l->again;
    if (k->full)
        return OCT_OK;
    l->again += k->n ? t->count : 0;
    OCT_TRY(extend(k, t->count, err));
    OCT_TRY(take_value(s, value, t, k->values.v + used, err));
    if (!OCT_GROW(l->arena, k->end, k->n, k->cap))
        return oct_nomem(err);
    k->end[k->n++] = used + t->count;
    return OCT_OK;
}

/* What is equal stays: it may lie in the inputs of the run. */
static oct_status replace_value(const side *s, int i, const char *value, const oct_operand *t, oct_err *err)
{
    const ev_layers *l = s->l;
    const size_t bytes = (size_t)t->count * sizeof(float);
    const oct_scaled_channels *scaled = oct_scaled_find(s->scaled, s->n_scaled, value);
    if (!l->varies[i] || memcmp(l->kept[i].values.v, l->scratch.v, bytes) == 0)
        return OCT_OK;
    memcpy(l->scratch.v, l->kept[i].values.v, bytes);
    if (scaled)
        oct_scaled_undo(scaled, t->rank, t->dims, true, l->scratch.v);
    const oct_status st = oct_operand_from_f32(t, l->scratch.v, err);
    return st == OCT_EUNSUPPORTED ? OCT_OK : st; /* then the layers that read it have its error too */
}

static oct_status compare_value(void *arg, const char *value, const oct_operand *t, oct_err *err)
{
    side *s = arg;
    ev_layers *l = s->l;
    int i = find_tap(l, value);
    const ev_shown *kept = i >= 0 ? &l->kept[i] : NULL;
    const size_t at = kept ? s->shown[i]++ : 0;
    if (!kept || at >= kept->n)
        return OCT_OK;
    const int64_t begin = at ? kept->end[at - 1] : 0;
    if (kept->end[at] - begin != t->count)
        return OCT_OK;
    OCT_TRY(ev_reserve(&l->scratch, (size_t)t->count, err));
    OCT_TRY(take_value(s, value, t, l->scratch.v, err));
    if (!s->scheme[i]) {
        s->scheme[i] = oct_operand_scheme(t);
        s->news = true;
    }
    int64_t first, row = oct_row_elements(t->rank, t->dims, l->rows, &first);
    for (size_t k = 0; k < l->n && (int64_t)(k + 1) * row <= t->count; k++) {
        oct_error e = { 0 };
        oct_error_add(&e, kept->values.v + (size_t)begin + k * (size_t)row, l->scratch.v + k * (size_t)row, (size_t)row);
        oct_error_join(l->replacing ? &s->own[i] : &s->error[i], &e);
    }
    return l->replacing ? replace_value(s, i, value, t, err) : OCT_OK;
}

static oct_status create_side(ev_layers *l, side *s, const oct_eval_model *m, oct_pool *pool, const oct_input_desc *feed,
                              size_t n_feed, oct_err *err)
{
    s->l = l;
    s->model = m;
    s->error = oct_arena_calloc(l->arena, l->n_tap + 1, sizeof *s->error);
    s->own = oct_arena_calloc(l->arena, l->n_tap + 1, sizeof *s->own);
    s->scheme = oct_arena_calloc(l->arena, l->n_tap + 1, sizeof *s->scheme);
    s->shown = oct_arena_calloc(l->arena, l->n_tap + 1, sizeof *s->shown);
    if (!s->error || !s->own || !s->scheme || !s->shown)
        return oct_nomem(err);
    OCT_TRY(oct_scaled_read(m->scaled, l->arena, &s->scaled, &s->n_scaled, err));
    oct_plan_opts opts = { .pool = pool, .taps = l->tap, .n_taps = l->n_tap, .bf16 = m->bf16 };
    oct_status st = oct_runner_create(m->graph, &opts, feed, n_feed, &s->runner, err);
    if (st != OCT_OK)
        oct_within(err, "%s", m->name);
    else
        oct_runner_set_tap(s->runner, s == l->side ? keep_value : compare_value, s);
    return st;
}

oct_status ev_layers_create(const oct_eval_model *models, size_t n_models, oct_pool *pool, const oct_input_desc *feed,
                            size_t n_feed, ev_layers **out, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    ev_layers *l = a ? oct_arena_calloc(a, 1, sizeof *l) : NULL;
    if (!l) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    l->arena = a;
    oct_status s = choose_taps(l, models, n_models, err);
    if (s == OCT_OK && !(l->side = oct_arena_calloc(a, n_models, sizeof *l->side)))
        s = oct_nomem(err);
    for (size_t k = 0; k < n_models && s == OCT_OK; k++) {
        l->n_side++;
        s = create_side(l, &l->side[k], &models[k], pool, feed, n_feed, err);
    }
    if (s != OCT_OK) {
        ev_layers_destroy(l);
        return s;
    }
    *out = l;
    return OCT_OK;
}

void ev_layers_destroy(ev_layers *l)
{
    if (!l)
        return;
    for (size_t k = 0; k < l->n_side; k++)
        oct_runner_destroy(l->side[k].runner);
    for (size_t i = 0; l->kept && i < l->n_tap; i++)
        ev_release(&l->kept[i].values);
    ev_release(&l->scratch);
    oct_arena_destroy(l->arena);
}

/* ---- running ---- */

/* The node that computes a value: what only quantizes or dequantizes it is passed through. */
static const oct_node *computing_node(const oct_graph *g, int value)
{
    for (int hops = 0; hops < 4; hops++) {
        int p = g->value[value].producer;
        if (p < 0)
            return NULL;
        const oct_node *n = &g->node[p];
        const oct_op *op = oct_op_of(g, p);
        if (!op || !op->is_qdq || n->n_in < 1 || n->in[0] < 0)
            return n;
        if (g->value[n->in[0]].producer < 0)
            return n;
        value = n->in[0];
    }
    return NULL;
}

/* What the step of that name computes on; NULL: there is none. */
static const char *step_scheme(const oct_plan *p, const char *name)
{
    for (size_t i = 0; *name && i < oct_plan_n_steps(p); i++) {
        const oct_step_info s = oct_plan_step(p, i);
        if (strcmp(s.name, name) == 0)
            return s.scheme;
    }
    return NULL;
}

/* A layer is what its step computes on, and its value what that leaves: integers make real results, too. A branch has steps once it has been taken. */
static void name_schemes(const ev_layers *l, side *s, const oct_plan *p)
{
    for (size_t i = 0; i < l->n_tap; i++) {
        const place at = s->scheme[i] ? place_of(s->model->graph, l->arena, l->tap[i]) : (place){ .n = 0 };
        const oct_node *n = at.n ? computing_node(at.g, at.value) : NULL;
        const char *own = n ? step_scheme(p, n->name) : NULL;
        s->scheme[i] = own ? own : s->scheme[i];
    }
    s->news = false;
}

/* own: what the float model reads. */
static oct_status run_side(ev_layers *l, side *s, const oct_array *arrays, const oct_array *own, oct_err *err)
{
    oct_plan *p;
    l->replacing = false;
    memset(s->shown, 0, l->n_tap * sizeof *s->shown);
    OCT_TRY(oct_runner_run(s->runner, arrays, &p, err));
    if (s->news)
        name_schemes(l, s, p);
    if (s == l->side || l->no_own)
        return OCT_OK;
    l->replacing = true;
    memset(s->shown, 0, l->n_tap * sizeof *s->shown);
    bool shown;
    const oct_status st = oct_runner_begin(s->runner, own, &p, err);
    if (st == OCT_OK)
        return oct_plan_advance(p, NULL, &shown, err);
    l->no_own = st == OCT_EUNSUPPORTED; /* it runs in stages, whose results may lie in constants */
    return l->no_own ? OCT_OK : st;
}

oct_status ev_layers_feed(ev_layers *l, const oct_array *const *arrays, int64_t rows, size_t n, oct_err *err)
{
    l->rows = rows;
    l->n = n;
    l->again = 0;
    for (size_t i = 0; i < l->n_tap; i++) {
        l->kept[i].n = 0;
        l->kept[i].full = false;
    }
    for (size_t k = 0; k < l->n_side; k++) {
        const oct_status s = run_side(l, &l->side[k], arrays[k], arrays[0], err);
        if (s != OCT_OK) {
            oct_within(err, "%s", l->side[k].model->name);
            return s;
        }
    }
    return OCT_OK;
}

/* ---- the list ---- */

static int worst_first(const void *x, const void *y)
{
    const oct_eval_layer *a = x, *b = y;
    const double x_db[2] = { a->has_own ? a->own_sqnr_db : a->sqnr_db, a->sqnr_db };
    const double y_db[2] = { b->has_own ? b->own_sqnr_db : b->sqnr_db, b->sqnr_db };
    for (int k = 0; k < 2; k++) {
        const double p = isnan(x_db[k]) ? -INFINITY : x_db[k], q = isnan(y_db[k]) ? -INFINITY : y_db[k];
        if (p != q)
            return p < q ? -1 : 1;
    }
    return strcmp(a->value, b->value);
}

oct_status ev_layers_result(const ev_layers *l, size_t k, oct_arena *arena, oct_eval_layer **layers, size_t *n_layers,
                            oct_err *err)
{
    const side *s = &l->side[k];
    oct_eval_layer *list = oct_arena_calloc(arena, l->n_tap + 1, sizeof *list);
    size_t n = 0;
    if (!list)
        return oct_nomem(err);
    for (size_t i = 0; i < l->n_tap; i++) {
        oct_buf path = OCT_BUF_INIT;
        place at = { .n = 0 };
        if (s->scheme[i])
            find_place(s->model->graph, arena, l->tap[i], &path, &at);
        const char *where = path.failed ? NULL : oct_arena_strdup(arena, oct_buf_str(&path));
        oct_buf_free(&path);
        if (!where)
            return oct_nomem(err);
        if (!at.n)
            continue;
        const oct_node *node = computing_node(at.g, at.value);
        oct_eval_layer *e = &list[n++];
        *e = (oct_eval_layer){ .value = l->tap[i], .other = l->tap[i], .order = i, .scheme = s->scheme[i], .error = s->error[i], .range = { .scale = NAN, .lo = NAN, .hi = NAN },
                               .clipped = NAN, .saturated = NAN, .used = NAN };
        e->name = node && node->name[0] ? node->name : e->value;
        if (*where && !(e->name = oct_arena_printf(arena, "%s%s", where, e->name)))
            return oct_nomem(err);
        e->op = node ? node->op : "";
        e->sqnr_db = oct_error_sqnr(&e->error);
        e->has_own = !l->no_own && s->own[i].n > 0;
        e->own_sqnr_db = e->has_own ? oct_error_sqnr(&s->own[i]) : NAN;
    }
    qsort(list, n, sizeof *list, worst_first);
    *layers = list;
    *n_layers = n;
    return OCT_OK;
}
