/* Size, latency and memory of whole models. */
#include "eval/report/page_int.h"

#include <string.h>

enum { SIZE, LATENCY, MEMORY, MEASURES };

static double measure(const oct_eval_model_result *m, int what)
{
    return what == SIZE      ? (double)m->size_bytes
           : what == LATENCY ? (m->latency.runs ? m->latency.median : 0)
                             : (double)m->peak_bytes;
}

static void put_number(const ev_page *p, int what, double v)
{
    if (what == LATENCY)
        ev_page_ms(p, v);
    else
        ev_page_bytes(p, v);
}

/* The text beside a bar. */
static void put_words(const ev_page *p, int what, size_t k)
{
    const oct_eval_model_result *f = &p->r->models[0], *m = &p->r->models[k];
    const double was = measure(f, what), is = measure(m, what);
    char words[OCT_SPEED_TEXT];
    if (k && what != LATENCY && was > 0)
        oct_buf_printf(p->b, "%.1f %% of float", 100 * is / was);
    if (what != LATENCY)
        return;
    if (k)
        ev_page_text(p, oct_report_speed(words, &m->speed));
    oct_buf_puts(p->b, k ? "<br><small>" : "<small>");
    oct_buf_puts(p->b, "quartiles ");
    ev_page_ms(p, m->latency.q1);
    oct_buf_puts(p->b, " to ");
    ev_page_ms(p, m->latency.q3);
    oct_buf_printf(p->b, ", %d runs</small>", m->latency.runs);
}

static void put_measure(const ev_page *p, int what)
{
    static const char *const titles[MEASURES][2] = { { "File size", "with external data" },
                                                     { "Latency",
                                                       "of one sample, the median, measured on this machine" },
                                                     { "Memory", "weights and intermediate tensors for one sample" } };
    double most = 0;
    for (size_t k = 0; k < p->r->n_models; k++)
        most = measure(&p->r->models[k], what) > most ? measure(&p->r->models[k], what) : most;
    if (!(most > 0))
        return;
    oct_buf_printf(p->b,
                   "<tbody><tr class=\"group\"><th colspan=\"4\" scope=\"rowgroup\">%s <small>%s</small></th></tr>\n",
                   titles[what][0], titles[what][1]);
    for (size_t k = 0; k < p->r->n_models; k++) {
        const double v = measure(&p->r->models[k], what);
        if (!(v > 0))
            continue;
        oct_buf_printf(p->b, "<tr><th scope=\"row\" class=\"name dotted\"><span class=\"dot %s\"></span>",
                       ev_page_model_kind(p, k));
        ev_page_name(p, ev_page_base(p->r->models[k].name));
        oct_buf_puts(p->b, "</th><td class=\"n\">");
        put_number(p, what, v);
        oct_buf_puts(p->b, "</td><td class=\"said\">");
        put_words(p, what, k);
        oct_buf_printf(p->b,
                       "</td><td class=\"strip\"><span class=\"bar %s\" style=\"width:%.1f%%\"></span></td></tr>\n",
                       ev_page_model_kind(p, k), 100 * v / most);
    }
    oct_buf_puts(p->b, "</tbody>\n");
}

void ev_page_costs(const ev_page *p)
{
    ev_page_section(p, "costs", "Size, time and memory");
    oct_buf_puts(
        p->b,
        "<table class=\"forest\">\n<thead><tr><th scope=\"col\">model</th><th scope=\"col\" class=\"n\">value</th><th scope=\"col\">against float</th>"
        "<th scope=\"col\" class=\"strip\"></th></tr></thead>\n");
    for (int what = 0; what < MEASURES; what++)
        put_measure(p, what);
    oct_buf_puts(p->b, "</table>\n");
    for (size_t k = 0; k < p->r->n_models; k++) {
        char runner[OCT_RUNNER_TEXT];
        if (!oct_report_runner(runner, &p->r->models[k]))
            continue;
        oct_buf_puts(p->b, "<p>");
        ev_page_text(p, ev_page_base(p->r->models[k].name));
        oct_buf_puts(p->b, " ");
        ev_page_text(p, runner);
        oct_buf_puts(p->b, "; its memory is not known.</p>\n");
    }
    ev_page_section_end(p);
}
