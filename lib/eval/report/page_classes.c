/* Classes: how many samples of each are recognized, and with which classes they are confused. */
#include "eval/report/page_int.h"

#include <math.h>

enum { MANY_CLASSES = 30 }; /* more classes are shown only when opened */

/* The classes predicted for samples of a class, the most frequent first. */
static void put_taken(oct_buf *b, const oct_class_table *t, int64_t label)
{
    uint64_t most = UINT64_MAX;
    size_t last = 0, shown = 0;
    while (shown < 3) {
        const oct_confused *best = NULL;
        for (size_t i = 0; i < t->n_cells; i++) {
            const oct_confused *x = &t->cell[i];
            const bool later = x->samples < most || (x->samples == most && i > last);
            if (x->label == label && x->taken_for != label && later && (!best || x->samples > best->samples))
                best = x;
        }
        if (!best)
            break;
        oct_buf_printf(b, "%s%lld (%llu)", shown++ ? ", " : "", (long long)best->taken_for,
                       (unsigned long long)best->samples);
        most = best->samples;
        last = (size_t)(best - t->cell);
    }
}

bool ev_page_has_classes(const ev_page *p)
{
    size_t n = 0;
    for (size_t k = 0; k < p->r->n_models; k++)
        n += p->r->models[k].classes.n_rows;
    return n > 0;
}

static void put_share(const ev_page *p, double share, const char *class_name)
{
    if (isnan(share))
        oct_buf_printf(p->b, "<td class=\"%s\"></td>", class_name);
    else
        oct_buf_printf(p->b, "<td class=\"%s\" data-v=\"%.6g\">%.2f&nbsp;%%</td>", class_name, share, 100 * share);
}

/* What a class gains or loses is of the table's own metric, or F1. */
static double worth(const oct_class_table *t, const oct_class_row *r)
{
    return t->own ? r->own : r->f1;
}

/* The row of a class in another table, whose rows are in ascending order of class; NULL: it has no such row. */
static const oct_class_row *row_of(const oct_class_table *t, int64_t class_number)
{
    for (size_t lo = 0, hi = t ? t->n_rows : 0; lo < hi;) {
        const size_t at = lo + (hi - lo) / 2;
        if (t->row[at].class_number == class_number)
            return &t->row[at];
        if (t->row[at].class_number < class_number)
            lo = at + 1;
        else
            hi = at;
    }
    return NULL;
}

static double change_of(const oct_class_table *was, const oct_class_row *r)
{
    const oct_class_row *f = row_of(was, r->class_number);
    return f ? worth(was, r) - worth(was, f) : r->samples ? worth(was, r) : NAN;
}

static void put_change(const ev_page *p, double change)
{
    if (isnan(change))
        oct_buf_puts(p->b, "<td class=\"n\"></td>");
    else
        oct_buf_printf(p->b, "<td class=\"n%s\" data-v=\"%.6g\">%+.2f</td>",
                       change < 0   ? " bad"
                       : change > 0 ? " good"
                                    : "",
                       change, 100 * change + 0.0);
}

static void put_rows(const ev_page *p, const oct_class_table *t, const oct_class_table *was)
{
    for (size_t i = 0; i < t->n_rows; i++) {
        const oct_class_row *r = &t->row[i];
        oct_buf_printf(p->b, "<tr><th scope=\"row\" class=\"n\">%lld</th><td class=\"n\">%llu</td>",
                       (long long)r->class_number, (unsigned long long)r->samples);
        put_share(p, r->precision, "n wide");
        put_share(p, r->recall, "n wide");
        put_share(p, r->f1, t->own ? "n wide" : "n");
        if (t->own)
            put_share(p, r->own, "n");
        if (was)
            put_change(p, change_of(was, r));
        if (!t->own) {
            oct_buf_puts(p->b, "<td>");
            put_taken(p->b, t, r->class_number);
            oct_buf_puts(p->b, "</td>");
        }
        oct_buf_puts(p->b, "</tr>\n");
    }
}

/* How many classes became worse and better, followed by the rows. If there are many, they are folded. */
static void put_table(const ev_page *p, const oct_class_table *t, const oct_class_table *was)
{
    const bool many = t->n_rows > MANY_CLASSES;
    size_t worse = 0, better = 0;
    for (size_t i = 0; was && i < t->n_rows; i++) {
        const double change = change_of(was, &t->row[i]);
        worse += change < 0;
        better += change > 0;
    }
    if (was)
        oct_buf_printf(p->b, "<p>%s is less than the float model's for %zu of %zu classes, and more for %zu.</p>\n",
                       t->own ? t->own : "F1", worse, t->n_rows, better);
    if (many)
        oct_buf_printf(p->b, "<details><summary>All %zu classes</summary>\n", t->n_rows);
    oct_buf_printf(
        p->b,
        "<table class=\"sort\">\n<thead><tr><th scope=\"col\" class=\"n\">class</th><th scope=\"col\" class=\"n\">%s</th>"
        "<th scope=\"col\" class=\"n wide\">precision</th><th scope=\"col\" class=\"n wide\">recall</th><th scope=\"col\" class=\"n%s\">F1</th>",
        t->counts ? t->counts : "samples", t->own ? " wide" : "");
    if (t->own)
        oct_buf_printf(p->b, "<th scope=\"col\" class=\"n\">%s</th>", t->own);
    oct_buf_printf(p->b, "%s%s</tr></thead>\n<tbody>\n", was ? "<th scope=\"col\" class=\"n\">change, points</th>" : "",
                   t->own ? "" : "<th scope=\"col\">taken for</th>");
    put_rows(p, t, was);
    oct_buf_printf(p->b, "</tbody>\n</table>\n%s", many ? "</details>\n" : "");
}

void ev_page_classes(const ev_page *p)
{
    if (!ev_page_has_classes(p))
        return;
    const oct_class_table *of_float = &p->r->models[0].classes;
    ev_page_section(p, "classes", "Classes");
    for (size_t k = 0; k < p->r->n_models; k++) {
        if (!p->r->models[k].classes.n_rows)
            continue;
        oct_buf_puts(p->b, "<h3>");
        ev_page_text(p, ev_page_base(p->r->models[k].name));
        oct_buf_puts(p->b, "</h3>\n");
        put_table(p, &p->r->models[k].classes, k && of_float->n_rows ? of_float : NULL);
    }
    ev_page_section_end(p);
}
