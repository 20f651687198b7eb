#define _XOPEN_SOURCE 700
/* What is in a folder, by a recipe. */
#include "api/folder/folder_plan.h"

#include "api/files.h"
#include "data/readers/readers.h"
#include "onnx/model.h"

#include <fnmatch.h>
#include <string.h>

/* ---- the recipe ---- */

static bool fits_recipe(const oct_listing *l, const oct_folder_recipe *r)
{
    for (size_t i = 0; i < r->n_found; i++) {
        bool any = false;
        for (size_t k = 0; k < r->found[i].n; k++)
            any |= oct_listing_has(l, r->found[i].v[k]);
        if (!any)
            return false;
    }
    return true;
}

/* The first recipe that is built in and fits; NULL: none. */
static oct_status find_fitting(const oct_listing *l, const char **name, oct_err *err)
{
    bool fits = false;
    for (size_t i = 0; !fits && (*name = oct_folder_recipe_builtin(i, NULL)); i++) {
        oct_folder_recipe *r;
        OCT_TRY(oct_folder_recipe_open(*name, &r, err));
        fits = fits_recipe(l, r);
        oct_folder_recipe_close(r);
    }
    return OCT_OK;
}

/* "config.json, and onnx/... or model.onnx" */
static void say_found(const oct_folder_recipe *r, oct_buf *b)
{
    for (size_t i = 0; i < r->n_found; i++)
        for (size_t k = 0; k < r->found[i].n; k++)
            oct_buf_printf(b, "%s%s", k ? " or " : i ? " and " : "", r->found[i].v[k]);
}

/* A folder with files, and neither a model nor a configuration of one: of samples, most likely. */
static bool has_no_model(const oct_folder *f)
{
    static const char *const kinds[] = { ".onnx", ".tflite", ".json" };
    bool none = f->listing.n > 0;
    for (size_t i = 0; i < f->listing.n; i++)
        for (size_t k = 0; k < OCT_COUNT(kinds); k++)
            none &= !oct_has_suffix(f->listing.v[i].path, kinds[k]);
    return none;
}

static oct_status fits_none(const oct_folder *f, const oct_folder_recipe *asked, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    if (has_no_model(f)) {
        oct_fail(err, OCT_EUSAGE, "%s: there is no .onnx model in this folder", f->listing.folder);
        oct_hint(err, "samples are given with --data, behind the model: MODEL --data %.300s", f->listing.folder);
        return OCT_EUSAGE;
    }
    for (size_t i = 0; oct_folder_recipe_builtin(i, NULL) && !asked; i++) {
        oct_folder_recipe *r;
        if (oct_folder_recipe_open(oct_folder_recipe_builtin(i, NULL), &r, NULL) != OCT_OK)
            continue;
        oct_buf_printf(&b, "%s%s has ", i ? "; " : "", r->name);
        say_found(r, &b);
        oct_folder_recipe_close(r);
    }
    if (asked)
        say_found(asked, &b);
    if (asked)
        oct_fail(err, OCT_EUSAGE, "%s: the folder is not one of %s, which has %s", f->listing.folder, asked->name,
                 oct_buf_str(&b));
    else
        oct_fail(err, OCT_EUSAGE, "%s: the folder fits no recipe: a folder of %s", f->listing.folder, oct_buf_str(&b));
    for (size_t i = 0; i < f->listing.n; i++)
        if (oct_has_suffix(f->listing.v[i].path, ".tflite")) {
            oct_hint(err, "folders are of .onnx models: give %s/%s itself", f->listing.folder, f->listing.v[i].path);
            oct_buf_free(&b);
            return OCT_EUSAGE;
        }
    const char *name = NULL;
    if (asked && find_fitting(&f->listing, &name, NULL) == OCT_OK && name)
        oct_hint(err, "it is one of %s: leave --recipe out", name);
    else
        oct_hint(err, "samples are given with --data; of models, give the folder that holds their configuration, or a "
                      "file of a recipe with --recipe");
    oct_buf_free(&b);
    return OCT_EUSAGE;
}

static oct_status find_recipe(oct_folder *f, const char *recipe, oct_err *err)
{
    if (recipe && strcmp(recipe, "auto") != 0) {
        OCT_TRY(oct_folder_recipe_open(recipe, &f->recipe, err));
        return fits_recipe(&f->listing, f->recipe) ? OCT_OK : fits_none(f, f->recipe, err);
    }
    const char *name;
    OCT_TRY(find_fitting(&f->listing, &name, err));
    if (name)
        return oct_folder_recipe_open(name, &f->recipe, err);
    return fits_none(f, NULL, err);
}

/* ---- names in the configuration ---- */

typedef struct named {
    const oct_folder *f;
    const char *path;
    bool found;
} named;

