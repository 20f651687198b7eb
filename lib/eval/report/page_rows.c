/* The layers of a model: measurements beside decisions, in the order of the network. */
#include "eval/report/page_int.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

const char *ev_page_row_name(const ev_page_row *row)
{
    return row->e ? row->e->name : row->n->name;
}

const char *ev_page_row_op(const ev_page_row *row)
{
    return row->e && *row->e->op ? row->e->op : row->n ? row->n->op : "";
}

/* The decided scheme says more than the one that runs: a dynamic product also runs as int8. */
const char *ev_page_row_scheme(const ev_page_row *row)
{
    return row->n && row->n->scheme ? row->n->scheme : row->e ? row->e->scheme : "";
}

const char *ev_page_row_kind(const ev_page_row *row)
{
    return ev_page_kind(ev_page_row_scheme(row), row->e ? row->e->range.dtype : OCT_UNDEFINED);
}

static int by_name(const void *a, const void *b)
{
    const ev_page_row *x = a, *y = b;
    const int c = strcmp(x->n->name, y->n->name);
    return c ? c : x->at < y->at ? -1 : x->at > y->at;
}

static int by_place(const void *a, const void *b)
{
    const ev_page_row *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->at < y->at ? -1 : x->at > y->at;
}

/* The first of the sorted notes with that name, or NULL. */
static ev_page_row *find(ev_page_row *notes, size_t n, const char *name)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t at = lo + (hi - lo) / 2;
        if (strcmp(notes[at].n->name, name) < 0)
            lo = at + 1;
        else
            hi = at;
    }
    return lo < n && strcmp(notes[lo].n->name, name) == 0 ? &notes[lo] : NULL;
}

/* A layer that was not compared is placed after the last compared layer before it. */
static void place_others(ev_page_row *notes, size_t n)
{
    double last = -1;
    for (size_t i = 0; i < n; i++) {
        last = notes[i].key >= 0 ? notes[i].key : last;
        notes[i].key = notes[i].key >= 0 ? notes[i].key : last + 0.5;
    }
}

static int by_at(const void *a, const void *b)
{
    const ev_page_row *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

void ev_page_rows(const ev_page *p, size_t k, ev_page_row **out, size_t *n_out)
{
    const oct_eval_model_result *m = &p->r->models[k];
    const oct_page_model *notes = ev_page_model(p, k);
    ev_page_row *rows = oct_calloc(m->n_layers + notes->n_layers + 1, sizeof *rows),
                *told = oct_calloc(notes->n_layers + 1, sizeof *told);
    size_t n = 0;
    *out = rows;
    *n_out = 0;
    if (!rows || !told) {
        p->b->failed = true;
        oct_free(told);
        return;
    }
    for (size_t i = 0; i < notes->n_layers; i++)
        told[i] = (ev_page_row){ .n = &notes->layer[i], .key = -1, .at = i };
    qsort(told, notes->n_layers, sizeof *told, by_name);
    for (size_t i = 0; i < m->n_layers; i++) {
        const oct_eval_layer *e = &m->layers[i];
        ev_page_row *t = find(told, notes->n_layers, e->name);
        rows[n++] = (ev_page_row){ .e = e, .n = t ? t->n : NULL, .key = (double)e->order, .at = i };
        if (t && t->key < (double)e->order)
            t->key = (double)e->order;
    }
    qsort(told, notes->n_layers, sizeof *told, by_at);
    bool *known = oct_calloc(notes->n_layers + 1, sizeof *known);
    for (size_t i = 0; known && i < notes->n_layers; i++)
        known[i] = told[i].key >= 0;
    p->b->failed |= !known;
    place_others(told, notes->n_layers);
    for (size_t i = 0; known && i < notes->n_layers; i++)
        if (!known[i]) {
            rows[n] = told[i];
            rows[n++].at += m->n_layers;
        }
    oct_free(known);
    oct_free(told);
    qsort(rows, n, sizeof *rows, by_place);
    *n_out = n;
}
