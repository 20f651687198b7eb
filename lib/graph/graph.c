/* The graph's storage: values, nodes, names, editing. Attributes are in attr.c, checks in check.c. */
#include "graph/graph_int.h"

#include "base/io.h"

#include <stdio.h>
#include <string.h>

oct_graph *oct_graph_create(void)
{
    oct_arena *a = oct_arena_create();
    oct_graph *g = a ? oct_arena_calloc(a, 1, sizeof *g) : NULL;
    if (!g) {
        oct_arena_destroy(a);
        return NULL;
    }
    g->arena = a;
    g->name = "";
    return g;
}

void oct_graph_destroy(oct_graph *g)
{
    if (g)
        oct_arena_destroy(g->arena);
}

/* ---- names ---- */

static size_t slot_of(const oct_graph *g, const char *name)
{
    size_t mask = g->map_cap - 1, i = oct_hash(OCT_HASH_INIT, name, strlen(name)) & mask;
    while (g->map[i] >= 0 && strcmp(g->value[g->map[i]].name, name) != 0)
        i = (i + 1) & mask;
    return i;
}

int oct_graph_find(const oct_graph *g, const char *name)
{
    if (g->map_cap == 0)
        return -1;
    int v = g->map[slot_of(g, name)];
    return v >= 0 && !g->value[v].dead ? v : -1;
}

static bool map_reserve(oct_graph *g)
{
    if (2 * (g->map_used + 1) < g->map_cap)
        return true;
    size_t cap = g->map_cap ? 2 * g->map_cap : g->outer ? 16 : 64, bytes;
    int *fresh = oct_mul_size(cap, sizeof *fresh, &bytes) ? oct_arena_alloc(g->arena, bytes) : NULL;
    if (!fresh)
        return false;
    for (size_t i = 0; i < cap; i++)
        fresh[i] = -1;
    g->map = fresh;
    g->map_cap = cap;
    for (size_t v = 0; v < g->n_value; v++)
        g->map[slot_of(g, g->value[v].name)] = (int)v;
    return true;
}

/* ---- values ---- */

oct_status oct_graph_add_value(oct_graph *g, const char *name, oct_dtype t, int *value, oct_err *err)
{
    if (!map_reserve(g))
        return oct_nomem(err);
    size_t slot = slot_of(g, name);
    int old = g->map[slot];
    if (old >= 0 && !g->value[old].dead)
        return oct_fail(err, OCT_EMALFORMED, "the name '%s' is used for two values", name);
    if (g->n_value >= INT32_MAX / 2 || !OCT_GROW(g->arena, g->value, g->n_value, g->cap_value))
        return oct_nomem(err);
    oct_value *v = &g->value[g->n_value];
    *v = (oct_value){ .dtype = t, .shape.rank = -1, .producer = -1, .outer = -1 };
    if (!(v->name = oct_arena_strdup(g->arena, name)) || !oct_names_add(g, v->name))
        return oct_nomem(err);
    g->map[slot] = (int)g->n_value;
    if (old < 0)
        g->map_used++;
    *value = (int)g->n_value++;
    return OCT_OK;
}

/* base, or base_1, base_2, ... Nested names may not hide outer ones: it is new in the whole nest. The step doubles
 * while numbers are taken and is then halved, since thousands of values may ask for one base: what comes out is a free
 * number behind a taken one, the first where there are no gaps. */
static oct_status free_name(oct_graph *g, const char *base, const char **found, oct_err *err)
{
    const size_t room = strlen(base) + 16;
    unsigned low = 0, high = 1;
    bool taken;
    char *name;
    *found = base;
    OCT_TRY(oct_names_taken(g, base, &taken, err));
    if (!taken)
        return OCT_OK;
    if (!(*found = name = oct_arena_alloc(g->arena, room)))
        return oct_nomem(err);
    for (;; low = high, high *= 2) {
        snprintf(name, room, "%s_%u", base, high);
        OCT_TRY(oct_names_taken(g, name, &taken, err));
        if (!taken)
            break;
    }
    while (high - low > 1) {
        const unsigned middle = low + (high - low) / 2;
        snprintf(name, room, "%s_%u", base, middle);
        OCT_TRY(oct_names_taken(g, name, &taken, err));
        *(taken ? &low : &high) = middle;
    }
    snprintf(name, room, "%s_%u", base, high);
    return OCT_OK;
}

