/* Variants of the models of a folder, judged against the float ones. */
#include "api/folder/demands.h"
#include "api/folder/folder.h"
#include "onnx/model.h"

#include <math.h>
#include <string.h>

/* A file that is to stand for a model. */
typedef struct variant {
    const oct_folder_model *m;             /* NULL: its float model is not there */
    const oct_folder_recipe_variant *word; /* NULL: it is called as the model is */
    const oct_listed *file;                /* NULL: it is missing */
    const char *path;                      /* FOLDER/file */
    const char *verdict;
    const char *why; /* NULL: the verdict says it all */
    bool bad;
    uint64_t bytes;
    oct_document *report; /* of its evaluation; NULL: it was not run */
} variant;

typedef struct job {
    const octet_evaluate_options *x;
    const oct_evaluation_host *h;
    oct_arena *arena;
    oct_folder f;
    oct_listing other; /* of the second folder */
    variant *v;
    size_t n, cap, bad;
    size_t judged, unjudged; /* of those that were run */
    oct_err fault;           /* of the first one that is not */
} job;

/* ---- which files ---- */

static oct_status add(job *j, variant v, const oct_listing *in, oct_err *err)
{
    if (v.file && !(v.path = oct_listing_at(in, v.file->path, j->arena)))
        return oct_nomem(err);
    if (!OCT_GROW(j->arena, j->v, j->n, j->cap))
        return oct_nomem(err);
    j->v[j->n++] = v;
    return OCT_OK;
}

static bool stands_for(const oct_folder *f, const oct_listed *file, const oct_folder_model *m,
                       const oct_folder_recipe_variant **word)
{
    size_t stem;
    *word = NULL;
    if (strcmp(file->path, m->file->path) == 0)
        return true;
    *word = oct_folder_recipe_variant_of(f->recipe, file->path, &stem);
    return *word && strlen(m->name) == stem && strncmp(file->path, m->name, stem) == 0;
}

/* Of each model what the second folder has. */
static oct_status pair(job *j, oct_err *err)
{
    OCT_TRY(oct_listing_read(j->x->quantized.v[0], j->arena, &j->other, err));
    for (size_t i = 0; i < j->f.n_model; i++) {
        const size_t before = j->n;
        const oct_folder_recipe_variant *word;
        for (size_t k = 0; k < j->other.n; k++)
            if (stands_for(&j->f, &j->other.v[k], &j->f.model[i], &word))
                OCT_TRY(add(j, (variant){ .m = &j->f.model[i], .word = word, .file = &j->other.v[k] }, &j->other, err));
        if (j->n == before)
            OCT_TRY(add(j, (variant){ .m = &j->f.model[i], .verdict = "missing", .bad = true }, &j->other, err));
    }
    return OCT_OK;
}

static oct_status list(job *j, oct_err *err)
{
    if (j->x->quantized.n)
        return pair(j, err);
    for (size_t i = 0; i < j->f.n_variant; i++) {
        const oct_folder_variant *v = &j->f.variant[i];
        OCT_TRY(add(j, (variant){ .m = v->model, .word = v->of, .file = v->file }, &j->f.listing, err));
    }
    for (size_t i = 0; j->n && i < j->f.n_unknown; i++)
        oct_say(j->h->voice, OCT_NOTE_WARNING, "%s: no line of the recipe %s names this model: it is not judged",
                j->f.unknown[i]->path, j->f.recipe->name);
    if (j->n)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "%s: there are no variants beside its float models", j->f.listing.folder);
    if (j->f.n_unknown)
        oct_hint(err, "no line of the recipe %s names '%s': compare it by 'qeval FLOAT.onnx %s/%s'", j->f.recipe->name,
                 j->f.unknown[0]->path, j->f.listing.folder, j->f.unknown[0]->path);
    else
        oct_hint(err, "two folders are compared by 'qeval FLOAT NEW --data SPEC'");
    return OCT_EUSAGE;
}

/* ---- one variant ---- */

static oct_status judge(variant *v, const char *verdict, bool bad, const char *why, oct_arena *arena, oct_err *err)
{
    v->verdict = verdict;
    v->bad = bad;
    v->why = why ? oct_arena_strdup(arena, why) : NULL;
    return why && !v->why ? oct_nomem(err) : OCT_OK;
}

/* What is valid, and not known here, may load elsewhere. */
static oct_status judge_fault(variant *v, const char *verdict, oct_status s, const oct_err *fault, oct_arena *arena,
                              oct_err *err)
{
    if (s == OCT_ENOMEM || s == OCT_ESTOPPED || s == OCT_EINTERNAL) {
        *err = *fault;
        return s;
    }
    return s == OCT_EUNSUPPORTED ? judge(v, "not judged", false, fault->text, arena, err)
                                 : judge(v, verdict, true, fault->text, arena, err);
}

