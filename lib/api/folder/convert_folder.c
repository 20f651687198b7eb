#define _XOPEN_SOURCE 700
/* A folder of models in, a folder out. */
#include "api/folder/demands.h"
#include "api/folder/folder.h"
#include "base/io.h"
#include "base/number_text.h"
#include "base/scratch.h"
#include "onnx/save.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What becomes of a model. */
typedef struct made {
    const oct_folder_model *m;
    const char *scheme;                       /* NULL: what the options say without one */
    const oct_folder_recipe_variant *variant; /* by which the result is called; NULL: as the model is */
    const char *result;                       /* its path in the new folder */
    octet_samples samples;
    bool sampled, copied, external; /* external: the result has a file of external data */
    const oct_listed *pool;         /* the file of external data that it shares with others; NULL: none */
    oct_document *report;           /* of its conversion; NULL: it is a copy */
    uint64_t bytes;                 /* without data that it shares */
} made;

/* What becomes of another file. */
typedef struct other {
    const oct_listed *file;
    const char *what, *why; /* what: "copied", "amended", "left out" */
} other;

typedef struct job {
    const octet_convert_options *x;
    const oct_session_host *h;
    oct_arena *arena;
    oct_folder f;
    made *made; /* [f.n_model] */
    other *other;
    size_t n_other, cap_other;
    const char **warning;
    size_t n_warning, cap_warning;
    oct_scratch *staging; /* NULL: a dry run */
    bool missed;          /* a goal: nothing will be written */
    uint64_t before, after;
} job;

/* ---- options ---- */

static oct_status check_options(const octet_convert_options *x, oct_err *err)
{
    const struct {
        const char *name;
        bool given;
    } none[] = {
        { "--html", x->html },   { "--dump-policy", x->dump_policy }, { "--sensitivity-file", x->sensitivity_file },
        { "--calib", x->calib }, { "in_memory", x->in_memory },       { "model_data", x->model_data }
    };
    if (!x->model)
        return oct_fail(err, OCT_EUSAGE, "there is no folder: its name is NULL");
    for (size_t i = 0; i < OCT_COUNT(none); i++)
        if (none[i].given) {
            oct_fail(err, OCT_EUSAGE, "%s is for one model, and %s is a folder", none[i].name, x->model);
            oct_hint(err, "give one of its models instead of the folder");
            return OCT_EUSAGE;
        }
    return OCT_OK;
}

static oct_status check_output(const octet_convert_options *x, oct_err *err)
{
    if (x->output || x->dry_run)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "%s is a folder, and there is no name for the new one", x->model);
    oct_hint(err, "give it with -o");
    return OCT_EUSAGE;
}

oct_status oct_folder_samples(const oct_folder *f, const oct_folder_model *m, const octet_samples *given,
                              octet_samples *samples, oct_err *err)
{
    const char **list = oct_arena_calloc(f->arena, given->data.n + 1, sizeof *list);
    size_t n = 0;
    if (!list)
        return oct_nomem(err);
    for (size_t i = 0; i < given->data.n; i++) {
        const char *spec = given->data.v[i];
        const oct_folder_model *of = NULL;
        for (size_t k = 0; k < f->n_model && !of; k++) {
            const char *name = oct_folder_model_name(&f->model[k]);
            const size_t length = strlen(name);
            if (strncmp(spec, name, length) == 0 && spec[length] == '=') {
                of = &f->model[k];
                spec += length + 1;
            }
        }
        if (!of || of == m)
            list[n++] = spec;
    }
    *samples = *given;
    samples->data = (octet_texts){ list, n };
    if (!oct_samples_any(samples))
        *samples = (octet_samples){ .seed = -1 };
    return OCT_OK;
}

