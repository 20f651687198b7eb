#define _XOPEN_SOURCE 700
/* A folder of models in, a folder out. */
#include "api/folder/demands.h"
#include "api/folder/new_folder_int.h"
#include "base/io.h"
#include "base/number_text.h"
#include "onnx/save.h"
#include "quant/convert/convert.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ---- */

static oct_status check_options(const octet_convert_options *x, oct_err *err)
{
    const struct {
        const char *name;
        bool given;
    } none[] = { { "--html", x->html },
                 { "--dump-policy", x->dump_policy },
                 { "--sensitivity-file", x->sensitivity_file },
                 { "--format tflite", oct_session_writes_tflite(x) },
                 { "--calib", x->calib },
                 { "in_memory", x->in_memory },
                 { "model_data", x->model_data } };
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

/* ---- what becomes of each file ---- */

static oct_status name_result(const oct_folder_job *j, oct_made_model *d, oct_err *err)
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

static oct_status plan_model(oct_folder_job *j, oct_made_model *d, const oct_folder_model *m, oct_err *err)
{
    const octet_convert_options *x = j->x;
    const bool sized = x->target_size || x->target_bits > 0;
    d->m = m;
    d->job = j;
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

/* Results share the data files that their models share, unless the loader wants one of a certain name for each. */
static void find_pools(oct_folder_job *j)
{
    if (j->f.recipe->data)
        return;
    for (size_t i = 0; i < j->f.listing.n; i++) {
        const oct_listed *file = &j->f.listing.v[i];
        size_t readers = 0;
        bool copied = false;
        for (size_t k = 0; k < j->f.n_model; k++) {
            if (!oct_folder_model_reads(j->made[k].m, file))
                continue;
            copied |= j->made[k].copied; /* its data stay as they are, under this name */
            readers += same_folder(j->made[k].m->file->path, file->path);
        }
        for (size_t k = 0; k < j->f.n_model && readers > 1 && !copied; k++)
            if (oct_folder_model_reads(j->made[k].m, file) && !j->made[k].pool)
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

static oct_other_file plan_other(const oct_folder_job *j, const oct_listed *file)
{
    const oct_folder *f = &j->f;
    oct_other_file o = { file, "copied", NULL };
    bool data = false, kept = false;
    for (size_t i = 0; i < f->n_model; i++)
        if (oct_folder_model_reads(j->made[i].m, file)) {
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

static bool is_converted(const oct_folder_job *j, const oct_listed *file)
{
    for (size_t i = 0; i < j->f.n_model; i++)
        if (j->made[i].m->file == file)
            return true;
    return false;
}

static oct_status plan(oct_folder_job *j, oct_err *err)
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
        oct_other_file *o = &j->other[j->n_other++];
        *o = plan_other(j, file);
        OCT_TRY(oct_new_folder_examine(j, o, err));
    }
    for (size_t i = 0; i < j->f.n_unknown; i++)
        OCT_TRY(oct_new_folder_warn(j, j->f.unknown[i]->path, "no line of the recipe names this model: it is left out",
                                    err));
    return OCT_OK;
}

/* ---- converting ---- */

/* Passes on what a conversion says. */
static void say_of_file(void *arg, int level, const char *text)
{
    const oct_folder_job *j = arg;
    const char *said = oct_new_folder_text(j, text);
    if (j->h->voice.note && said)
        j->h->voice.note(j->h->voice.arg, level, said);
}

static void say_progress_of_file(void *arg, const char *what, int64_t done, int64_t total)
{
    const oct_folder_job *j = arg;
    if (j->h->voice.progress)
        j->h->voice.progress(j->h->voice.arg, what, done, total);
}

static oct_status load_of_file(void *arg, const char *path, oct_model **m, oct_err *err)
{
    const oct_folder_job *j = arg;
    return j->h->voice.load(j->h->voice.arg, path, m, err);
}

static octet_convert_options options_of(const oct_folder_job *j, const oct_made_model *d)
{
    octet_convert_options x = *j->x;
    x.model = oct_listing_at(&j->f.listing, d->m->file->path, j->arena);
    x.output = oct_new_folder_at(j, d->result);
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
static bool takes_all(const oct_folder_job *j, const oct_made_model *d)
{
    for (size_t i = 0; i < d->samples.data.n; i++)
        for (size_t k = 0; k < j->x->samples.data.n; k++)
            if (d->samples.data.v[i] == j->x->samples.data.v[k])
                return true;
    return false;
}

/* What an error of a conversion advises is of a file that will not be there. */
static oct_status explain(const oct_folder_job *j, const oct_made_model *d, oct_status st, oct_err *err)
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

static oct_status convert(oct_folder_job *j, oct_made_model *d, oct_err *err)
{
    const octet_convert_options x = options_of(j, d);
    if (!x.model || !x.output || !(d->report = oct_document_create()))
        return oct_nomem(err);
    oct_say(j->h->voice, 0, "%s: %s", d->m->file->path, d->scheme ? d->scheme : "by size");
    oct_session *s;
    oct_session_host h = *j->h;
    h.command = h.recorded = NULL;
    h.voice = (oct_voice){ say_of_file, say_progress_of_file, j, j->h->voice.load ? load_of_file : NULL };
    oct_status st = oct_session_open(&x, &h, &s, err);
    if (st == OCT_OK)
        st = run_session(s, d->report, err);
    oct_session_close(s);
    return st == OCT_OK ? st : explain(j, d, st, err);
}

static oct_status make_models(oct_folder_job *j, oct_err *err)
{
    for (size_t i = 0; i < j->f.n_model; i++) {
        oct_made_model *d = &j->made[i];
        if (j->staging)
            OCT_TRY(oct_scratch_make_room(j->staging, d->result, err));
        if (!d->copied)
            OCT_TRY(convert(j, d, err));
        else if (j->staging)
            OCT_TRY(oct_new_folder_copy(j, d->m->file, NULL, 0, err));
    }
    return OCT_OK;
}

/* ---- as the loader will see it ---- */

static oct_status note_missing(void *arg, const char *text, oct_err *err)
{
    return oct_new_folder_warn(arg, "configuration", text, err);
}

static oct_status check_loaded(oct_folder_job *j, oct_made_model *d, oct_model *source, oct_model *made_model,
                               oct_err *err)
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

static oct_status check(oct_folder_job *j, oct_made_model *d, oct_err *err)
{
    oct_model *source = NULL, *is = NULL;
    const char *from = oct_listing_at(&j->f.listing, d->m->file->path, j->arena), *to = oct_new_folder_at(j, d->result);
    oct_status s = from && to ? oct_model_load(from, &source, err) : oct_nomem(err);
    d->quantized = s == OCT_OK && oct_quantized_nodes(source->graph) > 0;
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

static oct_status check_all(oct_folder_job *j, oct_err *err)
{
    for (size_t i = 0; i < j->f.n_model; i++)
        OCT_TRY(check(j, &j->made[i], err));
    return OCT_OK;
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

static oct_status make(oct_folder_job *j, oct_err *err)
{
    const octet_convert_options *x = j->x;
    if (!x->dry_run && lies_in(x->output, x->model)) {
        oct_fail(err, OCT_EUSAGE, "%s: the new folder would lie in the one that is read", x->output);
        oct_hint(err, "name one beside it");
        return OCT_EUSAGE;
    }
    if (!x->dry_run && fnmatch("*.onnx", x->output, 0) == 0) {
        oct_fail(err, OCT_EUSAGE, "%s: a folder becomes a folder, and this is the name of a model", x->output);
        oct_hint(err, "name a folder; a model alone is converted by its own name");
        return OCT_EUSAGE;
    }
    if (!x->dry_run)
        OCT_TRY(oct_scratch_create_beside(x->output, &j->staging, err));
    OCT_TRY(oct_folder_look(&j->f, j->h->voice, err));
    OCT_TRY(plan(j, err));
    OCT_TRY(make_models(j, err));
    if (!j->staging)
        return check_all(j, err);
    OCT_TRY(oct_new_folder_place_data(j, err));
    OCT_TRY(oct_new_folder_add_others(j, err));
    return check_all(j, err);
}

static oct_status run(oct_folder_job *j, const char *recipe, oct_document *to, oct_err *err)
{
    OCT_TRY(check_options(j->x, err));
    OCT_TRY(oct_folder_open(&j->f, j->x->model, recipe, err));
    OCT_TRY(check_output(j->x, err));
    oct_say(j->h->voice, 0, "%s: a folder for %s", j->f.listing.folder, j->f.recipe->name);
    const oct_status s = make(j, err);
    if (s != OCT_OK && s != OCT_EGOAL)
        return s;
    j->missed = s == OCT_EGOAL;
    oct_new_folder_report(j, to);
    if (!oct_document_root(to))
        return oct_nomem(err);
    return s == OCT_OK && j->staging ? oct_scratch_commit(j->staging, err) : s;
}

oct_status oct_folder_convert(const octet_convert_options *x, const char *recipe, const oct_session_host *h,
                              oct_document *to, oct_err *err)
{
    oct_folder_job j = { .x = x, .h = h, .arena = oct_arena_create() };
    oct_status s = j.arena ? run(&j, recipe, to, err) : oct_nomem(err);
    oct_scratch_remove(j.staging);
    for (size_t i = 0; i < j.f.n_model && j.made; i++)
        oct_document_destroy(j.made[i].report);
    oct_folder_close(&j.f);
    oct_arena_destroy(j.arena);
    return s;
}
