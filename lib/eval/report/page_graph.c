/* The network as a drawing: boxes from top to bottom, in the colours of what computes, each a link to its row. A chain
 * of layers of one colour is one box; where there are more boxes than a drawing can show, neighbours become one. */
#include "eval/report/page_int.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* MOST_BOXES, MOST_LINES and MOST_NAME keep a drawing below 300 kB. */
enum { MOST_BOXES = 400, MOST_LINES = 1000, MOST_NAME = 40, WIDE = 150, HIGH = 34, GAP_X = 14, GAP_Y = 20 };

typedef struct layer {
    const oct_item *n;
    size_t row, box;     /* its row in the table, and the box that it is drawn in */
    size_t uses;         /* how often its result is read */
    size_t n_made, made; /* how many layers make its inputs, and the first of them */
} layer;

/* A layer whose result another one reads; of boxes the same. */
typedef struct line {
    size_t above, below;
} line;

typedef struct box {
    size_t first, n; /* its layers: a part of the list */
    int rank;        /* how many boxes are above it, at the most */
    double x;        /* of its middle */
    double sum;      /* of the middles of those above it */
    int above;
} box;

typedef struct net {
    const ev_page *p;
    layer *layer;
    box *box;
    line *line;
    size_t n, n_box, n_line;
} net;

/* A conversion says what its weights are, an evaluation whether there are any. */
static bool has_weights(const layer *l)
{
    return oct_item_at(l->n, "weights") || oct_item_true(l->n, "weighted");
}

static const char *kind_of(const layer *l)
{
    return ev_page_row_kind(NULL, l->n);
}

/* Lists name layers before them alone. */
static void find_lines(net *g, const oct_item *nodes)
{
    size_t most = 0, i = 0;
    for (const oct_item *x = NULL; (x = oct_item_next(nodes, x));)
        most += oct_item_count(x, "from");
    g->line = oct_calloc(most + 1, sizeof *g->line);
    g->p->b->failed |= !g->line;
    for (const oct_item *x = NULL; g->line && (x = oct_item_next(nodes, x)); i++) {
        layer *l = &g->layer[i];
        l->n = x;
        const oct_item *list = oct_item_at(x, "from");
        for (const oct_item *made = NULL; (made = oct_item_next(list, made));) {
            const double at = oct_item_number(made, "");
            if (!(at >= 0 && at < (double)i))
                continue;
            l->made = l->n_made++ ? l->made : (size_t)at;
            g->layer[(size_t)at].uses++;
            g->line[g->n_line++] = (line){ (size_t)at, i };
        }
    }
    g->n = i;
}

static int by_item(const void *a, const void *b)
{
    const ev_page_row *x = a, *y = b;
    return (x->n > y->n) - (x->n < y->n);
}

static void find_rows(net *g, const ev_page_row *rows, size_t n_rows)
{
    ev_page_row *sorted = oct_calloc(n_rows + 1, sizeof *sorted);
    g->p->b->failed |= !sorted;
    for (size_t i = 0; sorted && i < n_rows; i++)
        sorted[i] = (ev_page_row){ .n = rows[i].n, .at = i };
    if (sorted)
        qsort(sorted, n_rows, sizeof *sorted, by_item);
    for (size_t i = 0; sorted && i < g->n; i++) {
        const ev_page_row key = { .n = g->layer[i].n };
        const ev_page_row *found = bsearch(&key, sorted, n_rows, sizeof key, by_item);
        g->layer[i].row = found ? found->at : SIZE_MAX;
    }
    oct_free(sorted);
}

/* Whether a layer continues the box of the one before it: that alone leads to it, and to nothing else, and the colour
 * is the same. A layer with weights begins a box. */
static bool continues(const net *g, size_t i)
{
    const layer *l = &g->layer[i];
    return i > 0 && l->n_made == 1 && l->made == i - 1 && l[-1].uses == 1 && !has_weights(l) &&
           strcmp(kind_of(l), kind_of(l - 1)) == 0;
}

