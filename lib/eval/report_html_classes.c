/* The table of classes of a page. */
#include "eval/report.h"

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

void oct_report_html_classes(const oct_class_table *t, oct_buf *out)
{
    if (!t->n_rows)
        return;
    oct_buf_puts(out, "<h2>Classes</h2>\n<div class=\"wrap\"><table><tr><th class=\"n\">class</th><th class=\"n\">samples</th><th class=\"n\">precision</th>"
                      "<th class=\"n\">recall</th><th class=\"n\">F1</th><th>taken for</th></tr>\n");
    for (size_t i = 0; i < t->n_rows; i++) {
        const oct_class_row *r = &t->row[i];
        oct_buf_printf(out, "<tr><td class=\"n\">%lld</td><td class=\"n\">%llu</td><td class=\"n\">%.2f&nbsp;%%</td><td class=\"n\">%.2f&nbsp;%%</td>"
                            "<td class=\"n\">%.2f&nbsp;%%</td><td>",
                       (long long)r->class_number, (unsigned long long)r->samples, 100 * r->precision, 100 * r->recall, 100 * r->f1);
        put_taken(out, t, r->class_number);
        oct_buf_puts(out, "</td></tr>\n");
    }
    oct_buf_puts(out, "</table></div>\n");
}