/* The path of a file that the configuration names, relative to the configuration's own folder. */
static const char *named_path(const oct_folder *f, const char *text)
{
    const char *slash = strrchr(f->recipe->config, '/');
    while (strncmp(text, "./", 2) == 0)
        text += 2;
    return slash ? oct_arena_printf(f->arena, "%.*s%s", (int)(slash - f->recipe->config) + 1, f->recipe->config, text)
                 : text;
}

static oct_status is_it(void *arg, const char *text, const char *at, oct_err *err)
{
    named *n = arg;
    const char *path = named_path(n->f, text);
    n->found |= path && strcmp(path, n->path) == 0;
    return OCT_OK;
}

bool oct_folder_fits(const oct_folder *f, const char *pattern, const char *path)
{
    named n = { f, path, false };
    if (*pattern != '/')
        return fnmatch(pattern, path, FNM_PATHNAME) == 0;
    return oct_configuration_texts(&f->configuration, pattern, is_it, &n, NULL) == OCT_OK && n.found;
}

static oct_status is_there(void *arg, const char *text, const char *at, oct_err *err)
{
    const oct_folder *f = arg;
    const char *path = named_path(f, text);
    if (path && oct_listing_find(&f->listing, path))
        return OCT_OK;
    oct_fail(err, OCT_EIO, "%s: %s names '%s', which is not in the folder", f->configuration.label, at + 1, text);
    oct_hint(err, "download the file into %s, or correct the name", f->listing.folder);
    return OCT_EIO;
}

/* All files that the configuration names are there. */
static oct_status check_named(oct_folder *f, oct_err *err)
{
    for (size_t i = 0; i < f->recipe->n_model; i++)
        if (*f->recipe->model[i].pattern == '/')
            OCT_TRY(oct_configuration_texts(&f->configuration, f->recipe->model[i].pattern, is_there, f, err));
    return OCT_OK;
}

/* ---- the models ---- */

static bool has_input(const oct_graph *g, const char *pattern)
{
    for (size_t i = 0; i < g->n_input; i++)
        if (fnmatch(pattern, g->value[g->input[i]].name, 0) == 0)
            return true;
    return false;
}

/* g NULL: the model is not loaded yet, and may have any inputs. */
static const oct_folder_recipe_model *line_of(const oct_folder *f, const char *path, const oct_graph *g)
{
    for (size_t i = 0; i < f->recipe->n_model; i++) {
        const oct_folder_recipe_model *line = &f->recipe->model[i];
        if (oct_folder_fits(f, line->pattern, path) && (!g || !line->input || has_input(g, line->input)))
            return line;
    }
    return NULL;
}

static oct_folder_model *model_of(const oct_folder *f, const char *name, size_t n)
{
    for (size_t i = 0; i < f->n_model; i++)
        if (strlen(f->model[i].name) == n && strncmp(f->model[i].name, name, n) == 0)
            return &f->model[i];
    return NULL;
}

static oct_status add_model(oct_folder *f, const oct_listed *file, const oct_folder_recipe_variant *given, size_t stem,
                            oct_err *err)
{
    const oct_folder_recipe_model *line = line_of(f, file->path, NULL);
    if (!line) {
        if (!OCT_GROW(f->arena, f->unknown, f->n_unknown, f->cap_unknown))
            return oct_nomem(err);
        f->unknown[f->n_unknown++] = file;
        return OCT_OK;
    }
    const oct_folder_model m = {
        .file = file, .name = oct_arena_strndup(f->arena, file->path, stem), .line = line, .given = given
    };
    if (!m.name || !OCT_GROW(f->arena, f->model, f->n_model, f->cap_model))
        return oct_nomem(err);
    f->model[f->n_model++] = m;
    return OCT_OK;
}

static bool is_model(const char *path)
{
    const size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".onnx") == 0;
}

/* Whether a variant is float: others can be made of it. */
static bool is_float(const oct_folder_recipe_variant *v)
{
    for (size_t i = 0; i < v->schemes.n; i++)
        if (strcmp(v->schemes.v[i], "fp16") == 0 || strcmp(v->schemes.v[i], "bf16") == 0)
            return true;
    return false;
}