oct_status oct_graph_new_value(oct_graph *g, const char *base, oct_dtype t, int *value, oct_err *err)
{
    const char *name;
    OCT_TRY(free_name(g, base, &name, err));
    return oct_graph_add_value(g, name, t, value, err);
}

oct_status oct_graph_rename(oct_graph *g, int value, const char *base, oct_err *err)
{
    const char *name = base;
    if (strcmp(g->value[value].name, base) != 0)
        OCT_TRY(free_name(g, base, &name, err));
    if (!(name = oct_arena_strdup(g->arena, name)) || !map_reserve(g) || !oct_names_add(g, name))
        return oct_nomem(err);
    /* The old name's place in the map stays, and leads nowhere. */
    oct_names_drop(g, g->value[value].name);
    g->value[value].name = name;
    size_t slot = slot_of(g, name);
    g->map_used += g->map[slot] < 0;
    g->map[slot] = value;
    return OCT_OK;
}

oct_status oct_tensor_new(oct_arena *a, oct_dtype t, int rank, const int64_t *dims, oct_tensor **out, oct_err *err)
{
    oct_tensor *x = oct_arena_calloc(a, 1, sizeof *x);
    if (!x)
        return oct_nomem(err);
    x->dtype = t;
    x->rank = rank;
    if (!oct_count(dims, rank, &x->count) || !oct_dtype_bytes(t, x->count, &x->bytes))
        return oct_fail(err, OCT_EMALFORMED, "a tensor of type %s is larger than memory can be", oct_dtype_name(t));
    x->dims = oct_arena_memdup(a, dims, (size_t)rank * sizeof *dims);
    x->data = oct_arena_aligned(a, x->bytes, 64);
    if (!x->dims || !x->data)
        return oct_nomem(err);
    *out = x;
    return OCT_OK;
}

enum { SQUARE = 8 }; /* bytes of a word, which is a row of a square */

/* Swaps halves of words a and b: the bytes of `mask` in b with those `shift` bits above in a. */
static inline void swap_parts(uint64_t *a, uint64_t *b, int shift, uint64_t mask)
{
    const uint64_t differ = (*a >> shift ^ *b) & mask;
    *a ^= differ << shift;
    *b ^= differ;
}

/* Squares of 4, of 2, then single bytes change sides of the diagonal. */
static inline void transpose_square(const uint8_t *from, int64_t columns, uint8_t *to, int64_t rows)
{
    uint64_t w[SQUARE];
    for (int64_t i = 0; i < SQUARE; i++)
        memcpy(&w[i], from + i * columns, sizeof w[i]);
    for (size_t i = 0; i < 4; i++)
        swap_parts(&w[i], &w[i + 4], 32, 0x00000000ffffffff);
    for (size_t i = 0; i < SQUARE; i += i % 4 == 1 ? 3 : 1)
        swap_parts(&w[i], &w[i + 2], 16, 0x0000ffff0000ffff);
    for (size_t i = 0; i < SQUARE; i += 2)
        swap_parts(&w[i], &w[i + 1], 8, 0x00ff00ff00ff00ff);
    for (int64_t i = 0; i < SQUARE; i++)
        memcpy(to + i * rows, &w[i], sizeof w[i]);
}

/* In tiles, whose lines of either side stay in the cache. */
static void transpose(const uint8_t *from, int64_t rows, int64_t columns, uint8_t *to)
{
    enum { TILE = 64 };
    for (int64_t i0 = 0; i0 < rows; i0 += TILE)
        for (int64_t k0 = 0; k0 < columns; k0 += TILE) {
            const int64_t i1 = rows - i0 < TILE ? rows : i0 + TILE, k1 = columns - k0 < TILE ? columns : k0 + TILE;
            for (int64_t k = k0, i; k < k1; k += SQUARE) {
                for (i = i0; i + SQUARE <= i1 && k + SQUARE <= k1; i += SQUARE)
                    transpose_square(from + i * columns + k, columns, to + k * rows + i, rows);
                for (; i < i1; i++)
                    for (int64_t j = k; j < k1 && j < k + SQUARE; j++)
                        to[j * rows + i] = from[i * columns + j];
            }
        }
}

