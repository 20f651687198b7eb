/* The names that share/page/page.html uses, and those that are about the page as a whole. */
#include "eval/report/page_int.h"

static const char style[] =
#include "eval/page_css.inc"
    ;
static const char script[] =
#include "eval/page_js.inc"
    ;

static const ev_page_form forms[] = {
#define FORM(name) { #name, ev_form_##name },
#define WRITER(name)
#define CONDITION(name)
#include "eval/report/page_names.inc"
    { NULL, NULL }
};
static const ev_page_writer writers[] = {
#define FORM(name)
#define WRITER(name) { #name, ev_put_##name },
#define CONDITION(name)
#include "eval/report/page_names.inc"
    { NULL, NULL }
};
static const ev_page_condition conditions[] = {
#define FORM(name)
#define WRITER(name)
#define CONDITION(name) { #name, ev_is_##name },
#include "eval/report/page_names.inc"
    { NULL, NULL }
};

void ev_put_style(ev_page *p)
{
    oct_buf_puts(p->b, style);
}

void ev_put_script(ev_page *p)
{
    oct_buf_puts(p->b, script);
}

void ev_put_k(ev_page *p)
{
    oct_buf_printf(p->b, "%zu", p->k);
}

/* More than one model is compared with the first, or just one; this model is. */
bool ev_is_many(const ev_page *p)
{
    return oct_item_count(p->models, "") > 2;
}

bool ev_is_pair(const ev_page *p)
{
    return oct_item_count(p->models, "") == 2;
}

bool ev_is_compared(const ev_page *p)
{
    return p->k > 0;
}

bool ev_is_first(const ev_page *p)
{
    return p->i == 0;
}

bool ev_is_last(const ev_page *p)
{
    return p->i + 1 == oct_item_count(p->list, "");
}

bool ev_is_batched(const ev_page *p)
{
    return oct_item_number(p->report, "batch") > 1;
}

bool ev_is_has_findings(const ev_page *p)
{
    bool any = oct_item_count(p->report, "bad") > 0;
    for (const oct_item *m = NULL; (m = oct_item_next(p->models, m));)
        any |= oct_item_count(m, "findings") > 0;
    return any;
}

void oct_report_html(const oct_item *report, oct_buf *out)
{
    ev_page page = { .report = report,
                     .models = oct_item_at(report, "models"),
                     .b = out,
                     .x = report,
                     .forms = forms,
                     .writers = writers,
                     .conditions = conditions };
    ev_page_whole(&page);
}
