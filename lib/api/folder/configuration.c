/* The JSON files of a folder. */
#include "api/folder/configuration.h"

#include "base/io.h"

#include <stdio.h>
#include <string.h>

enum { MOST_TEXT = 64 << 20, MOST_PATH = 512 };

oct_status oct_configuration_read(const oct_listing *l, const char *file, oct_arena *arena, oct_configuration *c,
                                  oct_err *err)
{
    const oct_listed *f = oct_listing_find(l, file);
    *c = (oct_configuration){ .label = oct_listing_at(l, file, arena) };
    if (!c->label)
        return oct_nomem(err);
    if (!f)
        return oct_fail(err, OCT_EIO, "%s: the file is not there", c->label);
    OCT_TRY(oct_read_text(f->real, MOST_TEXT, "JSON", &c->text, err));
    c->size = strlen(c->text);
    return oct_tree_parse(c->text, c->size, c->label, &c->root, err);
}

void oct_configuration_close(oct_configuration *c)
{
    oct_tree_free(c->root);
    oct_free(c->text);
    *c = (oct_configuration){ 0 };
}

/* ---- reading ---- */

typedef struct search {
    oct_configuration_fn fn;
    void *arg;
    oct_err *err;
} search;

static oct_status find(const search *s, oct_tree *t, const char *path, const char *at);

/* All members, or elements, of t, whose rest of the path is the same. */
static oct_status find_in_all(const search *s, oct_tree *t, const char *path, const char *at)
{
    char where[MOST_PATH];
    const char *name;
    oct_tree *member;
    for (size_t i = 0; oct_tree_is_list(t) && i < oct_tree_count(t); i++) {
        snprintf(where, sizeof where, "%s/%zu", at, i);
        OCT_TRY(find(s, oct_tree_at(t, i), path, where));
    }
    for (void *i = NULL; oct_tree_is_object(t) && oct_tree_next(t, &i, &name, &member);) {
        oct_print_whole(where, sizeof where, "%s/%s", at, name);
        OCT_TRY(find(s, member, path, where));
    }
    return OCT_OK;
}

/* path: "" or "/name..." */
static oct_status find(const search *s, oct_tree *t, const char *path, const char *at)
{
    char where[MOST_PATH], name[MOST_PATH];
    if (!t)
        return OCT_OK;
    if (!*path) {
        const char *text = oct_tree_text(t);
        return text                                           ? s->fn(s->arg, text, at, s->err)
               : oct_tree_is_object(t) || oct_tree_is_list(t) ? find_in_all(s, t, "", at)
                                                              : OCT_OK;
    }
    const size_t n = strcspn(path + 1, "/");
    if (n == 1 && path[1] == '*')
        return find_in_all(s, t, path + 1 + n, at);
    snprintf(name, sizeof name, "%.*s", (int)n, path + 1);
    oct_print_whole(where, sizeof where, "%s/%s", at, name);
    return find(s, oct_tree_member(t, name), path + 1 + n, where);
}

oct_status oct_configuration_texts(const oct_configuration *c, const char *path, oct_configuration_fn fn, void *arg,
                                   oct_err *err)
{
    return find(&(search){ fn, arg, err }, c->root, path, "");
}

static const oct_tree *at_path(const oct_configuration *c, const char *path)
{
    const oct_tree *t = c->root;
    char name[MOST_PATH];
    for (size_t n; *path; path += n + 1) {
        n = strcspn(path + 1, "/");
        snprintf(name, sizeof name, "%.*s", (int)n, path + 1);
        t = oct_tree_member(t, name);
    }
    return t;
}

double oct_configuration_number(const oct_configuration *c, const char *path, double other)
{
    double v;
    return oct_tree_number(at_path(c, path), &v) ? v : other;
}

bool oct_configuration_has(const oct_configuration *c, const char *path)
{
    return at_path(c, path);
}

/* ---- setting ---- */

static const char *skip_space(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

/* Behind the text that begins at p. */
static const char *skip_text(const char *p)
{
    for (p++; *p && *p != '"'; p++)
        p += *p == '\\' && p[1];
    return p + (*p == '"');
}

/* Behind the value that begins at p. */
static const char *skip_value(const char *p)
{
    int depth = 0;
    do {
        if (*p == '"') {
            p = skip_text(p);
        } else if (strchr("{[", *p) || strchr("}]", *p)) {
            depth += strchr("{[", *p) ? 1 : -1;
            p++;
        } else if (depth == 0) {
            return p + strcspn(p, ",}] \t\r\n");
        } else {
            p++;
        }
    } while (depth > 0 && *p);
    return p;
}

/* The value of a member of the object that begins at p; NULL: it has none. *last: where another member can be added;
 * *any: whether it has one. */
static const char *find_member(const char *p, const char *name, size_t n, const char **last, bool *any)
{
    *any = false;
    *last = p + 1;
    for (p = skip_space(p + 1); *p == '"';) {
        const char *key = p + 1, *end = skip_text(p), *value = skip_space(skip_space(end) + 1);
        if ((size_t)(end - 1 - key) == n && strncmp(key, name, n) == 0)
            return value;
        *any = true;
        *last = p = skip_value(value);
        p = skip_space(p);
        if (*p == ',')
            p = skip_space(p + 1);
    }
    return NULL;
}

void oct_json_set(const char *text, const char *path, const char *value, oct_buf *out)
{
    const char *at = skip_space(text), *end;
    size_t n = strcspn(path, "/");
    bool any = false;
    for (; *at == '{'; path += n + 1, n = strcspn(path, "/")) {
        const char *member = find_member(at, path, n, &end, &any);
        if (!member)
            break;
        at = member;
        if (!path[n]) { /* it is there: its value is replaced */
            oct_buf_add(out, text, (size_t)(at - text));
            oct_buf_puts(out, value);
            oct_buf_puts(out, skip_value(at));
            return;
        }
    }
    if (*at != '{') { /* what stands where an object is needed is replaced by one */
        end = skip_value(at);
        any = false;
        oct_buf_add(out, text, (size_t)(at - text));
        oct_buf_puts(out, "{");
    } else {
        oct_buf_add(out, text, (size_t)(end - text));
    }
    oct_buf_puts(out, any ? ",\n  " : *at == '{' ? "\n  " : "");
    int nested = 0;
    for (;; path += n + 1, n = strcspn(path, "/"), nested++) {
        oct_buf_printf(out, "\"%.*s\": %s", (int)n, path, path[n] ? "{" : "");
        if (!path[n])
            break;
    }
    oct_buf_puts(out, value);
    for (nested += *at != '{'; nested > 0; nested--)
        oct_buf_puts(out, "}");
    oct_buf_puts(out, end);
}