static oct_status check_against(job *j, variant *v, oct_model *m, oct_err *err)
{
    oct_err fault = OCT_ERR_INIT;
    oct_model *source = NULL;
    const char *path = oct_listing_at(&j->f.listing, v->m->file->path, j->arena);
    OCT_TRY(path ? oct_model_load(path, &source, err) : oct_nomem(err));
    oct_status s = oct_demands_alike(source, m, OCT_ALIKE_PUBLISHED, &fault);
    if (s != OCT_OK) {
        oct_err types = OCT_ERR_INIT;
        const oct_status t = oct_demands_types(m, &types);
        s = t != OCT_OK ? judge_fault(v, "does not load", t, &types, j->arena, err)
                        : judge_fault(v, "other ends", s, &fault, j->arena, err);
    }
    oct_model_free(source);
    return s;
}

/* Whether it loads, as far as can be told without the loader, and can stand for its model. */
static oct_status check(job *j, variant *v, oct_err *err)
{
    oct_err fault = OCT_ERR_INIT;
    oct_model *m;
    oct_status s = oct_load_checked((oct_voice){ 0 }, v->path, NULL, 0, &m, &fault);
    if (s != OCT_OK)
        return judge_fault(v, "does not load", s, &fault, j->arena, err);
    v->bytes = oct_model_bytes(m);
    if (v->m)
        s = check_against(j, v, m, err);
    else if ((s = oct_demands_types(m, &fault)) != OCT_OK)
        s = judge_fault(v, "does not load", s, &fault, j->arena, err);
    else
        s = judge(v, "not judged", false, "its float model is not in the folder", j->arena, err);
    oct_model_free(m);
    return s;
}

static oct_status evaluate(const octet_evaluate_options *x, const oct_evaluation_host *h, oct_document *to,
                           oct_err *err)
{
    oct_evaluation *e;
    OCT_TRY(oct_evaluation_open(x, h, &e, err));
    oct_status s = oct_evaluation_run(e, err);
    if (s == OCT_OK)
        s = oct_evaluation_report(e, to, err);
    if (s == OCT_OK)
        s = oct_evaluation_gates(e, err);
    oct_evaluation_close(e);
    return s;
}

/* Where the noise has half the power of the outputs, they say next to nothing of them. */
static oct_status judge_numbers(variant *v, oct_arena *arena, oct_err *err)
{
    enum { CHANCE_DB = 3 };
    const oct_item *m = oct_item_at(oct_document_root(v->report), "models.1");
    const double db = oct_item_number(m, "output_sqnr_db");
    if (oct_item_true(m, "exact") || !(db < CHANCE_DB))
        return judge(v, "fits", false, NULL, arena, err);
    return judge(v, "near chance", true, "its outputs say next to nothing of the float model's", arena, err);
}

static oct_status run(job *j, variant *v, oct_err *err)
{
    oct_err fault = OCT_ERR_INIT;
    octet_evaluate_options x = *j->x;
    OCT_TRY(oct_folder_samples(&j->f, v->m, &j->x->samples, &x.samples, err));
    if (!oct_samples_any(&x.samples))
        return judge(v, "loads", false, "no samples are given for it", j->arena, err);
    x.model = oct_listing_at(&j->f.listing, v->m->file->path, j->arena);
    x.quantized = (octet_texts){ (const char *const[]){ v->path }, 1 };
    x.layers = x.layers < 0 ? 0 : x.layers;
    x.latency = x.latency < 0 ? 0 : x.latency;
    if (!x.model || !(v->report = oct_document_create()))
        return oct_nomem(err);
    const oct_status s = evaluate(&x, j->h, v->report, &fault);
    const bool judged = s == OCT_OK || s == OCT_EGOAL;
    if (!judged && !j->unjudged++)
        j->fault = fault;
    j->judged += judged;
    if (s == OCT_OK)
        return judge_numbers(v, j->arena, err);
    if (s == OCT_EGOAL)
        return judge(v, "misses a gate", true, fault.text, j->arena, err);
    if (s == OCT_EUSAGE) { /* samples and options are the caller's */
        *err = fault;
        oct_within(err, "%s", v->path);
        return s;
    }
    return judge_fault(v, "not judged", s == OCT_EUNSUPPORTED || s == OCT_EMALFORMED ? OCT_EUNSUPPORTED : s, &fault,
                       j->arena, err);
}