oct_status oct_tensor_transposed(oct_arena *a, const oct_tensor *t, const oct_tensor **out, oct_err *err)
{
    int64_t dims[OCT_MAX_RANK];
    oct_tensor *x;
    for (int i = 0; i < t->rank; i++)
        dims[i] = t->dims[i < t->rank - 2 ? i : 2 * t->rank - 3 - i];
    OCT_TRY(oct_tensor_new(a, t->dtype, t->rank, dims, &x, err));
    const int64_t rows = t->dims[t->rank - 2], columns = t->dims[t->rank - 1];
    const uint8_t *from = t->data;
    uint8_t *to = (uint8_t *)(uintptr_t)x->data;
    for (int64_t at = 0; at < t->count; at += rows * columns)
        transpose(from + at, rows, columns, to + at);
    *out = x;
    return OCT_OK;
}

void oct_graph_set_const(oct_graph *g, int value, const oct_tensor *t)
{
    oct_value *v = &g->value[value];
    v->constant = t;
    v->recipe = NULL;
    v->dtype = t->dtype;
    v->known = NULL;
    v->n_known = 0;
    oct_graph_set_dims(g, value, t->rank, t->dims, NULL);
    g->changed = true;
}

oct_status oct_graph_new_const(oct_graph *g, const char *base, oct_dtype t, int rank, const int64_t *dims,
                               const void *data, int *value, oct_err *err)
{
    oct_tensor *x;
    OCT_TRY(oct_tensor_new(g->arena, t, rank, dims, &x, err));
    if (x->bytes)
        memcpy((void *)(uintptr_t)x->data, data, x->bytes);
    OCT_TRY(oct_graph_new_value(g, base, t, value, err));
    oct_graph_set_const(g, *value, x);
    return OCT_OK;
}

oct_status oct_graph_new_const_f32(oct_graph *g, const char *base, int rank, const int64_t *dims, const float *data,
                                   int *value, oct_err *err)
{
    return oct_graph_new_const(g, base, OCT_F32, rank, dims, data, value, err);
}

oct_status oct_graph_new_const_s64(oct_graph *g, const char *base, int rank, const int64_t *dims, const int64_t *data,
                                   int *value, oct_err *err)
{
    return oct_graph_new_const(g, base, OCT_S64, rank, dims, data, value, err);
}

oct_status oct_graph_set_shape(oct_graph *g, int value, int rank, const oct_dim *d, oct_err *err)
{
    oct_value *v = &g->value[value];
    if (rank < 0) {
        v->shape = (oct_shape){ -1, NULL };
        return OCT_OK;
    }
    for (int i = 0; i < rank; i++)
        if (d[i].n > OCT_MAX_DIM)
            return oct_fail(err, OCT_EMALFORMED, "value '%s' would have a dimension of %lld", v->name,
                            (long long)d[i].n);
    if (v->shape.rank != rank || !v->shape.d) {
        oct_dim *fresh = oct_arena_alloc(g->arena, (size_t)(rank ? rank : 1) * sizeof *fresh);
        if (!fresh)
            return oct_nomem(err);
        v->shape = (oct_shape){ rank, fresh };
    }
    if (rank && v->shape.d != d)
        memmove(v->shape.d, d, (size_t)rank * sizeof *d);
    return OCT_OK;
}

oct_status oct_graph_set_dims(oct_graph *g, int value, int rank, const int64_t *dims, oct_err *err)
{
    oct_dim local[OCT_MAX_RANK], *d = local;
    if (rank > OCT_MAX_RANK && !(d = oct_arena_calloc(g->arena, (size_t)rank, sizeof *d)))
        return oct_nomem(err);
    for (int i = 0; i < rank; i++)
        d[i] = (oct_dim){ dims[i], NULL };
    return oct_graph_set_shape(g, value, rank, d, err);
}

bool oct_shape_known(const oct_shape *s, int64_t dims[OCT_MAX_RANK])
{
    if (s->rank < 0 || s->rank > OCT_MAX_RANK)
        return false;
    for (int i = 0; i < s->rank; i++) {
        if (s->d[i].n < 0)
            return false;
        if (dims)
            dims[i] = s->d[i].n;
    }
    return true;
}

