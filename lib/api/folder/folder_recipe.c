/* Recipes as text, and what their lines say of names. */
#include "api/folder/folder_recipe.h"

#include "base/buf.h"
#include "base/io.h"
#include "base/words.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *summary, *text;
} builtin[] = {
#include "api/builtin_recipes.inc"
};

const char *oct_folder_recipe_builtin(size_t i, const char **summary)
{
    if (i >= OCT_COUNT(builtin))
        return NULL;
    if (summary)
        *summary = builtin[i].summary;
    return builtin[i].name;
}

/* ---- keys ---- */

#define KEY(name) static oct_status read_##name(oct_words *w, void *self, oct_err *err)

/* The words that follow; at least one. */
static oct_status read_list(oct_words *w, oct_folder_recipe_list *list, const char *what, oct_err *err)
{
    oct_words_skip(w);
    const char *at = w->at;
    while (!oct_words_done(w)) {
        const char *word;
        OCT_TRY(oct_words_next(w, &word, &at, err));
        if (!OCT_GROW(w->arena, list->v, list->n, list->cap))
            return oct_nomem(err);
        list->v[list->n++] = word;
    }
    return list->n ? OCT_OK : oct_words_fault(w, at, err, "the %s is missing", what);
}

static oct_status read_word(oct_words *w, const char *what, const char **word, oct_err *err)
{
    const char *at;
    OCT_TRY(oct_words_next(w, word, &at, err));
    return **word ? OCT_OK : oct_words_fault(w, at, err, "the %s is missing", what);
}

#define ADD(r, list) OCT_GROW((r)->arena, (r)->list, (r)->n_##list, (r)->cap_##list)

KEY(found)
{
    oct_folder_recipe *r = self;
    if (!ADD(r, found))
        return oct_nomem(err);
    r->found[r->n_found] = (oct_folder_recipe_list){ 0 };
    return read_list(w, &r->found[r->n_found++], "name of a file", err);
}

static bool is_inside(const char *path)
{
    return *path != '/' && strstr(path, "..") == NULL;
}

static oct_status read_file(oct_words *w, const char **path, oct_err *err)
{
    OCT_TRY(read_word(w, "name of a file", path, err));
    return is_inside(*path) ? OCT_OK : oct_words_fault(w, w->at, err, "'%s' is not a path in the folder", *path);
}

KEY(config)
{
    return read_file(w, &((oct_folder_recipe *)self)->config, err);
}

KEY(count)
{
    return read_word(w, "path in the configuration", &((oct_folder_recipe *)self)->count, err);
}

KEY(data)
{
    oct_folder_recipe *r = self;
    OCT_TRY(read_file(w, &r->data, err));
    return strchr(r->data, '*') && !strchr(strchr(r->data, '*') + 1, '*') && !strchr(r->data, '/')
               ? OCT_OK
               : oct_words_fault(w, w->at, err, "'%s' is no name with one * in it", r->data);
}

/* The scheme `copy` leaves a model as it is. */
static oct_status read_scheme(oct_words *w, const char **scheme, oct_err *err)
{
    static const char *const schemes[] = {
        "auto", "static", "dynamic", "weight-only", "stored", "fp16", "bf16", "copy"
    };
    size_t i;
    OCT_TRY(OCT_WORDS_ONE_OF(w, "scheme", schemes, &i, err));
    *scheme = schemes[i];
    return OCT_OK;
}

KEY(model)
{
    oct_folder_recipe *r = self;
    if (!ADD(r, model))
        return oct_nomem(err);
    oct_folder_recipe_model *m = &r->model[r->n_model++];
    OCT_TRY(read_word(w, "name of a model", &m->pattern, err));
    OCT_TRY(read_scheme(w, &m->scheme, err));
    m->sampled = m->scheme;
    m->input = NULL;
    if (!oct_words_done(w) && strncmp(w->at, "input ", 6) != 0)
        OCT_TRY(read_scheme(w, &m->sampled, err));
    if (oct_words_done(w))
        return OCT_OK;
    OCT_TRY(oct_words_expect(w, "input", err));
    return read_word(w, "name of an input", &m->input, err);
}

KEY(variant)
{
    oct_folder_recipe *r = self;
    if (!ADD(r, variant))
        return oct_nomem(err);
    oct_folder_recipe_variant *v = &r->variant[r->n_variant++];
    *v = (oct_folder_recipe_variant){ 0 };
    OCT_TRY(read_word(w, "end of a name", &v->suffix, err));
    OCT_TRY(read_word(w, "name of the variant", &v->word, err));
    return read_list(w, &v->schemes, "scheme (- for none)", err);
}

static oct_status read_ends(oct_words *w, oct_folder_recipe *r, bool outputs, oct_err *err)
{
    if (!ADD(r, ends))
        return oct_nomem(err);
    oct_folder_recipe_ends *e = &r->ends[r->n_ends++];
    *e = (oct_folder_recipe_ends){ .outputs = outputs };
    OCT_TRY(read_word(w, "name of a model", &e->pattern, err));
    return read_list(w, &e->names, outputs ? "name of an output" : "name of an input", err);
}

KEY(takes)
{
    return read_ends(w, self, false, err);
}

KEY(gives)
{
    return read_ends(w, self, true, err);
}

KEY(set)
{
    oct_folder_recipe *r = self;
    if (!ADD(r, amend))
        return oct_nomem(err);
    oct_folder_recipe_amend *a = &r->amend[r->n_amend++];
    OCT_TRY(read_file(w, &a->file, err));
    OCT_TRY(read_word(w, "path of a value", &a->path, err));
    static const char *const what[] = { "words", "data" };
    size_t i;
    OCT_TRY(OCT_WORDS_ONE_OF(w, "value", what, &i, err));
    a->data = i == 1;
    return OCT_OK;
}

