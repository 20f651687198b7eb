/* What the program that loads a folder wants of its models. */
#include "api/folder/demands.h"

#include "onnx/model.h"
#include "passes/pass.h"

#include <stdio.h>
#include <string.h>

/* ---- like the source ---- */

static void put_shape(char *text, size_t size, const oct_shape *s)
{
    size_t n = (size_t)snprintf(text, size, s->rank < 0 ? "of any shape" : "[");
    for (int i = 0; i < s->rank && n < size; i++)
        n += s->d[i].n >= 0
                 ? (size_t)snprintf(text + n, size - n, "%s%lld", i ? "," : "", (long long)s->d[i].n)
                 : (size_t)snprintf(text + n, size - n, "%s%s", i ? "," : "", s->d[i].sym ? s->d[i].sym : "?");
    if (s->rank >= 0 && n < size)
        snprintf(text + n, size - n, "]");
}

static bool same_dim(const oct_dim *a, const oct_dim *b)
{
    return a->n == b->n && (a->n >= 0 || !a->sym || !b->sym || strcmp(a->sym, b->sym) == 0);
}

static bool same_shape(const oct_shape *a, const oct_shape *b)
{
    if (a->rank != b->rank)
        return a->rank < 0; /* the result says more: that is fine */
    for (int i = 0; i < a->rank; i++)
        if (!same_dim(&a->d[i], &b->d[i]) && a->d[i].n >= 0)
            return false;
    return true;
}

static bool is_float(oct_dtype t)
{
    return t == OCT_F32 || t == OCT_F16 || t == OCT_BF16;
}

static bool same_type(oct_dtype a, oct_dtype b, oct_alike how)
{
    return a == b || how == OCT_ALIKE_RETYPED || (how == OCT_ALIKE_PUBLISHED && is_float(a) && is_float(b));
}

static oct_status check_end(const char *what, const oct_value *s, const oct_value *m, oct_alike how, oct_err *err)
{
    char was[256], is[256];
    if (s->kind == m->kind && !same_type(s->dtype, m->dtype, how))
        return oct_fail(err, OCT_EMALFORMED, "%s '%s' is %s, and that of the float model is %s", what, m->name,
                        oct_dtype_name(m->dtype), oct_dtype_name(s->dtype));
    if (s->kind != m->kind || same_shape(&s->shape, &m->shape))
        return OCT_OK;
    put_shape(was, sizeof was, &s->shape);
    put_shape(is, sizeof is, &m->shape);
    return oct_fail(err, OCT_EMALFORMED, "%s '%s' is %s, and that of the float model is %s", what, m->name, is, was);
}

typedef struct side {
    const oct_graph *g;
    const int *v;
    size_t n;
} side;

/* The end that stands for the i-th of the other side; NULL: there is none. */
static const oct_value *find_end(const side *in, const char *name, size_t i, oct_alike how)
{
    if (how != OCT_ALIKE_PUBLISHED)
        return i < in->n ? &in->g->value[in->v[i]] : NULL;
    for (size_t k = 0; k < in->n; k++)
        if (strcmp(in->g->value[in->v[k]].name, name) == 0)
            return &in->g->value[in->v[k]];
    return NULL;
}

static oct_status check_side(const char *what, side s, side m, oct_alike how, oct_err *err)
{
    for (size_t i = 0; i < s.n; i++) {
        const oct_value *want = &s.g->value[s.v[i]], *is = find_end(&m, want->name, i, how);
        if (!is || strcmp(want->name, is->name) != 0)
            return oct_fail(err, OCT_EMALFORMED, "the %s '%s' of the float model is %s%s%s", what, want->name,
                            is ? "'" : "not there", is ? is->name : "", is ? "' here" : "");
        OCT_TRY(check_end(what, want, is, how, err));
    }
    for (size_t i = 0; i < m.n; i++) {
        const char *name = m.g->value[m.v[i]].name;
        if (i >= s.n || !find_end(&s, name, i, how))
            return oct_fail(err, OCT_EMALFORMED, "it has the %s '%s', which the float model does not have", what, name);
    }
    return OCT_OK;
}