const char *oct_shape_text(const oct_shape *s, char *dst, size_t size)
{
    if (s->rank < 0) {
        snprintf(dst, size, "[unknown]");
        return dst;
    }
    size_t n = (size_t)snprintf(dst, size, "[");
    for (int i = 0; i < s->rank && n < size; i++) {
        const char *sep = i ? "," : "";
        if (s->d[i].n >= 0)
            n += (size_t)snprintf(dst + n, size - n, "%s%lld", sep, (long long)s->d[i].n);
        else
            n += (size_t)snprintf(dst + n, size - n, "%s%s", sep, s->d[i].sym ? s->d[i].sym : "?");
    }
    if (n < size)
        snprintf(dst + n, size - n, "]");
    return dst;
}

/* ---- uses ---- */

oct_status oct_graph_add_use(oct_graph *g, int value, int node, int slot, oct_err *err)
{
    oct_value *v = &g->value[value];
    if (!OCT_GROW(g->arena, v->uses, v->n_uses, v->cap_uses))
        return oct_nomem(err);
    v->uses[v->n_uses++] = (oct_use){ node, slot };
    return OCT_OK;
}

void oct_graph_drop_use(oct_graph *g, int value, int node, int slot)
{
    oct_value *v = &g->value[value];
    for (size_t d = 0; d < v->n_uses; d++) {
        const size_t last = v->n_uses - 1 - d; /* from both ends: passes walk forward, pruning backward */
        const size_t i = v->uses[d].node == node && v->uses[d].slot == slot ? d : last;
        if (v->uses[i].node != node || v->uses[i].slot != slot)
            continue;
        memmove(v->uses + i, v->uses + i + 1, (v->n_uses - i - 1) * sizeof *v->uses);
        v->n_uses--;
        return;
    }
}

/* ---- nodes ---- */

static int *minus_ones(oct_graph *g, int n)
{
    int *p = oct_arena_alloc(g->arena, (size_t)(n ? n : 1) * sizeof *p);
    for (int i = 0; p && i < n; i++)
        p[i] = -1;
    return p;
}

/* Where a node stands in the order; n_order: nowhere. Passes walk along it: the next node to be looked for is near the
 * last. */
static size_t position(oct_graph *g, int node)
{
    const size_t from = g->near < g->n_order ? g->near : 0;
    for (size_t d = 0; d <= from || from + d < g->n_order; d++) {
        if (from + d < g->n_order && g->order[from + d] == node)
            return g->near = from + d;
        if (d <= from && from - d < g->n_order && g->order[from - d] == node)
            return g->near = from - d;
    }
    return g->n_order;
}

int oct_graph_next(oct_graph *g, int node)
{
    const size_t at = position(g, node) + 1;
    return at < g->n_order ? g->order[at] : -1;
}

oct_status oct_graph_add_node(oct_graph *g, const char *op, const char *domain, const char *name, int n_in, int n_out,
                              int before, int *node, oct_err *err)
{
    if (g->n_node >= INT32_MAX / 2 || !OCT_GROW(g->arena, g->node, g->n_node, g->cap_node) ||
        !OCT_GROW(g->arena, g->order, g->n_order, g->cap_order))
        return oct_nomem(err);
    oct_node *n = &g->node[g->n_node];
    *n = (oct_node){ .n_in = n_in, .n_out = n_out };
    n->overload = "";
    n->op = oct_arena_strdup(g->arena, op);
    n->domain = oct_arena_strdup(g->arena, domain);
    n->name = oct_arena_strdup(g->arena, name);
    n->in = minus_ones(g, n_in);
    n->out = minus_ones(g, n_out);
    if (!n->op || !n->domain || !n->name || !n->in || !n->out)
        return oct_nomem(err);
    size_t at = before >= 0 ? position(g, before) : g->n_order;
    memmove(g->order + at + 1, g->order + at, (g->n_order - at) * sizeof *g->order);
    g->order[at] = (int)g->n_node;
    g->n_order++;
    *node = (int)g->n_node++;
    g->changed = true;
    return OCT_OK;
}

oct_status oct_graph_set_input(oct_graph *g, int node, int slot, int value, oct_err *err)
{
    oct_node *n = &g->node[node];
    if (slot >= n->n_in) {
        int *in = minus_ones(g, slot + 1);
        if (!in)
            return oct_nomem(err);
        memcpy(in, n->in, (size_t)n->n_in * sizeof *in);
        n->in = in;
        n->n_in = slot + 1;
    }
    if (n->in[slot] == value)
        return OCT_OK;
    if (value >= 0)
        OCT_TRY(oct_graph_add_use(g, value, node, slot, err));
    if (n->in[slot] >= 0)
        oct_graph_drop_use(g, n->in[slot], node, slot);
    n->in[slot] = value;
    n->changed = g->changed = true;
    return OCT_OK;
}

