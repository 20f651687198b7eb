/* Classes: how well each is found, and what its samples are taken for. */
#include "eval/page_int.h"

/* What samples of a class were taken for, most often first. */
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
        oct_buf_printf(b, "%s%lld (%llu)", shown++ ? ", " : "", (long long)best->taken_for, (unsigned long long)best->samples);
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

static void put_share(const ev_page *p, double share)
{
    oct_buf_printf(p->b, "<td class=\"n\" data-v=\"%.6g\">%.2f&nbsp;%%</td>", share, 100 * share);
}

static void put_table(const ev_page *p, const oct_class_table *t)
{
    oct_buf_puts(p->b, "<table class=\"sort\">\n<thead><tr><th scope=\"col\" class=\"n\">class</th><th scope=\"col\" class=\"n\">samples</th>"
                       "<th scope=\"col\" class=\"n\">precision</th><th scope=\"col\" class=\"n\">recall</th><th scope=\"col\" class=\"n\">F1</th>"
                       "<th scope=\"col\" class=\"wide\">taken for</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < t->n_rows; i++) {
        const oct_class_row *r = &t->row[i];
        oct_buf_printf(p->b, "<tr><th scope=\"row\" class=\"n\">%lld</th><td class=\"n\">%llu</td>", (long long)r->class_number, (unsigned long long)r->samples);
        put_share(p, r->precision);
        put_share(p, r->recall);
        put_share(p, r->f1);
        oct_buf_puts(p->b, "<td class=\"wide\">");
        put_taken(p->b, t, r->class_number);
        oct_buf_puts(p->b, "</td></tr>\n");
    }
    oct_buf_puts(p->b, "</tbody>\n</table>\n");
}

void ev_page_classes(const ev_page *p)
{
    if (!ev_page_has_classes(p))
        return;
    ev_page_section(p, "classes", "Classes");
    for (size_t k = 0; k < p->r->n_models; k++) {
        if (!p->r->models[k].classes.n_rows)
            continue;
        oct_buf_puts(p->b, "<h3>");
        ev_page_text(p, ev_page_base(p->r->models[k].name));
        oct_buf_puts(p->b, "</h3>\n");
        put_table(p, &p->r->models[k].classes);
    }
    ev_page_section_end(p);
}