static void make_boxes(net *g)
{
    for (size_t i = 0; i < g->n; i++) {
        if (!g->n_box || !continues(g, i))
            g->box[g->n_box++] = (box){ .first = i };
        g->box[g->n_box - 1].n++;
    }
    const size_t each = (g->n_box + MOST_BOXES - 1) / MOST_BOXES;
    size_t n = 0;
    for (size_t i = 0; i < g->n_box; i++) /* neighbours in a topological order: no circle comes of it */
        if (i % each)
            g->box[n - 1].n += g->box[i].n;
        else
            g->box[n++] = g->box[i];
    g->n_box = n;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < g->box[i].n; k++)
            g->layer[g->box[i].first + k].box = i;
}

static int by_boxes(const void *a, const void *b)
{
    const line *x = a, *y = b;
    return x->below != y->below ? (x->below < y->below ? -1 : 1) : (x->above > y->above) - (x->above < y->above);
}

/* Makes lines between layers lines between boxes, each once. */
static void join_lines(net *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_line; i++)
        g->line[i] = (line){ g->layer[g->line[i].above].box, g->layer[g->line[i].below].box };
    qsort(g->line, g->n_line, sizeof *g->line, by_boxes);
    for (size_t i = 0; i < g->n_line; i++)
        if (g->line[i].above != g->line[i].below && (!n || by_boxes(&g->line[n - 1], &g->line[i])))
            g->line[n++] = g->line[i];
    g->n_line = n;
}

static int by_above(const void *a, const void *b)
{
    const box *x = *(box *const *)a, *y = *(box *const *)b;
    const double p = x->above ? x->sum / x->above : 0, q = y->above ? y->sum / y->above : 0;
    return p != q ? (p < q ? -1 : 1) : x->first < y->first ? -1 : x->first > y->first;
}

/* Places the boxes of each rank side by side, in the order of those above them. *width: of the widest rank. Returns how
 * many ranks there are. */
static int place(net *g, size_t *width)
{
    box **row = oct_calloc(g->n_box + 1, sizeof(box *));
    int ranks = 0;
    *width = 0;
    g->p->b->failed |= !row;
    for (size_t i = 0; i < g->n_line; i++) { /* in the order of those below, so that those above are ranked */
        box *below = &g->box[g->line[i].below];
        const int least = g->box[g->line[i].above].rank + 1;
        below->rank = below->rank > least ? below->rank : least;
    }
    for (size_t i = 0; i < g->n_box; i++)
        ranks = g->box[i].rank >= ranks ? g->box[i].rank + 1 : ranks;
    for (int r = 0; row && r < ranks; r++) {
        size_t n = 0;
        for (size_t i = 0; i < g->n_box; i++)
            if (g->box[i].rank == r)
                row[n++] = &g->box[i];
        qsort(row, n, sizeof(box *), by_above);
        for (size_t i = 0; i < n; i++)
            row[i]->x = ((double)i - ((double)n - 1) / 2) * (WIDE + GAP_X);
        for (size_t i = 0; i < g->n_line; i++)
            if (g->box[g->line[i].above].rank == r) {
                g->box[g->line[i].below].sum += g->box[g->line[i].above].x;
                g->box[g->line[i].below].above++;
            }
        *width = n > *width ? n : *width;
    }
    oct_free(row);
    return ranks;
}

/* A line that passes boxes bends around them. */
static void put_line(const net *g, const box *above, const box *below)
{
    const double y = above->rank * (HIGH + GAP_Y) + HIGH, to = below->rank * (HIGH + GAP_Y);
    const double side = below->rank > above->rank + 1 && fabs(above->x - below->x) < WIDE ? 0.62 * WIDE : 0;
    oct_buf_printf(g->p->b, "<path d=\"M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f\"/>\n", above->x, y, above->x + side,
                   y + GAP_Y, below->x + side, to - GAP_Y, below->x, to);
}

/* At most so many bytes of a text, its end where it is a name: that tells layers apart. */
static void put_cut(const net *g, const char *text, size_t most)
{
    const size_t n = strlen(text);
    const char *at = text + (n > most ? n - most : 0);
    while ((*at & 0xC0) == 0x80) /* not inside a character */
        at++;
    oct_buf_puts(g->p->b, n > most ? "…" : "");
    ev_page_text(g->p, at);
}