static oct_status warn(job *j, const char *file, const char *text, oct_err *err)
{
    const char *line = oct_arena_printf(j->arena, "%s: %s", file, text);
    if (!line || !OCT_GROW(j->arena, j->warning, j->n_warning, j->cap_warning))
        return oct_nomem(err);
    j->warning[j->n_warning++] = line;
    oct_say(j->h->voice, OCT_NOTE_WARNING, "%s", line);
    return OCT_OK;
}

/* ---- what becomes of each file ---- */

static oct_status name_result(const job *j, made *d, oct_err *err)
{
    const oct_folder_recipe *r = j->f.recipe;
    const char *scheme = d->scheme ? d->scheme : "auto";
    if (!r->names || d->copied) {
        d->result = d->m->file->path;
        return OCT_OK;
    }
    d->variant = oct_folder_recipe_variant_for(r, scheme, j->x->bits, d->m->floats);
    if (!d->variant) {
        oct_fail(err, OCT_EUNSUPPORTED, "%s: %s has no name for a model of %s%s%s", d->m->file->path, r->name, scheme,
                 j->x->bits ? ", bits " : "",
                 j->x->bits == 8   ? "8"
                 : j->x->bits == 4 ? "4"
                                   : "");
        oct_hint(err, "choose another --scheme, or a file of a recipe that has a variant for it");
        return OCT_EUNSUPPORTED;
    }
    d->result = oct_arena_printf(j->arena, "%s%s.onnx", d->m->name, d->variant->suffix);
    return d->result ? OCT_OK : oct_nomem(err);
}

static oct_status plan_model(job *j, made *d, const oct_folder_model *m, oct_err *err)
{
    const octet_convert_options *x = j->x;
    const bool sized = x->target_size || x->target_bits > 0;
    d->m = m;
    OCT_TRY(oct_folder_samples(&j->f, m, &x->samples, &d->samples, err));
    d->sampled = oct_samples_any(&d->samples);
    d->scheme = x->scheme ? x->scheme : sized ? NULL : d->sampled ? m->line->sampled : m->line->scheme;
    d->copied = d->scheme && strcmp(d->scheme, "copy") == 0;
    return name_result(j, d, err);
}

static const char *folder_of(const char *path, size_t *n)
{
    const char *slash = strrchr(path, '/');
    *n = slash ? (size_t)(slash - path) + 1 : 0;
    return path;
}

static bool same_folder(const char *a, const char *b)
{
    size_t n, k;
    folder_of(a, &n);
    folder_of(b, &k);
    return n == k && strncmp(a, b, n) == 0;
}

static bool reads(const oct_folder_model *m, const oct_listed *file)
{
    for (size_t i = 0; i < m->n_data; i++)
        if (strcmp(m->data[i], file->real) == 0)
            return true;
    return false;
}

/* Results share the data files that their models share, unless the loader wants one of a certain name for each. */
static void find_pools(job *j)
{
    if (j->f.recipe->data)
        return;
    for (size_t i = 0; i < j->f.listing.n; i++) {
        const oct_listed *file = &j->f.listing.v[i];
        size_t readers = 0;
        bool copied = false;
        for (size_t k = 0; k < j->f.n_model; k++) {
            if (!reads(j->made[k].m, file))
                continue;
            copied |= j->made[k].copied; /* its data stay as they are, under this name */
            readers += same_folder(j->made[k].m->file->path, file->path);
        }
        for (size_t k = 0; k < j->f.n_model && readers > 1 && !copied; k++)
            if (reads(j->made[k].m, file) && !j->made[k].pool)
                j->made[k].pool = file;
    }
}

/* The model whose path a path begins with: model.onnx_data, model.onnx.data. */
static bool begins_with(const char *path, const char *model)
{
    const size_t n = strlen(model);
    return strncmp(path, model, n) == 0 && path[n] && path[n] != '/';
}

static bool has_ending(const oct_folder_recipe_list *patterns, const char *path)
{
    for (size_t i = 0; i < patterns->n; i++)
        if (fnmatch(patterns->v[i], oct_path_base(path), 0) == 0)
            return true;
    return false;
}

