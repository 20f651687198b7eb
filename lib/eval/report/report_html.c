/* The HTML report: a page that is complete in itself. All contents are text and drawings. The script sorts and filters
 * tables, and opens layers. */
#include "eval/report/page_int.h"

static const char style[] =
#include "eval/page_css.inc"
    ;
static const char script[] =
#include "eval/page_js.inc"
    ;

static void put_head(const ev_page *p)
{
    const oct_eval_result *r = p->r;
    oct_buf_puts(
        p->b,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; "
        "form-action 'none'\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    ev_page_text(p, ev_page_base(r->models[r->n_models > 1].name));
    oct_buf_puts(p->b, " – Octet</title>\n<style>\n");
    oct_buf_puts(p->b, style);
    oct_buf_puts(p->b, "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the results</a>\n");
}

static void put_nav(const ev_page *p)
{
    const struct {
        bool there;
        const char *id, *title;
    } links[] = {
        { p->r->n_scores > 0, "accuracy", "Accuracy" },
        { p->c->n_gates > 0, "gates", "Gates" },
        { ev_page_has_classes(p), "classes", "Classes" },
        { true, "costs", "Size, time, memory" },
        { ev_page_has_layers(p), "layers", "Layers" },
        { ev_page_has_costs(p), "time", "Time by layer" },
        { ev_page_has_sizes(p), "sizes", "Size by layer" },
        { ev_page_has_curve(p), "curve", "Size against loss" },
        { ev_page_has_float(p), "float", "What stayed float" },
        { ev_page_has_list(p, EV_CHANGES), "changes", "Changes" },
        { ev_page_has_list(p, EV_METHODS), "methods", "Methods" },
        { ev_page_has_list(p, EV_FINDINGS), "findings", "Findings" },
        { true, "reproduce", "How to make it again" },
    };
    oct_buf_puts(p->b, "<nav aria-label=\"Sections\"><ul>\n");
    for (size_t i = 0; i < OCT_COUNT(links); i++)
        if (links[i].there)
            oct_buf_printf(p->b, "<li><a href=\"#%s\">%s</a></li>\n", links[i].id, links[i].title);
    oct_buf_puts(p->b, "</ul></nav>\n");
}

void oct_report_html(const oct_eval_result *r, const oct_report_context *c, oct_buf *out)
{
    const ev_page page = { r, c, out }, *p = &page;
    put_head(p);
    oct_buf_puts(out, "<header>\n");
    ev_page_summary(p);
    oct_buf_puts(out, "</header>\n");
    put_nav(p);
    oct_buf_puts(out, "<main id=\"main\" tabindex=\"-1\">\n");
    ev_page_accuracy(p);
    ev_page_gates(p);
    ev_page_classes(p);
    ev_page_costs(p);
    ev_page_layers(p);
    ev_page_time(p);
    ev_page_sizes(p);
    ev_page_curve(p);
    ev_page_float(p);
    ev_page_changes(p);
    ev_page_methods(p);
    ev_page_findings(p);
    ev_page_reproduce(p);
    oct_buf_puts(out, "</main>\n<footer>");
    ev_page_text(p, c->version ? c->version : "octet");
    oct_buf_puts(out, "</footer>\n<script>\n");
    oct_buf_puts(out, script);
    oct_buf_puts(out, "</script>\n</body>\n</html>\n");
}
