/* Fills share/page/page.html with a report; page_int.h says how its tags are written. */
#include "eval/report/page_int.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char layout[] =
#include "eval/page_html.inc"
    ;

/* A tag, from its {{ to behind its }}: its kind, "" for a value, and what it names. */
typedef struct tag {
    const char *at, *behind;
    char kind;
    char name[120];
} tag;

/* The next tag before the end. */
static bool next_tag(const char *from, const char *end, tag *t)
{
    const char *at = strstr(from, "{{");
    if (!at || at >= end)
        return false;
    const char *close = strstr(at, "}}"), *name = at + 2;
    t->kind = strchr("@?!#+:/", *name) ? *name++ : '\0';
    assert((size_t)(close - name) < sizeof t->name);
    memcpy(t->name, name, (size_t)(close - name));
    t->name[close - name] = '\0';
    t->at = at;
    t->behind = close + 2;
    return true;
}

/* The {{/}} that ends what a tag begins. */
static tag closing(const char *from, const char *end)
{
    tag t = { .at = end, .behind = end };
    for (int depth = 1; depth && next_tag(from, end, &t); from = t.behind)
        depth += t.kind == '/' ? -1 : t.kind && strchr("?!#:", t.kind) ? 1 : 0;
    return t;
}

static void literal(const ev_page *p, const char *from, const char *end)
{
    for (const char *joined; from < end && (joined = strstr(from, "\\\n")) && joined < end; from = joined + 2)
        oct_buf_add(p->b, from, (size_t)(joined - from));
    oct_buf_add(p->b, from, (size_t)(end - from));
}

/* ---- paths ---- */

/* Where a path starts; it is moved behind what says so. */
static const oct_item *origin(const ev_page *p, const char **path)
{
    const struct {
        const char *prefix;
        const oct_item *x;
    } from[] = { { "$.", p->report }, { "model.", p->model }, { "metric.", p->metric }, { "node.", p->node } };
    for (size_t i = 0; i < OCT_COUNT(from); i++)
        if (strncmp(*path, from[i].prefix, strlen(from[i].prefix)) == 0) {
            *path += strlen(from[i].prefix);
            return from[i].x;
        }
    if (strcmp(*path, ".") == 0)
        ++*path;
    return p->x;
}

static const oct_item *value_at(const ev_page *p, const char *path)
{
    const oct_item *x = origin(p, &path);
    return oct_item_at(x, path);
}

/* Whether there is something at the path; * stands for any of a list. */
static bool is_any(const oct_item *x, const char *path)
{
    char part[120];
    const char *star = strstr(path, ".*.");
    if (!star)
        return oct_item_is_any(oct_item_at(x, path));
    memcpy(part, path, (size_t)(star - path));
    part[star - path] = '\0';
    const oct_item *list = oct_item_at(x, part);
    for (const oct_item *in = NULL; (in = oct_item_next(list, in));)
        if (is_any(in, star + 3))
            return true;
    return false;
}

static bool holds(const ev_page *p, const char *name)
{
    for (const ev_page_condition *c = p->conditions; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c->holds(p);
    const oct_item *x = origin(p, &name);
    return is_any(x, name);
}

/* ---- tags ---- */

static void put_value(const ev_page *p, char *name)
{
    char *form = strchr(name, ':'), *words = "";
    if (form) {
        *form++ = '\0';
        if ((words = strchr(form, ' ')))
            *words++ = '\0';
    }
    const oct_item *x = value_at(p, name);
    for (const ev_page_form *f = p->forms; form && f->name; f++)
        if (strcmp(f->name, form) == 0) {
            f->put(p, x, words ? words : "");
            return;
        }
    assert(!form);
    if (oct_item_text(x, ""))
        ev_page_text(p, oct_item_text(x, ""));
    else if (!isnan(oct_item_number(x, "")))
        oct_buf_printf(p->b, "%.0f", oct_item_number(x, ""));
}

static void put_written(ev_page *p, const char *name)
{
    const ev_page_writer *w = p->writers;
    while (w->name && strcmp(w->name, name) != 0)
        w++;
    assert(w->name);
    if (w->name)
        w->put(p);
}

static void render(ev_page *p, const char *from, const char *end);

static void loop(const ev_page *from, const char *path, const char *at, const char *end)
{
    ev_page in = *from;
    in.list = value_at(from, path);
    in.i = 0;
    for (const oct_item *x = NULL; oct_item_is_list(in.list) && (x = oct_item_next(in.list, x)); in.i++) {
        in.x = x;
        if (in.list == in.models) {
            in.model = x;
            in.k = in.i;
            ev_page_measure(&in);
        } else if (in.list == oct_item_at(in.report, "metrics")) {
            in.metric = x;
        }
        render(&in, at, end);
    }
}

static void put_tag(ev_page *p, tag *t, const char *body_end)
{
    if (t->kind == '#')
        loop(p, t->name, t->behind, body_end);
    else if (t->kind == '+')
        ev_page_block(p, t->name);
    else if (t->kind == '@')
        put_written(p, t->name);
    else if (!t->kind)
        put_value(p, t->name);
    else if (holds(p, t->name) == (t->kind == '?'))
        render(p, t->behind, body_end);
}

static void render(ev_page *p, const char *from, const char *end)
{
    tag t;
    while (next_tag(from, end, &t)) {
        literal(p, from, t.at);
        const bool body = t.kind && strchr("?!#", t.kind);
        const tag close = body ? closing(t.behind, end) : t;
        put_tag(p, &t, close.at);
        from = close.behind;
    }
    literal(p, from, end);
}

void ev_page_block(ev_page *p, const char *name)
{
    char begin[64];
    const int n = snprintf(begin, sizeof begin, "{{:%s}}", name);
    const char *at = strstr(layout, begin), *end = layout + sizeof layout - 1;
    assert(at && n < (int)sizeof begin);
    const tag close = closing(at + n, end);
    render(p, at + n, close.at);
}

void ev_page_whole(ev_page *p)
{
    render(p, layout, strstr(layout, "{{:"));
}
