/* Which layers stayed float and why, what was changed, what is wrong, and how to make the model again. */
#include "eval/report/page_int.h"

#include <string.h>

enum { NAMES = 6 }; /* how many layers or nodes a line names */

static bool alike(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* ---- what stayed float ---- */

static bool is_float(const oct_page_layer *l)
{
    return strcmp(ev_page_kind(l->scheme, OCT_UNDEFINED), "float") == 0;
}

static size_t count_float(const oct_page_model *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_layers; i++)
        n += is_float(&m->layer[i]);
    return n;
}

bool ev_page_has_float(const ev_page *p)
{
    for (size_t k = 1; k < p->r->n_models; k++)
        if (ev_page_model(p, k)->n_layers)
            return true;
    return false;
}

/* Writes one line for an operator and a reason, unless an earlier layer has written it. */
static void float_line(const ev_page *p, const oct_page_model *m, size_t i)
{
    const oct_page_layer *l = &m->layer[i];
    size_t n = 0;
    for (size_t o = 0; o < m->n_layers; o++) {
        const oct_page_layer *x = &m->layer[o];
        if (!is_float(x) || !alike(x->op, l->op) || !alike(x->why, l->why))
            continue;
        if (o < i)
            return;
        n++;
    }
    oct_buf_printf(p->b, "<tr><td class=\"count\">%zu</td><td>", n);
    ev_page_name(p, l->op);
    oct_buf_puts(p->b, "</td><td class=\"name\">");
    ev_page_name(p, l->why);
    oct_buf_puts(p->b, "<br><small>");
    size_t named = 0;
    for (size_t o = i; o < m->n_layers && named < NAMES; o++)
        if (is_float(&m->layer[o]) && alike(m->layer[o].op, l->op) && alike(m->layer[o].why, l->why)) {
            oct_buf_puts(p->b, named++ ? ", " : "");
            ev_page_name(p, m->layer[o].name);
        }
    oct_buf_puts(p->b, n > named ? " …</small></td></tr>\n" : "</small></td></tr>\n");
}

void ev_page_float(const ev_page *p)
{
    if (!ev_page_has_float(p))
        return;
    ev_page_section(p, "float", "What stayed float, and why");
    for (size_t k = 1; k < p->r->n_models; k++) {
        const oct_page_model *m = ev_page_model(p, k);
        const size_t n = count_float(m);
        if (!m->n_layers)
            continue;
        ev_page_model_title(p, k);
        oct_buf_printf(p->b, "<p>%zu of %zu nodes%s</p>\n", n, m->n_layers, n ? "." : ": nothing did.");
        if (!n)
            continue;
        oct_buf_puts(
            p->b,
            "<table class=\"sort\">\n<thead><tr><th scope=\"col\" class=\"count\">nodes</th><th scope=\"col\">operator</th><th scope=\"col\">reason</th></tr></thead>\n<tbody>\n");
        for (size_t i = 0; i < m->n_layers; i++)
            if (is_float(&m->layer[i]))
                float_line(p, m, i);
        oct_buf_puts(p->b, "</tbody></table>\n");
    }
    ev_page_section_end(p);
}

/* ---- lists of lines ---- */

static oct_page_lines lines_of(const ev_page *p, size_t k, ev_page_list what)
{
    const oct_page_model *m = ev_page_model(p, k);
    return what == EV_FINDINGS ? m->findings : what == EV_METHODS ? m->methods : m->changes;
}

bool ev_page_has_list(const ev_page *p, ev_page_list what)
{
    for (size_t k = 0; k < p->r->n_models; k++)
        if (lines_of(p, k, what).n)
            return true;
    return what == EV_FINDINGS && p->c->n_bad;
}

static void put_line(const ev_page *p, oct_page_lines l, size_t i, bool counted)
{
    size_t n = 0, places = 0, named = 0;
    for (size_t o = 0; o < l.n; o++) {
        if (!alike(l.v[o].kind, l.v[i].kind) || !alike(l.v[o].text, l.v[i].text))
            continue;
        if (o < i)
            return;
        n += l.v[o].count ? l.v[o].count : 1;
        places++;
    }
    oct_buf_puts(p->b, "<tr>");
    if (counted)
        oct_buf_printf(p->b, "<td class=\"count\">%zu</td>", n);
    oct_buf_puts(p->b, counted ? "<td>" : "<td class=\"key\">");
    ev_page_name(p, l.v[i].kind);
    oct_buf_puts(p->b, "</td><td class=\"name\">");
    ev_page_name(p, l.v[i].text);
    for (size_t o = i; o < l.n && named < NAMES; o++)
        if (alike(l.v[o].kind, l.v[i].kind) && alike(l.v[o].text, l.v[i].text) && l.v[o].where && *l.v[o].where) {
            oct_buf_puts(p->b, named++ ? ", " : "<br><small>");
            ev_page_name(p, l.v[o].where);
        }
    oct_buf_puts(p->b, !named ? "" : places > named ? " …</small>" : "</small>");
    oct_buf_puts(p->b, "</td></tr>\n");
}