/* The layer whose name and row a box has: its first, or where others were joined with it the first with weights. */
static const layer *head(const net *g, const box *b)
{
    for (size_t k = 0; k < b->n; k++)
        if (has_weights(&g->layer[b->first + k]))
            return &g->layer[b->first + k];
    return &g->layer[b->first];
}

static void put_box(const net *g, const box *b)
{
    const layer *l = head(g, b);
    const double x = b->x - WIDE / 2.0, y = b->rank * (HIGH + GAP_Y);
    oct_buf *to = g->p->b;
    if (l->row != SIZE_MAX)
        oct_buf_printf(to, "<a href=\"#m%zu-%zu\">", g->p->k, l->row);
    oct_buf_printf(to,
                   "<rect class=\"%s\" x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\"/><text x=\"%.0f\" y=\"%.0f\">",
                   kind_of(l), x, y, WIDE, HIGH, b->x, y + 14);
    put_cut(g, oct_item_text(l->n, "op"), 18);
    if (b->n > 1)
        oct_buf_printf(to, " + %zu", b->n - 1);
    oct_buf_printf(to, "</text><text x=\"%.0f\" y=\"%.0f\">", b->x, y + 28);
    put_cut(g, oct_item_text(l->n, "name"), 20);
    oct_buf_puts(to, "</text><title>");
    put_cut(g, oct_item_text(l->n, "name"), MOST_NAME);
    oct_buf_puts(to, ": ");
    ev_page_text(g->p, ev_page_row_scheme(NULL, l->n));
    oct_buf_puts(to, l->row != SIZE_MAX ? "</title></a>\n" : "</title>\n");
}

static void draw(net *g)
{
    size_t width;
    const int ranks = place(g, &width);
    const double w = (double)width * (WIDE + GAP_X) + WIDE, h = ranks * (HIGH + GAP_Y) - GAP_Y + 4;
    oct_buf_printf(
        g->p->b,
        "<figure class=\"net\"><div><svg viewBox=\"%.0f -2 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\" "
        "aria-label=\"The network: %zu layers in %zu boxes\">\n",
        -w / 2, w, h, w, h, g->n, g->n_box);
    for (size_t i = 0; i < g->n_line && i < MOST_LINES; i++)
        put_line(g, &g->box[g->line[i].above], &g->box[g->line[i].below]);
    for (size_t i = 0; i < g->n_box; i++)
        put_box(g, &g->box[i]);
    oct_buf_printf(g->p->b, "</svg></div>\n<figcaption>%zu layers in %zu boxes, which lead to their rows below.", g->n,
                   g->n_box);
    if (g->n_line > MOST_LINES)
        oct_buf_printf(g->p->b, " %zu lines are left out.", g->n_line - MOST_LINES);
    oct_buf_puts(g->p->b, "</figcaption></figure>\n");
}

bool ev_is_has_graph(const ev_page *p)
{
    for (const oct_item *m = NULL; (m = oct_item_next(p->models, m));)
        if (oct_item_at(m, "nodes.0.from"))
            return true;
    return false;
}

void ev_put_graph(ev_page *p)
{
    const oct_item *nodes = oct_item_at(p->model, "nodes");
    net g = { .p = p, .n = 0 };
    ev_page_row *rows;
    size_t n_rows;
    const size_t most = oct_item_count(nodes, "");
    if (!oct_item_at(p->model, "nodes.0.from"))
        return;
    ev_page_rows(p, p->model, &rows, &n_rows);
    g.layer = oct_calloc(most + 1, sizeof *g.layer);
    g.box = oct_calloc(most + 1, sizeof *g.box);
    p->b->failed |= !g.layer || !g.box;
    if (g.layer && g.box) {
        find_lines(&g, nodes);
        find_rows(&g, rows, n_rows);
        make_boxes(&g);
        join_lines(&g);
        draw(&g);
    }
    oct_free(g.line);
    oct_free(g.layer);
    oct_free(g.box);
    oct_free(rows);
}
