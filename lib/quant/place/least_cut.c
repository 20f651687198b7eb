/* Dinic's algorithm without recursion: it finds levels by breadth-first search, and then paths along the levels until
 * there are no more. */
#include "quant/place/least_cut.h"

#include <math.h>

typedef struct edge {
    int to, next; /* the next edge from the same node, or -1 */
    double left;  /* unused capacity */
} edge;

struct oct_cut {
    oct_arena *arena;
    int n;     /* the number of nodes: the things, the source and the sink */
    int *head; /* by node: its first edge, or -1 */
    edge *e;   /* [n_edge]: the two directions of an edge are at 2k and 2k + 1 */
    size_t n_edge, cap_edge;
    int *level, *at, *queue, *path;
    double most; /* the largest finite capacity; less than 1e-12 of it counts as 0 */
};

oct_status oct_cut_create(oct_arena *a, size_t n, oct_cut **cut, oct_err *err)
{
    oct_cut *c = oct_arena_calloc(a, 1, sizeof *c);
    if (!c || n > INT32_MAX / 8)
        return oct_nomem(err);
    const size_t all = n + 2;
    *c = (oct_cut){ .arena = a, .n = (int)all };
    int **const each[] = { &c->head, &c->level, &c->at, &c->queue, &c->path };
    for (size_t i = 0; i < OCT_COUNT(each); i++)
        if (!(*each[i] = oct_arena_calloc(a, all, sizeof(int))))
            return oct_nomem(err);
    for (size_t i = 0; i < all; i++)
        c->head[i] = -1;
    *cut = c;
    return OCT_OK;
}

static oct_status add(oct_cut *c, int from, int to, double there, double back, oct_err *err)
{
    const double each[2] = { there, back };
    for (int i = 0; i < 2; i++) {
        if (!OCT_GROW(c->arena, c->e, c->n_edge, c->cap_edge))
            return oct_nomem(err);
        const int node = i ? to : from;
        c->e[c->n_edge] = (edge){ .to = i ? from : to, .next = c->head[node], .left = each[i] };
        c->head[node] = (int)c->n_edge++;
        if (isfinite(each[i]))
            c->most = fmax(c->most, each[i]);
    }
    return OCT_OK;
}

oct_status oct_cut_pay(oct_cut *c, int thing, double first, double second, oct_err *err)
{
    const int source = c->n - 2, sink = c->n - 1;
    if (second > 0)
        OCT_TRY(add(c, source, thing, second, 0, err));
    return first > 0 ? add(c, thing, sink, first, 0, err) : OCT_OK;
}

oct_status oct_cut_split(oct_cut *c, int first, int second, double price, oct_err *err)
{
    return price > 0 && first != second ? add(c, first, second, price, 0, err) : OCT_OK;
}

/* Finds the level of each node from the source. Returns whether the sink has one. */
static bool find_levels(oct_cut *c)
{
    const int source = c->n - 2, sink = c->n - 1;
    int first = 0, last = 0;
    for (int i = 0; i < c->n; i++)
        c->level[i] = -1;
    c->level[source] = 0;
    c->queue[last++] = source;
    while (first < last) {
        const int u = c->queue[first++];
        for (int k = c->head[u]; k >= 0; k = c->e[k].next)
            if (c->e[k].left > 1e-12 * c->most && c->level[c->e[k].to] < 0) {
                c->level[c->e[k].to] = c->level[u] + 1;
                c->queue[last++] = c->e[k].to;
            }
    }
    return c->level[sink] >= 0;
}

/* Fills one path from the source; false: there is none. path[]: its edges. */
static bool fill_path(oct_cut *c)
{
    const int source = c->n - 2, sink = c->n - 1;
    int u = source, n = 0;
    while (u != sink) {
        const int k = c->at[u];
        if (k < 0 && u == source)
            return false;
        if (k < 0) { /* a dead end: go back, and do not come here again */
            u = c->e[c->path[--n] ^ 1].to;
            c->at[u] = c->e[c->at[u]].next;
        } else if (c->e[k].left > 1e-12 * c->most && c->level[c->e[k].to] == c->level[u] + 1) {
            c->path[n++] = k;
            u = c->e[k].to;
        } else {
            c->at[u] = c->e[k].next;
        }
    }
    double least = INFINITY;
    for (int i = 0; i < n; i++)
        least = fmin(least, c->e[c->path[i]].left);
    for (int i = 0; i < n && isfinite(least); i++) {
        c->e[c->path[i]].left -= least;
        c->e[c->path[i] ^ 1].left += least;
    }
    return isfinite(least);
}

void oct_cut_solve(oct_cut *c, bool *first)
{
    while (find_levels(c)) {
        for (int i = 0; i < c->n; i++)
            c->at[i] = c->head[i];
        bool any = false;
        while (fill_path(c))
            any = true;
        if (!any) /* a path with only infinite prices: there is no allowed choice */
            break;
    }
    for (int i = 0; i < c->n - 2; i++)
        first[i] = c->level[i] >= 0;
}