void oct_graph_cut_inputs(oct_graph *g, int node, int count)
{
    oct_node *n = &g->node[node];
    for (int i = count; i < n->n_in; i++)
        if (n->in[i] >= 0)
            oct_graph_drop_use(g, n->in[i], node, i);
    if (count < n->n_in) {
        n->n_in = count;
        n->changed = g->changed = true;
    }
}

oct_status oct_graph_set_output(oct_graph *g, int node, int slot, int value, oct_err *err)
{
    oct_node *n = &g->node[node];
    if (slot >= n->n_out) {
        int *out = minus_ones(g, slot + 1);
        if (!out)
            return oct_nomem(err);
        memcpy(out, n->out, (size_t)n->n_out * sizeof *out);
        n->out = out;
        n->n_out = slot + 1;
    }
    if (n->out[slot] == value)
        return OCT_OK;
    if (n->out[slot] >= 0)
        g->value[n->out[slot]].producer = -1;
    if (value >= 0) {
        int old = g->value[value].producer;
        if (old >= 0)
            for (int i = 0; i < g->node[old].n_out; i++)
                if (g->node[old].out[i] == value) {
                    g->node[old].out[i] = -1;
                    g->node[old].changed = true;
                }
        g->value[value].producer = node;
    }
    n->out[slot] = value;
    n->changed = g->changed = true;
    return OCT_OK;
}

oct_status oct_graph_replace_uses(oct_graph *g, int from, int to, oct_err *err)
{
    while (from != to && g->value[from].n_uses) {
        oct_use u = g->value[from].uses[0];
        if (u.slot >= 0)
            OCT_TRY(oct_graph_set_input(g, u.node, u.slot, to, err));
        else
            OCT_TRY(oct_graph_recapture(g, u.node, from, to, err));
    }
    return OCT_OK;
}

void oct_graph_remove_node(oct_graph *g, int node)
{
    oct_node *n = &g->node[node];
    oct_graph_cut_inputs(g, node, 0);
    for (int i = 0; i < n->n_captured; i++)
        oct_graph_drop_use(g, n->captured[i], node, -1);
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0)
            g->value[n->out[i]].producer = -1;
    n->n_out = n->n_captured = 0;
    n->dead = true;
    g->changed = true;
    size_t at = position(g, node);
    if (at < g->n_order)
        memmove(g->order + at, g->order + at + 1, (--g->n_order - at) * sizeof *g->order);
}

void oct_graph_remove_value(oct_graph *g, int value)
{
    if (!g->value[value].dead)
        oct_names_drop(g, g->value[value].name);
    g->value[value].dead = true;
    g->changed = true;
}

static bool is_needed(const oct_graph *g, const oct_node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0 && (g->value[n->out[i]].n_uses || g->value[n->out[i]].is_output))
            return true;
    return false;
}

/* Prunes the nested graphs of a node; captures that are removed with them no longer count as uses. */
static int prune_nested(oct_graph *g, int node)
{
    int removed = 0;
    oct_graph *nested;
    for (size_t k = 0; (nested = oct_node_graph_at(&g->node[node], k)); k++)
        removed += oct_graph_prune(nested);
    oct_graph_drop_captures(g, node);
    return removed;
}

int oct_graph_prune(oct_graph *g)
{
    int removed = 0;
    for (size_t i = g->n_order; i-- > 0;) {
        int id = g->order[i];
        oct_node *n = &g->node[id];
        if (is_needed(g, n)) {
            removed += prune_nested(g, id);
            continue;
        }
        int n_out = n->n_out;
        oct_graph_remove_node(g, id);
        for (int k = 0; k < n_out; k++)
            if (n->out[k] >= 0)
                oct_graph_remove_value(g, n->out[k]);
        removed++;
    }
    for (size_t v = 0; v < g->n_value; v++) {
        oct_value *x = &g->value[v];
        if (!x->dead && !x->n_uses && !x->is_output && !x->is_input && x->producer < 0)
            oct_graph_remove_value(g, (int)v);
    }
    return removed;
}