static oct_status check_metadata(const oct_model *source, const oct_model *made, oct_err *err)
{
    const char *key;
    for (size_t i = 0; (key = oct_model_meta_key(source, i)); i++)
        if (strncmp(key, "octet.", 6) != 0 && !oct_model_meta(made, key))
            return oct_fail(err, OCT_EMALFORMED, "the entry '%s' of the float model's metadata is not there", key);
    return OCT_OK;
}

oct_status oct_demands_types(oct_model *made, oct_err *err)
{
    OCT_TRY(oct_infer_shapes(made->graph, err));
    return oct_check_types(made->graph, err);
}

oct_status oct_demands_alike(const oct_model *source, oct_model *made, oct_alike how, oct_err *err)
{
    const oct_graph *s = source->graph, *m = made->graph;
    OCT_TRY(check_side("input", (side){ s, s->input, s->n_input }, (side){ m, m->input, m->n_input }, how, err));
    OCT_TRY(check_side("output", (side){ s, s->output, s->n_output }, (side){ m, m->output, m->n_output }, how, err));
    if (how != OCT_ALIKE_PUBLISHED)
        OCT_TRY(check_metadata(source, made, err));
    return oct_demands_types(made, err);
}

/* ---- what a recipe asks for ---- */

typedef struct asking {
    const oct_folder *f;
    const oct_graph *g;
    bool outputs;
    oct_status (*note)(void *arg, const char *text, oct_err *err);
    void *arg;
    oct_buf missing;
} asking;

static bool has_end(const asking *a, const char *name)
{
    const int *list = a->outputs ? a->g->output : a->g->input;
    const size_t n = a->outputs ? a->g->n_output : a->g->n_input;
    for (size_t i = 0; i < n; i++)
        if (strcmp(a->g->value[list[i]].name, name) == 0)
            return true;
    return false;
}

static void ask(asking *a, const char *name)
{
    enum { MOST_TEXT = 200 };
    if (!has_end(a, name) && a->missing.len < MOST_TEXT)
        oct_buf_printf(&a->missing, "%s'%s'", a->missing.len ? ", " : "", name);
}

/* A name, or one for each layer. */
static oct_status ask_text(void *arg, const char *text, const char *at, oct_err *err)
{
    enum { MOST_LAYERS = 4096 };
    asking *a = arg;
    const char *d = strstr(text, "%d");
    const double layers =
        d && a->f->recipe->count ? oct_configuration_number(&a->f->configuration, a->f->recipe->count, 0) : 0;
    if (!d)
        ask(a, text);
    for (int i = 0; i < layers && i < MOST_LAYERS; i++) {
        char name[256];
        oct_print_whole(name, sizeof name, "%.*s%d%s", (int)(d - text), text, i, d + 2);
        ask(a, name);
    }
    return OCT_OK;
}

static oct_status ask_line(asking *a, const oct_folder_recipe_ends *e, oct_err *err)
{
    for (size_t i = 0; i < e->names.n; i++)
        OCT_TRY(*e->names.v[i] == '/' ? oct_configuration_texts(&a->f->configuration, e->names.v[i], ask_text, a, err)
                                      : ask_text(a, e->names.v[i], "", err));
    if (!a->missing.len)
        return OCT_OK;
    char text[512];
    oct_print_whole(text, sizeof text, "%s %s %s, which the model does not have", a->f->recipe->name,
                    e->outputs ? "reads" : "feeds", oct_buf_str(&a->missing));
    return a->note(a->arg, text, err);
}

oct_status oct_demands_missing(const oct_folder *f, const char *path, const oct_graph *g,
                               oct_status (*note)(void *arg, const char *text, oct_err *err), void *arg, oct_err *err)
{
    for (size_t i = 0; i < f->recipe->n_ends; i++) {
        const oct_folder_recipe_ends *e = &f->recipe->ends[i];
        if (!oct_folder_fits(f, e->pattern, path))
            continue;
        asking a = { .f = f, .g = g, .outputs = e->outputs, .note = note, .arg = arg };
        const oct_status s = ask_line(&a, e, err);
        oct_buf_free(&a.missing);
        OCT_TRY(s);
    }
    return OCT_OK;
}
