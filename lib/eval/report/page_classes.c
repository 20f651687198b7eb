/* Classes: how many samples of each are recognized, and with which classes they are confused. */
#include "eval/report/page_int.h"

#include <math.h>

enum { MANY_CLASSES = 30 }; /* more classes are shown only when opened */

bool ev_is_many_classes(const ev_page *p)
{
    return oct_item_count(p->model, "classes") > MANY_CLASSES;
}

/* Whether the float model has classes to compare these with. */
bool ev_is_has_change(const ev_page *p)
{
    return p->k && oct_item_count(oct_item_next(p->models, NULL), "classes");
}

/* What a class gains or loses is of the table's own metric, or F1. */
static double worth(const ev_page *p, const oct_item *class)
{
    const char *own = oct_item_text(p->model, "class_metric");
    return oct_item_number(oct_item_member(class, own ? own : "f1"), "");
}

static double change_of(const ev_page *p, const oct_item *class)
{
    const oct_item *was = oct_item_at(oct_item_next(p->models, NULL), "classes");
    for (const oct_item *f = NULL; (f = oct_item_next(was, f));)
        if (oct_item_whole(f, "class") == oct_item_whole(class, "class"))
            return worth(p, class) - worth(p, f);
    return oct_item_whole(class, "samples") ? worth(p, class) : NAN;
}

void ev_put_class_own(ev_page *p)
{
    ev_form_percent_cell(p, oct_item_member(p->x, oct_item_text(p->model, "class_metric")), "n");
}

void ev_put_class_change(ev_page *p)
{
    const double change = change_of(p, p->x);
    if (isnan(change))
        oct_buf_puts(p->b, "<td class=\"n\"></td>");
    else
        oct_buf_printf(p->b, "<td class=\"n%s\" data-v=\"%.6g\">%+.2f</td>",
                       change < 0   ? " bad"
                       : change > 0 ? " good"
                                    : "",
                       change, 100 * change + 0.0);
}

/* The classes predicted for samples of a class, the most frequent first, of equal ones the first. */
void ev_put_taken_for(ev_page *p)
{
    const oct_item *confusion = oct_item_at(p->model, "confusion"), *last = NULL;
    const int64_t label = oct_item_whole(p->x, "class");
    for (size_t shown = 0; shown < 3; shown++) {
        const oct_item *best = NULL;
        for (const oct_item *c = NULL; (c = oct_item_next(confusion, c));) {
            const int64_t n = oct_item_whole(c, "samples"), most = last ? oct_item_whole(last, "samples") : INT64_MAX;
            if (oct_item_whole(c, "label") == label && oct_item_whole(c, "taken_for") != label &&
                (n < most || (n == most && c > last)) && (!best || n > oct_item_whole(best, "samples")))
                best = c;
        }
        if (!(last = best))
            break;
        oct_buf_printf(p->b, "%s%.0f (%.0f)", shown ? ", " : "", oct_item_number(best, "taken_for"),
                       oct_item_number(best, "samples"));
    }
}

/* How many classes became worse and better. */
void ev_put_classes_changed(ev_page *p)
{
    const oct_item *list = oct_item_at(p->model, "classes");
    const char *own = oct_item_text(p->model, "class_metric");
    size_t worse = 0, better = 0;
    if (!ev_is_has_change(p))
        return;
    for (const oct_item *c = NULL; (c = oct_item_next(list, c));) {
        const double change = change_of(p, c);
        worse += change < 0;
        better += change > 0;
    }
    oct_buf_printf(p->b, "<p>%s is less than the float model's for %zu of %zu classes, and more for %zu.</p>\n",
                   own ? own : "F1", worse, oct_item_count(list, ""), better);
}
