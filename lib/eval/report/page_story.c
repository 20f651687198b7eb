/* Which layers stayed float and why, what was changed, what is wrong, and how to make the model again. */
#include "eval/report/page_int.h"

#include <math.h>
#include <string.h>

enum { NAMES = 6 }; /* how many layers or nodes a line names */

/* ---- lists whose lines say the same of several nodes ---- */

static bool is_float(const oct_item *node)
{
    return strcmp(ev_page_row_kind(NULL, node), "float") == 0;
}

/* Whether two lines differ only in their nodes. Of nodes only those that stay float have a line. */
static bool alike(const ev_page *p, const oct_item *a, const oct_item *b)
{
    static const char *const members[][3] = { { "nodes", "op", "why" },
                                              { "passes", "pass", "change" },
                                              { "findings", "kind", "text" } };
    size_t of = 0;
    while (of + 1 < OCT_COUNT(members) && strcmp(oct_item_name(p->list), members[of][0]) != 0)
        of++;
    for (int i = 1; i < 3; i++) {
        const char *x = oct_item_text(a, members[of][i]), *y = oct_item_text(b, members[of][i]);
        if (strcmp(x ? x : "", y ? y : "") != 0)
            return false;
    }
    return of || (is_float(a) && is_float(b));
}

bool ev_is_first_alike(const ev_page *p)
{
    const oct_item *o = oct_item_next(p->list, NULL);
    while (o != p->x && !alike(p, o, p->x))
        o = oct_item_next(p->list, o);
    return o == p->x && alike(p, o, o);
}

void ev_put_times(ev_page *p)
{
    size_t n = 0;
    for (const oct_item *o = NULL; (o = oct_item_next(p->list, o));)
        if (alike(p, o, p->x))
            n += oct_item_whole(o, "count") ? (size_t)oct_item_whole(o, "count") : 1;
    oct_buf_printf(p->b, "%zu", n);
}

/* The first nodes of which the line speaks. */
void ev_put_where(ev_page *p)
{
    size_t named = 0, n = 0;
    for (const oct_item *o = NULL; (o = oct_item_next(p->list, o));) {
        const char *node = oct_item_text(o, oct_item_at(o, "node") ? "node" : "name");
        if (!alike(p, o, p->x))
            continue;
        n++;
        if (named == NAMES || !node || !*node)
            continue;
        oct_buf_puts(p->b, named++ ? ", " : "<br><small>");
        ev_page_name(p, node);
    }
    oct_buf_puts(p->b, !named ? "" : n > named ? " …</small>" : "</small>");
}

static size_t count_float(const oct_item *model)
{
    const oct_item *nodes = oct_item_at(model, "nodes");
    size_t n = 0;
    for (const oct_item *x = NULL; (x = oct_item_next(nodes, x));)
        n += is_float(x);
    return n;
}

void ev_put_n_float(ev_page *p)
{
    oct_buf_printf(p->b, "%zu", count_float(p->model));
}

bool ev_is_any_float(const ev_page *p)
{
    return count_float(p->model) > 0;
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

/* A command in lines of one option each. */
void ev_form_options(const ev_page *p, const oct_item *x, const char *words)
{
    oct_buf lines = OCT_BUF_INIT;
    add_lines(&lines, oct_item_text(x, ""));
    command_lines(p, oct_buf_str(&lines));
    p->b->failed |= lines.failed;
    oct_buf_free(&lines);
}

void ev_form_command(const ev_page *p, const oct_item *x, const char *words)
{
    command_lines(p, oct_item_text(x, ""));
}