/* Float models are those whose name says no variant; where there is none, a float variant. */
static oct_status find_models(oct_folder *f, oct_err *err)
{
    size_t stem;
    for (int variants = 0; variants < 2; variants++)
        for (size_t i = 0; i < f->listing.n; i++) {
            const oct_listed *file = &f->listing.v[i];
            const oct_folder_recipe_variant *v =
                is_model(file->path) ? oct_folder_recipe_variant_of(f->recipe, file->path, &stem) : NULL;
            if (!is_model(file->path) || variants != (v != NULL) || (v && !is_float(v)))
                continue;
            const oct_folder_model *same = v ? model_of(f, file->path, stem) : NULL;
            if (!same) {
                OCT_TRY(add_model(f, file, v, stem, err));
            } else if (same->given) {
                oct_fail(err, OCT_EUSAGE, "%s: there are two float models, %s and %s, and nothing says which is meant",
                         f->listing.folder, same->file->path, file->path);
                oct_hint(err, "remove one of the two");
                return OCT_EUSAGE;
            }
        }
    if (f->n_model)
        return OCT_OK;
    oct_fail(err, OCT_EUNSUPPORTED, "%s: there is no float model in it: no file is one by the recipe %s",
             f->listing.folder, f->recipe->name);
    oct_hint(err, "give the folder of the float model; what is quantized already cannot be quantized again");
    return OCT_EUNSUPPORTED;
}

static oct_status find_variants(oct_folder *f, oct_err *err)
{
    for (size_t i = 0; i < f->listing.n; i++) {
        size_t stem;
        const oct_listed *file = &f->listing.v[i];
        const oct_folder_recipe_variant *v =
            is_model(file->path) ? oct_folder_recipe_variant_of(f->recipe, file->path, &stem) : NULL;
        const oct_folder_model *m = v ? model_of(f, file->path, stem) : NULL;
        if (!v || (m && m->file == file))
            continue;
        if (!OCT_GROW(f->arena, f->variant, f->n_variant, f->cap_variant))
            return oct_nomem(err);
        f->variant[f->n_variant++] = (oct_folder_variant){ file, v, m };
    }
    return OCT_OK;
}

oct_status oct_folder_open(oct_folder *f, const char *path, const char *recipe, oct_err *err)
{
    *f = (oct_folder){ .arena = oct_arena_create() };
    if (!f->arena)
        return oct_nomem(err);
    OCT_TRY(oct_listing_read(path, f->arena, &f->listing, err));
    OCT_TRY(find_recipe(f, recipe, err));
    if (f->recipe->config)
        OCT_TRY(oct_configuration_read(&f->listing, f->recipe->config, f->arena, &f->configuration, err));
    OCT_TRY(check_named(f, err));
    OCT_TRY(find_models(f, err));
    return find_variants(f, err);
}

void oct_folder_close(oct_folder *f)
{
    oct_configuration_close(&f->configuration);
    oct_folder_recipe_close(f->recipe);
    oct_arena_destroy(f->arena);
    *f = (oct_folder){ 0 };
}

const char *oct_folder_model_name(const oct_folder_model *m)
{
    return oct_path_base(m->name);
}

/* ---- what stands in them ---- */

static const char *floats_of(const oct_graph *g)
{
    static const oct_dtype types[] = { OCT_F32, OCT_F16, OCT_BF16 };
    uint64_t bytes[OCT_COUNT(types)] = { 0 };
    size_t most = 0;
    for (size_t i = 0; i < g->n_value; i++)
        for (size_t k = 0; k < OCT_COUNT(types); k++)
            if (g->value[i].constant && g->value[i].constant->dtype == types[k])
                bytes[k] += g->value[i].constant->bytes;
    for (size_t k = 1; k < OCT_COUNT(types); k++)
        if (bytes[k] > bytes[most])
            most = k;
    return oct_dtype_name(types[most]);
}

static oct_status look(oct_folder *f, oct_folder_model *m, const oct_model *loaded, oct_err *err)
{
    m->line = line_of(f, m->file->path, loaded->graph);
    if (!m->line)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s/%s: no line of the recipe %s is for a model with its inputs",
                        f->listing.folder, m->file->path, f->recipe->name);
    m->floats = floats_of(loaded->graph);
    m->bytes = oct_model_bytes(loaded);
    m->data = oct_arena_calloc(f->arena, loaded->n_maps + 1, sizeof *m->data);
    if (!m->data)
        return oct_nomem(err);
    for (size_t i = 1; i < loaded->n_maps; i++)
        if (!(m->data[m->n_data++] = oct_arena_strdup(f->arena, loaded->maps[i].path)))
            return oct_nomem(err);
    return OCT_OK;
}

oct_status oct_folder_look(oct_folder *f, oct_voice v, oct_err *err)
{
    for (size_t i = 0; i < f->n_model; i++) {
        oct_model *loaded;
        const char *path = oct_listing_at(&f->listing, f->model[i].file->path, f->arena);
        if (!path)
            return oct_nomem(err);
        OCT_TRY(oct_load(v, path, NULL, 0, &loaded, err));
        const oct_status s = look(f, &f->model[i], loaded, err);
        oct_model_free(loaded);
        OCT_TRY(s);
    }
    return OCT_OK;
}

bool oct_folder_model_reads(const oct_folder_model *m, const oct_listed *file)
{
    for (size_t i = 0; i < m->n_data; i++)
        if (strcmp(m->data[i], file->real) == 0)
            return true;
    return false;
}