static other plan_other(const job *j, const oct_listed *file)
{
    const oct_folder *f = &j->f;
    other o = { file, "copied", NULL };
    bool data = false, kept = false;
    for (size_t i = 0; i < f->n_model; i++)
        if (reads(j->made[i].m, file)) {
            data = true;
            kept |= j->made[i].copied;
        }
    for (size_t i = 0; i < f->n_variant; i++)
        if (file == f->variant[i].file)
            o.why = "a variant of another float model";
        else if (!data && begins_with(file->path, f->variant[i].file->path))
            o.why = "data of a variant";
    for (size_t i = 0; i < f->n_unknown; i++)
        if (file == f->unknown[i] || begins_with(file->path, f->unknown[i]->path))
            o.why = "the recipe does not name it";
    if (data && !kept)
        o.why = "data of a float model";
    else if (!data && !o.why && has_ending(&f->recipe->leave, file->path))
        o.why = "weights for another program";
    if (o.why)
        o.what = "left out";
    for (size_t i = 0; i < f->recipe->n_amend && !o.why; i++)
        if (strcmp(f->recipe->amend[i].file, file->path) == 0)
            o.what = "amended";
    return o;
}

static bool is_converted(const job *j, const oct_listed *file)
{
    for (size_t i = 0; i < j->f.n_model; i++)
        if (j->made[i].m->file == file)
            return true;
    return false;
}

static oct_status plan(job *j, oct_err *err)
{
    j->made = oct_arena_calloc(j->arena, j->f.n_model + 1, sizeof *j->made);
    if (!j->made)
        return oct_nomem(err);
    for (size_t i = 0; i < j->f.n_model; i++)
        OCT_TRY(plan_model(j, &j->made[i], &j->f.model[i], err));
    find_pools(j);
    for (size_t i = 0; i < j->f.listing.n; i++) {
        const oct_listed *file = &j->f.listing.v[i];
        if (is_converted(j, file))
            continue;
        if (!OCT_GROW(j->arena, j->other, j->n_other, j->cap_other))
            return oct_nomem(err);
        j->other[j->n_other++] = plan_other(j, file);
    }
    for (size_t i = 0; i < j->f.n_unknown; i++)
        OCT_TRY(warn(j, j->f.unknown[i]->path, "no line of the recipe names this model: it is left out", err));
    return OCT_OK;
}

/* ---- converting ---- */

static char *at_output(const job *j, const char *path)
{
    return oct_arena_printf(j->arena, "%s/%s", j->staging ? oct_scratch_path(j->staging) : j->f.listing.folder, path);
}

/* Goals are for models that have samples. */
static octet_convert_options options_of(const job *j, const made *d)
{
    octet_convert_options x = *j->x;
    x.model = oct_listing_at(&j->f.listing, d->m->file->path, j->arena);
    x.output = at_output(j, d->result);
    x.scheme = d->scheme && strcmp(d->scheme, "auto") == 0 ? NULL : d->scheme;
    x.samples = d->samples;
    if (!d->sampled) {
        x.max_drop = (octet_texts){ 0 };
        x.min_sqnr = NAN;
        x.min_agreement = x.metric = x.metric_command = x.decode = x.truth = NULL;
        x.strict = x.sensitivity = false;
    }
    if (!x.scheme || strcmp(x.scheme, "weight-only") != 0) {
        x.bits = x.block_size = 0;
        x.symmetric = false;
        x.accuracy_level = -1;
    }
    return x;
}

static oct_status run_session(oct_session *s, oct_document *report, oct_err *err)
{
    OCT_TRY(oct_session_decide(s, err));
    OCT_TRY(oct_session_fits(s, err));
    OCT_TRY(oct_session_make(s, err));
    oct_session_report(s, report);
    return oct_session_goal(s, err);
}