static void put_lines(const ev_page *p, ev_page_list what, const char *kind, const char *text)
{
    const bool counted = what != EV_METHODS; /* a method is used once */
    for (size_t k = 0; k < p->r->n_models; k++) {
        const oct_page_lines l = lines_of(p, k, what);
        if (!l.n)
            continue;
        ev_page_model_title(p, k);
        oct_buf_printf(p->b,
                       "<table class=\"sort\">\n<thead><tr>%s%s</th><th scope=\"col\">%s</th></tr></thead>\n<tbody>\n",
                       counted ? "<th scope=\"col\" class=\"count\">times</th><th scope=\"col\">"
                               : "<th scope=\"col\" class=\"key\">",
                       kind, text);
        for (size_t i = 0; i < l.n; i++)
            put_line(p, l, i, counted);
        oct_buf_puts(p->b, "</tbody></table>\n");
    }
}

void ev_page_changes(const ev_page *p)
{
    if (!ev_page_has_list(p, EV_CHANGES))
        return;
    ev_page_section(p, "changes", "What was changed before quantizing");
    put_lines(p, EV_CHANGES, "pass or operator", "change");
    ev_page_section_end(p);
}

void ev_page_methods(const ev_page *p)
{
    if (!ev_page_has_list(p, EV_METHODS))
        return;
    ev_page_section(p, "methods", "What was done for accuracy");
    put_lines(p, EV_METHODS, "method", "what it gained");
    ev_page_section_end(p);
}

void ev_page_findings(const ev_page *p)
{
    if (!ev_page_has_list(p, EV_FINDINGS))
        return;
    ev_page_section(p, "findings", "Findings");
    put_lines(p, EV_FINDINGS, "kind", "finding");
    if (p->c->n_bad) {
        oct_buf_puts(p->b, "<h3>Samples that were left out</h3>\n<ul>\n");
        for (size_t i = 0; i < p->c->n_bad; i++) {
            oct_buf_puts(p->b, "<li class=\"name\">");
            ev_page_text(p, p->c->bad[i]);
            oct_buf_puts(p->b, "</li>\n");
        }
        oct_buf_puts(p->b, "</ul>\n");
    }
    ev_page_section_end(p);
}

/* ---- how to make it again ---- */

/* A command of one line in lines of one option each, as that of the page is. */
static void add_lines(oct_buf *b, const char *command)
{
    bool quoted = false;
    for (const char *at = command; *at; at++) {
        quoted ^= *at == '\'';
        if (!quoted && *at == ' ' && at[1] == '-')
            oct_buf_puts(b, " \\\n    ");
        else
            oct_buf_add(b, at, 1);
    }
}

/* Lines of a command end as in a shell. Any other line break is part of a name, and is shown as text. */
static void command_lines(const ev_page *p, const char *command)
{
    static const char end[] = " \\\n";
    const char *at;
    while ((at = strstr(command, end))) {
        oct_buf line = OCT_BUF_INIT;
        oct_buf_add(&line, command, (size_t)(at - command));
        ev_page_text(p, oct_buf_str(&line));
        p->b->failed |= line.failed;
        oct_buf_free(&line);
        oct_buf_puts(p->b, end);
        command = at + sizeof end - 1;
    }
    ev_page_text(p, command);
}

static void put_command(const ev_page *p, const char *title, const char *of, const char *command)
{
    oct_buf lines = OCT_BUF_INIT;
    if (!command || !*command)
        return;
    if (of)
        add_lines(&lines, command);
    else
        oct_buf_puts(&lines, command);
    oct_buf_printf(p->b, "<h4>%s", title);
    if (of) {
        oct_buf_puts(p->b, " ");
        ev_page_text(p, of);
    }
    oct_buf_puts(p->b, "</h4>\n<pre><code>");
    command_lines(p, oct_buf_str(&lines));
    p->b->failed |= lines.failed;
    oct_buf_free(&lines);
    oct_buf_puts(p->b, "</code></pre>\n");
}

/* Describes the machine on which the figures were measured. */
static void put_machine(const ev_page *p)
{
    const oct_eval_result *r = p->r;
    char text[OCT_ENVIRONMENT_TEXT];
    oct_buf_puts(p->b, "<h4>With</h4>\n<p>");
    /* nothing was run, so that the machine does not matter */
    ev_page_text(p, r->environment.used ? oct_report_environment(text, r, p->c->version)
                    : p->c->version     ? p->c->version
                                        : "octet");
    if (r->batch > 1)
        oct_buf_printf(p->b, "; %zu samples at a time", r->batch);
    if (r->machine.bytes > 0) /* a multiply-accumulate is two operations */
        oct_buf_printf(p->b, "; at its best %.3g GFLOP/s in float, %.3g GOP/s in int8, %.3g GB/s",
                       2e-9 * r->machine.float_macs, 2e-9 * r->machine.int8_macs, 1e-9 * r->machine.bytes);
    oct_buf_puts(p->b, "</p>\n");
}

void ev_page_reproduce(const ev_page *p)
{
    const oct_eval_result *r = p->r;
    ev_page_section(p, "reproduce", "How to make it again");
    for (size_t k = 0; k < r->n_models; k++)
        put_command(p, "What made", ev_page_base(r->models[k].name), ev_page_model(p, k)->command);
    put_command(p, "This page", NULL, p->c->page ? p->c->page->command : NULL);
    put_machine(p);
    ev_page_section_end(p);
}
