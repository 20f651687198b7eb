/* Writes an in-toto statement about what was verified: the model, and what it was made from. */
#include "api/convert/verification_int.h"

#include "base/io.h"
#include "base/json_tree.h"

#include <math.h>
#include <string.h>

static void put_digest(oct_json *j, const char *sha256)
{
    oct_json_open(j, "digest", '{');
    oct_json_str(j, "sha256", sha256);
    oct_json_close(j);
}

/* The model's file and its external data. */
static void put_subjects(oct_json *j, const oct_verification *v)
{
    static const oct_record_part parts[] = { OCT_RECORD_SOURCE, OCT_RECORD_SOURCE_DATA };
    oct_record own = { 0 };
    oct_record_model(&own, v->m);
    oct_json_open(j, "subject", '[');
    for (size_t i = 0; i < OCT_COUNT(parts); i++) {
        if (!own.part[parts[i]].there)
            continue;
        oct_json_open(j, NULL, '{');
        oct_json_str(j, "name", i == 0 ? oct_path_base(v->x->model) : "external data");
        put_digest(j, own.part[parts[i]].sha256);
        oct_json_close(j);
    }
    oct_json_close(j);
}

const char *oct_verification_name(const oct_verification *v, oct_record_part p)
{
    const octet_convert_options *r = &v->made;
    const char *name = p == OCT_RECORD_TABLE     ? r->calib
                       : p == OCT_RECORD_POLICY  ? r->policy
                       : p == OCT_RECORD_TARGET  ? r->target
                       : p == OCT_RECORD_LABELS  ? r->samples.labels
                       : p == OCT_RECORD_TRUTH   ? r->truth
                       : p == OCT_RECORD_RULE    ? r->decode
                       : p != OCT_RECORD_SAMPLES ? r->model
                       : r->samples.data.n       ? r->samples.data.v[0]
                                                 : NULL;
    return name ? name : "";
}

static void put_inputs(oct_json *j, const oct_verification *v)
{
    oct_json_open(j, "inputs", '[');
    for (int p = 0; p < OCT_RECORD_PARTS; p++) {
        const oct_record_entry *e = &v->record.part[p];
        if (!e->there)
            continue;
        oct_json_open(j, NULL, '{');
        oct_json_str(j, "what", oct_record_name((oct_record_part)p));
        oct_json_str(j, "name", oct_verification_name(v, (oct_record_part)p));
        if (p == OCT_RECORD_SAMPLES)
            oct_json_int(j, "samples", (int64_t)e->n);
        if (strcmp(e->sha256, "-") != 0)
            put_digest(j, e->sha256);
        oct_json_close(j);
    }
    oct_json_close(j);
}

static void put_layers(oct_json *j, const oct_conversion *c)
{
    const oct_layer_count n = oct_layers_count(c->layers, c->n_layers);
    oct_json_open(j, "layers", '{');
    oct_json_int(j, "with_weights", (int64_t)n.products);
    oct_json_int(j, "integer", (int64_t)n.integer);
    oct_json_int(j, "half", (int64_t)n.half);
    oct_json_int(j, "blocks4", (int64_t)n.blocks4);
    oct_json_int(j, "blocks8", (int64_t)n.blocks8);
    oct_json_close(j);
    oct_json_open(j, "schemes", '{'); /* counts of layers with weights */
    for (int k = 0; k < OCT_SCHEME_COUNT; k++) {
        size_t of = 0;
        for (size_t i = 0; i < c->n_layers; i++)
            of += c->layers[i].product && c->layers[i].d.scheme == (oct_scheme)k;
        if (of)
            oct_json_int(j, oct_scheme_name((oct_scheme)k), (int64_t)of);
    }
    oct_json_close(j);
    oct_json_open(j, "methods", '[');
    for (size_t i = 0; i < c->n_methods; i++)
        if (c->methods[i].ran)
            oct_json_str(j, NULL, c->methods[i].method->name);
    oct_json_close(j);
}

/* ---- metrics of a report of qeval ---- */

static void put_number(oct_json *j, const char *key, const oct_tree *t)
{
    double x;
    if (oct_tree_number(t, &x))
        oct_json_num(j, key, x);
    else
        oct_json_null(j, key);
}