/* ---- the report ---- */

static void put_variant(oct_json *j, const void *row)
{
    const variant *v = row;
    const oct_item *r = oct_document_root(v->report), *m = oct_item_at(r, "models.1");
    oct_json_str(j, "file", v->path);
    oct_json_str(j, "model", v->m ? v->m->file->path : NULL);
    oct_json_str(j, "variant", v->word ? v->word->word : NULL);
    oct_json_str(j, "verdict", v->verdict);
    oct_json_str(j, "why", v->why);
    oct_json_bool(j, "bad", v->bad);
    oct_json_int(j, "bytes", (int64_t)v->bytes);
    oct_json_int(j, "float_bytes", v->m ? (int64_t)v->m->bytes : 0);
    oct_json_int(j, "samples", oct_item_whole(r, "samples"));
    const struct {
        const char *name;
        const oct_item *is;
    } item[] = { { "output_sqnr_db", oct_item_at(m, "output_sqnr_db") },
                 { "metrics", oct_item_at(m, "metrics") },
                 { "float_metrics", oct_item_at(r, "float.metrics") } };
    for (size_t i = 0; i < OCT_COUNT(item); i++)
        if (item[i].is)
            oct_json_item(j, item[i].name, item[i].is);
}

static void report(job *j, oct_document *to)
{
    oct_json v = { .to = to };
    oct_report_open(&v, "octet-audit-1");
    oct_json_str(&v, "folder", j->f.listing.folder);
    oct_json_str(&v, "compared", j->x->quantized.n ? j->other.folder : NULL);
    oct_json_str(&v, "recipe", j->f.recipe->name);
    oct_json_rows(&v, "variants", j->v, j->n, sizeof *j->v, put_variant);
    oct_json_int(&v, "bad", (int64_t)j->bad);
    oct_json_str(&v, "text", oct_arena_printf(j->arena, "%zu of %zu variants can be used", j->n - j->bad, j->n));
    oct_json_close(&v);
}

/* ---- the whole ---- */

static oct_status check_options(const octet_evaluate_options *x, oct_err *err)
{
    const struct {
        const char *name;
        bool given;
    } none[] = { { "--html", x->html },
                 { "--markdown", x->markdown },
                 { "--junit", x->junit },
                 { "--baseline", x->baseline },
                 { "--shard", x->shards > 0 } };
    if (!x->model)
        return oct_fail(err, OCT_EUSAGE, "there is no folder: its name is NULL");
    for (size_t i = 0; i < OCT_COUNT(none); i++)
        if (none[i].given)
            return oct_fail(err, OCT_EUSAGE, "%s is for models, and %s is a folder", none[i].name, x->model);
    if (x->quantized.n > 1)
        return oct_fail(err, OCT_EUSAGE, "a folder is compared with one other folder, and %zu are given",
                        x->quantized.n);
    return OCT_OK;
}

static oct_status audit(job *j, const char *recipe, oct_document *to, oct_err *err)
{
    OCT_TRY(check_options(j->x, err));
    OCT_TRY(oct_folder_open(&j->f, j->x->model, recipe, err));
    OCT_TRY(oct_folder_look(&j->f, j->h->voice, err));
    OCT_TRY(list(j, err));
    for (size_t i = 0; i < j->n; i++) {
        variant *v = &j->v[i];
        if (!v->verdict)
            OCT_TRY(check(j, v, err));
        if (!v->verdict)
            OCT_TRY(run(j, v, err));
        j->bad += v->bad;
    }
    if (j->unjudged && !j->judged && !j->bad && j->fault.status != OCT_EUNSUPPORTED) { /* it is the samples */
        if (err)
            *err = j->fault;
        return j->fault.status;
    }
    report(j, to);
    if (!oct_document_root(to))
        return oct_nomem(err);
    return j->bad
               ? oct_fail(err, OCT_EGOAL, "%s: %zu of %zu variants cannot be used", j->f.listing.folder, j->bad, j->n)
               : OCT_OK;
}

oct_status oct_folder_audit(const octet_evaluate_options *x, const char *recipe, const oct_evaluation_host *h,
                            oct_document *to, oct_err *err)
{
    job j = { .x = x, .h = h, .arena = oct_arena_create() };
    const oct_status s = j.arena ? audit(&j, recipe, to, err) : oct_nomem(err);
    for (size_t i = 0; i < j.n; i++)
        oct_document_destroy(j.v[i].report);
    oct_folder_close(&j.f);
    oct_arena_destroy(j.arena);
    return s;
}