/* Whether some of the samples are given for all models. */
static bool takes_all(const job *j, const made *d)
{
    for (size_t i = 0; i < d->samples.data.n; i++)
        for (size_t k = 0; k < j->x->samples.data.n; k++)
            if (d->samples.data.v[i] == j->x->samples.data.v[k])
                return true;
    return false;
}

/* What an error of a conversion advises is of a file that will not be there. */
static oct_status explain(const job *j, const made *d, oct_status st, oct_err *err)
{
    if (!err)
        return st;
    if (!strstr(err->text, d->m->file->path))
        oct_within(err, "%s/%s", j->f.listing.folder, d->m->file->path);
    if (st == OCT_EGOAL) {
        err->hint[0] = 0;
        oct_hint(err, "nothing was written; convert this model alone to see the best one that was found");
    } else if (j->f.n_model > 1 && takes_all(j, d)) {
        oct_hint(err, "samples for one model alone are given as --data %s=SPEC", oct_folder_model_name(d->m));
    }
    return st;
}

static oct_status convert(job *j, made *d, oct_err *err)
{
    const octet_convert_options x = options_of(j, d);
    if (!x.model || !x.output || !(d->report = oct_document_create()))
        return oct_nomem(err);
    oct_say(j->h->voice, 0, "%s: %s", d->m->file->path, d->scheme ? d->scheme : "by size");
    oct_session *s;
    oct_session_host h = *j->h;
    h.command = h.recorded = NULL;
    oct_status st = oct_session_open(&x, &h, &s, err);
    if (st == OCT_OK)
        st = run_session(s, d->report, err);
    oct_session_close(s);
    return st == OCT_OK ? st : explain(j, d, st, err);
}

static oct_status copy(const job *j, const oct_listed *file, const char *text, size_t size, oct_err *err)
{
    const char *to = at_output(j, file->path);
    oct_map map = { 0 };
    oct_out out;
    if (!to)
        return oct_nomem(err);
    OCT_TRY(oct_scratch_make_room(j->staging, file->path, err));
    if (!text) {
        OCT_TRY(oct_map_open(&map, file->real, err));
        text = (const char *)map.data;
        size = map.size;
    }
    oct_status s = oct_out_open(&out, to, err);
    if (s == OCT_OK) {
        oct_out_write(&out, text, size);
        s = oct_out_commit(&out, err);
    }
    if (map.data)
        oct_map_close(&map);
    return s;
}

static oct_status make_models(job *j, oct_err *err)
{
    for (size_t i = 0; i < j->f.n_model; i++) {
        made *d = &j->made[i];
        if (j->staging)
            OCT_TRY(oct_scratch_make_room(j->staging, d->result, err));
        if (!d->copied)
            OCT_TRY(convert(j, d, err));
        else if (j->staging)
            OCT_TRY(copy(j, d->m->file, NULL, 0, err));
        if (j->staging)
            OCT_TRY(oct_scratch_guard(j->staging, err));
    }
    return OCT_OK;
}

/* ---- external data ---- */

/* Writes a model anew, with its tensors in the pool, and removes the data file that it had. */
static oct_status move_to_pool(const job *j, const char *path, oct_data_pool *pool, oct_err *err)
{
    oct_model *m;
    const char *next = oct_arena_printf(j->arena, "%s.next", path);
    if (!next)
        return oct_nomem(err);
    OCT_TRY(oct_model_load(path, &m, err));
    oct_status s = oct_model_save(m, next, &(oct_save_options){ .pool = pool }, err);
    for (size_t i = 1; i < m->n_maps && s == OCT_OK; i++)
        remove(m->maps[i].path);
    oct_model_free(m);
    if (s == OCT_OK && rename(next, path) != 0)
        s = oct_fail_errno(err, "%s", path);
    return s;
}

