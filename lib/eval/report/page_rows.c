/* The layers of a model: measurements beside decisions, in the order of the network. */
#include "eval/report/page_int.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static const char *of_either(const oct_item *first, const oct_item *second, const char *member)
{
    const char *text = oct_item_text(first, member);
    text = text && *text ? text : oct_item_text(second, member);
    return text ? text : "";
}

const char *ev_page_row_name(const oct_item *e, const oct_item *n)
{
    return oct_item_text(e ? e : n, "name");
}

const char *ev_page_row_op(const oct_item *e, const oct_item *n)
{
    return of_either(e, n, "op");
}

/* The decided scheme says more than the one that runs: a dynamic product also runs as int8. */
const char *ev_page_row_scheme(const oct_item *e, const oct_item *n)
{
    const char *scheme = of_either(n, e, "scheme");
    return oct_item_true(n, "integer") && strcmp(scheme, "static") == 0 ? "int8" : scheme;
}

const char *ev_page_row_kind(const oct_item *e, const oct_item *n)
{
    return ev_page_kind(ev_page_row_scheme(e, n), oct_item_text(e, "range.type"));
}

static int by_name(const void *a, const void *b)
{
    const ev_page_row *x = a, *y = b;
    const int c = strcmp(oct_item_text(x->n, "name"), oct_item_text(y->n, "name"));
    return c ? c : x->at < y->at ? -1 : x->at > y->at;
}

static int by_place(const void *a, const void *b)
{
    const ev_page_row *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->at < y->at ? -1 : x->at > y->at;
}

static int by_at(const void *a, const void *b)
{
    const ev_page_row *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* The first of the sorted notes with that name, or NULL. */
static ev_page_row *find(ev_page_row *notes, size_t n, const char *name)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t at = lo + (hi - lo) / 2;
        if (strcmp(oct_item_text(notes[at].n, "name"), name) < 0)
            lo = at + 1;
        else
            hi = at;
    }
    return lo < n && strcmp(oct_item_text(notes[lo].n, "name"), name) == 0 ? &notes[lo] : NULL;
}

/* A layer that was not compared is placed after the last compared layer before it. */
static void add_others(const ev_page_row *told, size_t n_told, ev_page_row *rows, size_t *n)
{
    const size_t compared = *n;
    double last = -1;
    for (size_t i = 0; i < n_told; i++) {
        if (told[i].key >= 0) {
            last = told[i].key;
            continue;
        }
        rows[*n] = told[i];
        rows[*n].key = last + 0.5;
        rows[(*n)++].at += compared;
    }
}

void ev_page_rows(const ev_page *p, const oct_item *model, ev_page_row **out, size_t *n_out)
{
    const oct_item *layers = oct_item_at(model, "layers"), *nodes = oct_item_at(model, "nodes");
    const size_t n_nodes = oct_item_count(nodes, "");
    ev_page_row *rows = oct_calloc(oct_item_count(layers, "") + n_nodes + 1, sizeof *rows),
                *told = oct_calloc(n_nodes + 1, sizeof *told);
    size_t n = 0;
    *out = rows;
    *n_out = 0;
    if (!rows || !told) {
        p->b->failed = true;
        oct_free(told);
        return;
    }
    for (const oct_item *x = NULL; (x = oct_item_next(nodes, x)); n++)
        told[n] = (ev_page_row){ .n = x, .key = -1, .at = n };
    qsort(told, n_nodes, sizeof *told, by_name);
    n = 0;
    for (const oct_item *e = NULL; (e = oct_item_next(layers, e)); n++) {
        const double order = oct_item_number(e, "order");
        ev_page_row *t = find(told, n_nodes, oct_item_text(e, "name"));
        rows[n] = (ev_page_row){ .e = e, .n = t ? t->n : NULL, .key = order, .at = n };
        if (t && t->key < order)
            t->key = order;
    }
    qsort(told, n_nodes, sizeof *told, by_at);
    add_others(told, n_nodes, rows, &n);
    oct_free(told);
    qsort(rows, n, sizeof *rows, by_place);
    *n_out = n;
}