static void put_metrics(oct_json *j, const oct_tree *model)
{
    const oct_tree *drops = oct_tree_member(model, "drop");
    oct_tree *metrics = oct_tree_member(model, "metrics"), *value;
    const char *name;
    double samples;
    oct_json_open(j, "metrics", '[');
    for (void *at = NULL; oct_tree_next(metrics, &at, &name, &value);) {
        const oct_tree *drop = oct_tree_member(drops, name);
        oct_json_open(j, NULL, '{');
        oct_json_str(j, "name", name);
        put_number(j, "value", value);
        if (drop) {
            put_number(j, "drop", oct_tree_member(drop, "value"));
            put_number(j, "low", oct_tree_member(drop, "low"));
            put_number(j, "high", oct_tree_member(drop, "high"));
            oct_json_str(j, "interval", oct_tree_text(oct_tree_member(drop, "interval")));
            if (oct_tree_number(oct_tree_member(drop, "samples"), &samples))
                oct_json_int(j, "samples", (int64_t)samples);
        }
        oct_json_close(j);
    }
    oct_json_close(j);
}

/* The entry of that model, found by its name and its size. NULL: there is none. */
static const oct_tree *find_model(const oct_verification *v, const oct_tree *report)
{
    const oct_tree *models = oct_tree_member(report, "models");
    const oct_tree *two[] = { oct_tree_member(report, "quant"), oct_tree_member(report, "float") };
    const size_t n = oct_tree_count(models);
    for (size_t i = 0; i < n + OCT_COUNT(two); i++) {
        const oct_tree *m = i < n ? oct_tree_at(models, i) : two[i - n];
        const char *path = oct_tree_text(oct_tree_member(m, "path"));
        double size;
        if (path && strcmp(oct_path_base(path), oct_path_base(v->x->model)) == 0 &&
            oct_tree_number(oct_tree_member(m, "size_bytes"), &size) && size == (double)oct_model_bytes(v->m))
            return m;
    }
    return NULL;
}

static oct_status put_report(oct_json *j, const oct_verification *v, const char *path, const char *text, size_t size,
                             oct_err *err)
{
    char sha256[OCT_SHA256_TEXT];
    unsigned char digest[OCT_SHA256_BYTES];
    oct_sha256 h;
    oct_tree *report;
    OCT_TRY(oct_tree_parse(text, size, path, &report, err));
    const char *schema = oct_tree_text(oct_tree_member(report, "schema"));
    const oct_tree *model = schema && strcmp(schema, "octet-eval-1") == 0 ? find_model(v, report) : NULL;
    oct_status st = OCT_OK;
    if (!schema || strcmp(schema, "octet-eval-1") != 0)
        st = oct_fail(err, OCT_EMALFORMED, "%s: this is not a report of qeval", path);
    else if (!model)
        st = oct_fail(err, OCT_EUSAGE, "%s: it has no model of the name and size of %s", path, v->x->model);
    oct_sha256_begin(&h);
    oct_sha256_add(&h, text, size);
    oct_sha256_end(&h, digest);
    if (st == OCT_OK) {
        oct_json_open(j, "evaluation", '{');
        oct_json_str(j, "name", oct_path_base(path));
        put_digest(j, oct_sha256_text(digest, sha256));
        put_metrics(j, model);
        oct_json_close(j);
    }
    oct_tree_free(report);
    return st;
}

static oct_status put_evaluation(oct_json *j, const oct_verification *v, const char *evaluation, oct_err *err)
{
    enum { MOST = 256 << 20 };
    char *text;
    size_t size;
    if (!evaluation)
        return OCT_OK;
    OCT_TRY(oct_read_all(evaluation, MOST, &text, &size, err));
    const oct_status st = put_report(j, v, evaluation, text, size, err);
    oct_free(text);
    return st;
}

/* ---- the whole statement ---- */

oct_status oct_verification_state(const oct_verification *v, const char *evaluation, oct_document *to, oct_err *err)
{
    oct_json j = { .to = to };
    oct_json_open(&j, NULL, '{');
    oct_json_str(&j, "_type", "https://in-toto.io/Statement/v1");
    put_subjects(&j, v);
    oct_json_str(&j, "predicateType", "urn:octet:predicate:conversion:1");
    oct_json_open(&j, "predicate", '{');
    oct_json_open(&j, "maker", '{');
    oct_json_str(&j, "name", "octet qconvert");
    oct_json_str(&j, "version", OCT_VERSION);
    oct_json_close(&j);
    oct_json_str(&j, "command", v->command);
    put_inputs(&j, v);
    put_layers(&j, &v->s->c);
    oct_json_bool(&j, "verified", true);
    OCT_TRY(put_evaluation(&j, v, evaluation, err));
    oct_json_close(&j);
    oct_json_close(&j);
    return OCT_OK;
}