/* Moves the tensors of all results that `takes` accepts to one file of that path. */
static oct_status make_pool(job *j, const char *path, bool (*takes)(const made *d, const void *what), const void *what,
                            oct_err *err)
{
    oct_data_pool *pool;
    const char *at = at_output(j, path);
    if (!at)
        return oct_nomem(err);
    OCT_TRY(oct_data_pool_open(at, &pool, err));
    oct_status s = OCT_OK;
    for (size_t i = 0; i < j->f.n_model && s == OCT_OK; i++)
        if (takes(&j->made[i], what)) {
            const char *model = at_output(j, j->made[i].result);
            s = model ? move_to_pool(j, model, pool, err) : oct_nomem(err);
        }
    if (s != OCT_OK) {
        oct_data_pool_abort(pool);
        return s;
    }
    OCT_TRY(oct_data_pool_commit(pool, err));
    return oct_scratch_guard(j->staging, err);
}

static bool shares(const made *d, const void *pool)
{
    return d->pool == pool;
}

static bool is_that(const made *d, const void *one)
{
    return d == one;
}

/* "*.onnx_data": onnx/model_q4.onnx -> onnx/model_q4.onnx_data */
static char *data_path(const job *j, const made *d)
{
    const char *pattern = j->f.recipe->data, *star = strchr(pattern, '*');
    return oct_arena_printf(j->arena, "%.*s%.*s%s", (int)(star - pattern), pattern, (int)strlen(d->result) - 5,
                            d->result, star + 1);
}

/* A model beyond 2 GB has a data file, whose name the loader may want to be another. */
static oct_status name_data(job *j, made *d, oct_err *err)
{
    oct_model *m;
    const char *path = at_output(j, d->result), *data = data_path(j, d);
    if (!path || !data)
        return oct_nomem(err);
    OCT_TRY(oct_model_load(path, &m, err));
    d->external = m->n_maps > 1;
    oct_model_free(m);
    return d->external ? make_pool(j, data, is_that, d, err) : OCT_OK;
}

static oct_status place_data(job *j, oct_err *err)
{
    for (size_t i = 0; i < j->f.n_model; i++) {
        made *d = &j->made[i];
        bool first = d->pool;
        for (size_t k = 0; k < i; k++)
            first &= j->made[k].pool != d->pool;
        if (first)
            OCT_TRY(make_pool(j, d->pool->path, shares, d->pool, err));
        else if (!d->pool && !d->copied && j->f.recipe->data)
            OCT_TRY(name_data(j, d, err));
    }
    return OCT_OK;
}

/* ---- the other files ---- */

/* {"decoder_model_merged": "q4", ...}: the word of each result, by the name of its model; or
 * {"decoder_model_merged_q4.onnx": true, ...}: whether it has external data. */
static void put_value(const job *j, bool data, oct_buf *b)
{
    oct_buf lines = OCT_BUF_INIT;
    oct_json v = { .out = &lines };
    oct_json_open(&v, NULL, '{');
    for (size_t i = 0; i < j->f.n_model; i++) {
        const made *d = &j->made[i];
        if (data)
            oct_json_bool(&v, oct_path_base(d->result), d->external);
        else if (d->variant)
            oct_json_str(&v, oct_folder_model_name(d->m), d->variant->word);
    }
    oct_json_close(&v);
    for (const char *p = oct_buf_str(&lines); *p;) { /* in one line: names have no newlines, which JSON escapes */
        const size_t n = strcspn(p, "\n");
        oct_buf_add(b, p, n);
        p += n + strspn(p + n, "\n ");
        if (n && *p && *p != '}' && p[-1] == ' ' && b->len && b->data[b->len - 1] == ',')
            oct_buf_puts(b, " ");
    }
    b->failed |= lines.failed;
    oct_buf_free(&lines);
}

static bool any_external(const job *j)
{
    for (size_t i = 0; i < j->f.n_model; i++)
        if (j->made[i].external)
            return true;
    return false;
}

/* What says of no result anything is not added. */
static bool is_needed(const job *j, const oct_configuration *c, const oct_folder_recipe_amend *a)
{
    const char *path = a->data ? oct_arena_printf(j->arena, "/%s", a->path) : NULL;
    return !a->data || any_external(j) || (path && oct_configuration_has(c, path));
}