KEY(leave)
{
    return read_list(w, &((oct_folder_recipe *)self)->leave, "name of a file", err);
}

static const oct_words_key keys[] = {
    { "summary" },
    { "found", .read = read_found, .again = true, .required = true },
    { "config", .read = read_config },
    { "model", .read = read_model, .again = true, .required = true },
    { "names", OCT_WORDS_CHOICE(oct_folder_recipe, names, NULL, "same", "variant") },
    { "variant", .read = read_variant, .again = true },
    { "takes", .read = read_takes, .again = true },
    { "gives", .read = read_gives, .again = true },
    { "count", .read = read_count },
    { "set", .read = read_set, .again = true },
    { "data", .read = read_data },
    { "leave", .read = read_leave, .again = true },
};

/* Paths in a configuration need one. */
static oct_status check(const oct_folder_recipe *r, const char *label, oct_err *err)
{
    const char *path = r->count;
    for (size_t i = 0; i < r->n_model && !path; i++)
        if (*r->model[i].pattern == '/')
            path = r->model[i].pattern;
    return !path || r->config ? OCT_OK
                              : oct_fail(err, OCT_EMALFORMED,
                                         "%s: '%s' is a path in a configuration, and no line "
                                         "'config FILE' names one",
                                         label, path);
}

static oct_status parse(oct_folder_recipe *r, const char *text, const char *label, oct_err *err)
{
    oct_words w = { .label = label, .next = text, .arena = r->arena };
    OCT_TRY(oct_words_read(&w, &(oct_words_format){ .key = keys, .n = OCT_COUNT(keys) }, r, err));
    return check(r, label, err);
}

oct_status oct_folder_recipe_parse(const char *text, const char *label, oct_folder_recipe **out, oct_err *err)
{
    *out = NULL;
    oct_arena *arena = oct_arena_create();
    oct_folder_recipe *r = arena ? oct_arena_calloc(arena, 1, sizeof *r) : NULL;
    const char *name = r ? oct_arena_strdup(arena, label) : NULL;
    if (!name) {
        oct_arena_destroy(arena);
        return oct_nomem(err);
    }
    r->arena = arena;
    r->name = name;
    const oct_status s = parse(r, text, label, err);
    if (s == OCT_OK)
        *out = r;
    else
        oct_arena_destroy(arena);
    return s;
}

static oct_status open_file(const char *path, oct_folder_recipe **r, oct_err *err)
{
    enum { MOST_TEXT = 1 << 20 };
    char *text;
    OCT_TRY(oct_read_text(path, MOST_TEXT, "a recipe", &text, err));
    const oct_status s = oct_folder_recipe_parse(text, path, r, err);
    oct_free(text);
    return s;
}

oct_status oct_folder_recipe_open(const char *word, oct_folder_recipe **r, oct_err *err)
{
    enum { FAR = 4 };
    oct_nearest near = { .word = word, .most = FAR };
    if (strchr(word, '/'))
        return open_file(word, r, err);
    for (size_t i = 0; i < OCT_COUNT(builtin); i++) {
        if (strcmp(builtin[i].name, word) == 0)
            return oct_folder_recipe_parse(builtin[i].text, word, r, err);
        oct_nearest_try(&near, builtin[i].name);
    }
    oct_fail(err, OCT_EUSAGE, "there is no recipe '%s'", word);
    oct_nearest_hint(&near, 1, "--list-recipes lists them; a path with a slash is a file of one", err);
    return OCT_EUSAGE;
}

void oct_folder_recipe_close(oct_folder_recipe *r)
{
    if (r)
        oct_arena_destroy(r->arena);
}

/* ---- names ---- */

static size_t stem_of(const char *path)
{
    static const char end[] = ".onnx";
    const size_t n = strlen(path), e = sizeof end - 1;
    return n > e && strcmp(path + n - e, end) == 0 ? n - e : n;
}

const oct_folder_recipe_variant *oct_folder_recipe_variant_of(const oct_folder_recipe *r, const char *path,
                                                              size_t *stem)
{
    const oct_folder_recipe_variant *found = NULL;
    const size_t whole = stem_of(path);
    *stem = whole;
    for (size_t i = 0; i < r->n_variant; i++) {
        const size_t n = strlen(r->variant[i].suffix);
        if (n < whole && whole - n < *stem && strncmp(path + whole - n, r->variant[i].suffix, n) == 0) {
            found = &r->variant[i];
            *stem = whole - n;
        }
    }
    return found;
}

const oct_folder_recipe_variant *oct_folder_recipe_variant_for(const oct_folder_recipe *r, const char *scheme, int bits,
                                                               const char *floats)
{
    char names[3][64];
    snprintf(names[0], sizeof names[0], "%s/%d/%s", scheme, bits ? bits : 4, floats);
    snprintf(names[1], sizeof names[1], "%s/%d", scheme, bits ? bits : 4);
    snprintf(names[2], sizeof names[2], "%s", scheme);
    for (size_t k = 0; k < OCT_COUNT(names); k++)
        for (size_t i = 0; i < r->n_variant; i++)
            for (size_t c = 0; c < r->variant[i].schemes.n; c++)
                if (strcmp(r->variant[i].schemes.v[c], names[k]) == 0)
                    return &r->variant[i];
    return NULL;
}