static oct_status set_all(const job *j, const oct_listed *file, const oct_configuration *c, oct_buf *text, oct_err *err)
{
    oct_buf_puts(text, c->text);
    for (size_t i = 0; i < j->f.recipe->n_amend; i++) {
        const oct_folder_recipe_amend *a = &j->f.recipe->amend[i];
        oct_buf next = OCT_BUF_INIT, value = OCT_BUF_INIT;
        if (strcmp(a->file, file->path) != 0 || !is_needed(j, c, a))
            continue;
        put_value(j, a->data, &value);
        oct_json_set(oct_buf_str(text), a->path, oct_buf_str(&value), &next);
        next.failed |= value.failed || text->failed;
        oct_buf_free(text);
        oct_buf_free(&value);
        *text = next;
    }
    return text->failed ? oct_nomem(err) : OCT_OK;
}

static oct_status check_json(const oct_buf *text, const char *label, oct_err *err)
{
    oct_tree *root;
    OCT_TRY_WITHIN(oct_tree_parse(text->data, text->len, label, &root, err), err, "amended");
    oct_tree_free(root);
    return OCT_OK;
}

static oct_status amend(const job *j, const oct_listed *file, oct_err *err)
{
    oct_configuration c;
    oct_buf text = OCT_BUF_INIT;
    oct_status s = oct_configuration_read(&j->f.listing, file->path, j->arena, &c, err);
    if (s == OCT_OK)
        s = set_all(j, file, &c, &text, err);
    if (s == OCT_OK)
        s = check_json(&text, c.label, err);
    if (s == OCT_OK)
        s = copy(j, file, text.data, text.len, err);
    oct_buf_free(&text);
    oct_configuration_close(&c);
    return s;
}

static oct_status make_others(job *j, oct_err *err)
{
    for (size_t i = 0; i < j->n_other; i++) {
        const other *o = &j->other[i];
        if (!o->why)
            OCT_TRY(strcmp(o->what, "amended") == 0 ? amend(j, o->file, err) : copy(j, o->file, NULL, 0, err));
    }
    return oct_scratch_guard(j->staging, err);
}

/* ---- as the loader will see it ---- */

static oct_status note_missing(void *arg, const char *text, oct_err *err)
{
    return warn(arg, "configuration", text, err);
}

static oct_status check_loaded(job *j, made *d, oct_model *source, oct_model *made_model, oct_err *err)
{
    const octet_convert_options *x = j->x;
    const bool retyped = x->input_types.n || x->output_types.n || !x->keep_io_types;
    const oct_status s = oct_demands_alike(source, made_model, retyped ? OCT_ALIKE_RETYPED : OCT_ALIKE_MADE, err);
    if (s != OCT_OK) {
        oct_within(err, "%s: %s would not load this", d->result, j->f.recipe->name);
        return s;
    }
    d->bytes = oct_model_bytes(made_model);
    for (size_t i = 1; i < made_model->n_maps && d->pool; i++)
        d->bytes -= made_model->maps[i].size;
    return OCT_OK;
}

static oct_status check(job *j, made *d, oct_err *err)
{
    oct_model *source = NULL, *is = NULL;
    const char *from = oct_listing_at(&j->f.listing, d->m->file->path, j->arena), *to = at_output(j, d->result);
    oct_status s = from && to ? oct_model_load(from, &source, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = oct_demands_missing(&j->f, d->m->file->path, source->graph, note_missing, j, err);
    if (s == OCT_OK && j->staging)
        s = oct_model_load(to, &is, err);
    if (s == OCT_OK && j->staging)
        s = check_loaded(j, d, source, is, err);
    oct_model_free(source);
    oct_model_free(is);
    return s;
}

static oct_status check_all(job *j, oct_err *err)
{
    for (size_t i = 0; i < j->f.n_model; i++)
        OCT_TRY(check(j, &j->made[i], err));
    return OCT_OK;
}

/* ---- the report ---- */

static void count_bytes(job *j)
{
    for (size_t i = 0; i < j->f.n_model; i++) {
        const made *d = &j->made[i];
        j->before += d->m->file->bytes;
        j->after += j->staging && !j->missed
                        ? d->bytes
                        : (uint64_t)oct_item_whole(oct_document_root(d->report), "size_bytes.after");
    }
    for (size_t i = 0; i < j->f.listing.n; i++) {
        bool data = false, pooled = false;
        for (size_t k = 0; k < j->f.n_model; k++) {
            data |= reads(j->made[k].m, &j->f.listing.v[i]);
            pooled |= j->made[k].pool == &j->f.listing.v[i];
        }
        j->before += data ? j->f.listing.v[i].bytes : 0;
        oct_map m;
        const char *path = pooled && j->staging && !j->missed ? at_output(j, j->f.listing.v[i].path) : NULL;
        if (path && oct_map_open(&m, path, NULL) == OCT_OK) {
            j->after += m.size;
            oct_map_close(&m);
        }
    }
}

static void put_model(oct_json *j, const void *row)
{
    const made *d = row;
    const oct_item *r = d->report ? oct_document_root(d->report) : NULL;
    oct_json_str(j, "file", d->m->file->path);
    oct_json_str(j, "result", d->result);
    oct_json_str(j, "variant", d->variant ? d->variant->word : NULL);
    oct_json_str(j, "scheme", d->copied ? "copy" : d->scheme);
    oct_json_str(j, "floats", d->m->floats);
    oct_json_int(j, "bytes_before", (int64_t)d->m->bytes);
    oct_json_int(j, "bytes_after", d->copied ? (int64_t)d->m->bytes : oct_item_whole(r, "size_bytes.after"));
    oct_json_str(j, "shared_data", d->pool ? d->pool->path : NULL);
    oct_json_int(j, "layers_with_weights", oct_item_whole(r, "layers_with_weights"));
    oct_json_int(j, "int8_layers", oct_item_whole(r, "int8_layers"));
    oct_json_int(j, "half_layers", oct_item_whole(r, "half_layers"));
    oct_json_int(j, "weight_only_layers", oct_item_whole(r, "weight_only_layers"));
    oct_json_int(j, "samples", oct_item_whole(r, "samples"));
    if (oct_item_at(r, "output_sqnr_db"))
        oct_json_num(j, "output_sqnr_db", oct_item_number(r, "output_sqnr_db"));
    if (oct_item_at(r, "metric"))
        oct_json_item(j, "metric", oct_item_at(r, "metric"));
    oct_json_str(j, "text", r ? oct_item_text(r, "text") : d->copied ? "copied as it is" : "not made");
    oct_json_open(j, "warnings", '[');
    for (const oct_item *w = NULL; (w = oct_item_next(oct_item_at(r, "warnings"), w));)
        oct_json_str(j, NULL, oct_item_text(w, ""));
    oct_json_close(j);
}

static void put_other(oct_json *j, const void *row)
{
    const other *o = row;
    oct_json_str(j, "file", o->file->path);
    oct_json_str(j, "what", o->what);
    oct_json_str(j, "why", o->why);
    oct_json_int(j, "bytes", (int64_t)o->file->bytes);
}

static void put_sentence(oct_json *to, const job *j)
{
    char was[32], is[32];
    const char *output = j->x->output ? j->x->output : "the new folder";
    if (j->missed)
        oct_json_str(to, "text", "a goal was missed: nothing was written");
    else
        oct_json_str(to, "text",
                     oct_arena_printf(j->arena, "%s %s %zu model%s for %s, %.2f times smaller (%s to %s)", output,
                                      j->x->dry_run ? "would have" : "has", j->f.n_model, j->f.n_model == 1 ? "" : "s",
                                      j->f.recipe->name, j->after ? (double)j->before / (double)j->after : 0.0,
                                      oct_fmt_bytes(was, j->before), oct_fmt_bytes(is, j->after)));
}

static void report(job *j, oct_document *to)
{
    oct_json v = { .to = to };
    count_bytes(j);
    oct_report_open(&v, "octet-folder-1");
    oct_json_str(&v, "folder", j->f.listing.folder);
    oct_json_str(&v, "output", j->x->dry_run || j->missed ? NULL : j->x->output);
    oct_json_str(&v, "recipe", j->f.recipe->name);
    oct_json_rows(&v, "models", j->made, j->f.n_model, sizeof *j->made, put_model);
    oct_json_rows(&v, "files", j->other, j->n_other, sizeof *j->other, put_other);
    oct_json_int(&v, "bytes_before", (int64_t)j->before);
    oct_json_int(&v, "bytes_after", (int64_t)j->after);
    oct_json_texts(&v, "warnings", j->warning, j->n_warning);
    put_sentence(&v, j);
    oct_json_close(&v);
}

/* ---- the whole ---- */

static bool lies_in(const char *output, const char *folder)
{
    char *real = realpath(folder, NULL), *slash, *parent = strdup(output), *of = NULL;
    if (real && parent) {
        size_t n = strlen(parent);
        while (n > 1 && parent[n - 1] == '/')
            parent[--n] = 0;
        slash = strrchr(parent, '/');
        of = realpath(slash == parent ? "/" : slash ? (*slash = 0, parent) : ".", NULL);
    }
    const size_t n = real ? strlen(real) : 0;
    const bool is = of && strncmp(of, real, n) == 0 && (of[n] == '/' || !of[n]);
    free(real);
    free(parent);
    free(of);
    return is;
}

static oct_status make(job *j, oct_err *err)
{
    const octet_convert_options *x = j->x;
    if (!x->dry_run && lies_in(x->output, x->model)) {
        oct_fail(err, OCT_EUSAGE, "%s: the new folder would lie in the one that is read", x->output);
        oct_hint(err, "name one beside it");
        return OCT_EUSAGE;
    }
    if (!x->dry_run)
        OCT_TRY(oct_scratch_create_beside(x->output, &j->staging, err));
    OCT_TRY(oct_folder_look(&j->f, j->h->voice, err));
    OCT_TRY(plan(j, err));
    OCT_TRY(make_models(j, err));
    if (!j->staging)
        return check_all(j, err);
    OCT_TRY(place_data(j, err));
    OCT_TRY(make_others(j, err));
    return check_all(j, err);
}

static oct_status run(job *j, const char *recipe, oct_document *to, oct_err *err)
{
    OCT_TRY(check_options(j->x, err));
    OCT_TRY(oct_folder_open(&j->f, j->x->model, recipe, err));
    OCT_TRY(check_output(j->x, err));
    oct_say(j->h->voice, 0, "%s: a folder for %s", j->f.listing.folder, j->f.recipe->name);
    const oct_status s = make(j, err);
    if (s != OCT_OK && s != OCT_EGOAL)
        return s;
    j->missed = s == OCT_EGOAL;
    report(j, to);
    if (!oct_document_root(to))
        return oct_nomem(err);
    return s == OCT_OK && j->staging ? oct_scratch_commit(j->staging, err) : s;
}

oct_status oct_folder_convert(const octet_convert_options *x, const char *recipe, const oct_session_host *h,
                              oct_document *to, oct_err *err)
{
    job j = { .x = x, .h = h, .arena = oct_arena_create() };
    oct_status s = j.arena ? run(&j, recipe, to, err) : oct_nomem(err);
    oct_scratch_remove(j.staging);
    for (size_t i = 0; i < j.f.n_model && j.made; i++)
        oct_document_destroy(j.made[i].report);
    oct_folder_close(&j.f);
    oct_arena_destroy(j.arena);
    return s;
}
