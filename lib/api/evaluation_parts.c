/* Parts of an evaluation, written and joined. What they have in common (models, samples and options) stands in each as
 * JSON. The text is compared as a whole, and parsed when parts are joined. It contains no commands, because a file must
 * not start a program. */
#include "api/evaluation_int.h"

#include "base/io.h"
#include "base/json_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TRUTH = 1 << 30, MOST_GATES = 1 << 20 };

/* ---- writing ---- */

static void put_hash(oct_json *j, uint64_t hash)
{
    char hex[20];
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)hash);
    oct_json_str(j, "hash", hex);
}

/* A file by which samples are judged; for a folder, only its name. */
static oct_status put_file(oct_json *j, const char *key, const char *path, oct_err *err)
{
    char *data;
    size_t size;
    if (!path)
        return OCT_OK;
    oct_json_open(j, key, '{');
    oct_json_str(j, "path", path);
    if (oct_path_exists(path) && !oct_path_is_dir(path)) {
        OCT_TRY(oct_read_all(path, MOST_TRUTH, &data, &size, err));
        put_hash(j, oct_hash(OCT_HASH_INIT, data, size));
        oct_free(data);
    }
    oct_json_close(j);
    return OCT_OK;
}

static oct_status put_gates(oct_json *j, const octet_evaluate_options *a, oct_err *err)
{
    const char *gate[OCT_GATE_KINDS];
    char *text = NULL;
    if (a->gates)
        OCT_TRY(oct_read_text(a->gates, MOST_GATES, "a list of gates", &text, err));
    oct_evaluation_gate_texts(a, gate);
    oct_json_open(j, "gates", '{');
    oct_json_texts(j, oct_gate_name(OCT_GATE_DROP), a->max_drop.v, a->max_drop.n);
    for (size_t k = 0; k < OCT_GATE_KINDS; k++)
        if (gate[k])
            oct_json_str(j, oct_gate_name(k), gate[k]);
    if (text)
        oct_json_str(j, "file", text);
    oct_json_close(j);
    oct_free(text);
    return OCT_OK;
}

static const char schema_name[] = "octet-eval-part-1";

/* Which models run on which samples. */
static void put_run(oct_json *j, const octet_evaluate_options *a, oct_model *const *loaded)
{
    oct_json_open(j, "models", '[');
    for (size_t k = 0; k < 1 + a->quantized.n; k++) {
        oct_json_open(j, NULL, '{');
        oct_json_str(j, "path", k ? a->quantized.v[k - 1] : a->model);
        put_hash(j, oct_model_hash(loaded[k]));
        oct_json_close(j);
    }
    oct_json_close(j);
    oct_json_texts(j, "data", a->samples.data.v, a->samples.data.n);
    oct_json_texts(j, "preprocess", a->samples.preprocess.v, a->samples.preprocess.n);
    oct_json_int(j, "samples", a->samples.samples);
    oct_json_bool(j, "first", a->samples.first);
    oct_json_int(j, "seed", a->samples.seed > 0 ? a->samples.seed : 0);
    oct_json_bool(j, "skip_bad", a->samples.skip_bad);
}

static oct_status put_asked(const oct_evaluation *s, int64_t layer_samples, oct_buf *b, oct_err *err)
{
    const octet_evaluate_options *a = &s->x;
    oct_json j = OCT_JSON_INIT(b);
    oct_report_open(&j, schema_name);
    put_run(&j, a, s->loaded);
    oct_json_str(&j, "compute", a->compute);
    oct_json_str(&j, "as", a->twin);
    OCT_TRY(put_file(&j, "labels", a->samples.labels, err));
    OCT_TRY(put_file(&j, "truth", a->truth, err));
    OCT_TRY(put_file(&j, "decode", a->decode, err));
    oct_json_texts(&j, "metrics", a->metrics.v, a->metrics.n);
    oct_json_bool(&j, "per_class", a->per_class);
    oct_json_bool(&j, "layers", a->layers > 0);
    oct_json_int(&j, "layer_samples", layer_samples);
    oct_json_int(&j, "batch", a->batch);
    OCT_TRY(put_gates(&j, a, err));
    oct_json_close(&j);
    return b->failed ? oct_nomem(err) : OCT_OK;
}

/* ---- reading ---- */

typedef struct reader {
    const oct_tree *root;
    oct_arena *arena;
    bool ok, memory; /* memory: memory ran out */
} reader;

static const char *keep(reader *r, const char *text)
{
    const char *s = text ? oct_arena_strdup(r->arena, text) : NULL;
    r->memory |= text && !s;
    return s;
}

static const char *text_of(reader *r, const oct_tree *t, bool needed)
{
    r->ok &= !needed || oct_tree_text(t);
    return keep(r, oct_tree_text(t));
}

static int64_t int_of(reader *r, const char *key)
{
    double v = 0;
    r->ok &= oct_tree_number(oct_tree_member(r->root, key), &v) && v >= -1 && v < 0x1p53 && v == (double)(int64_t)v;
    return r->ok ? (int64_t)v : 0;
}

static bool bool_of(reader *r, const char *key)
{
    bool v = false;
    r->ok &= oct_tree_bool(oct_tree_member(r->root, key), &v);
    return v;
}

static octet_texts list_of(reader *r, const oct_tree *t)
{
    const size_t n = oct_tree_count(t);
    const char **v = oct_arena_calloc(r->arena, n + 1, sizeof *v);
    r->ok &= oct_tree_is_list(t);
    r->memory |= !v;
    for (size_t i = 0; i < n && v; i++)
        r->ok &= (v[i] = text_of(r, oct_tree_at(t, i), true)) != NULL;
    return (octet_texts){ v, n };
}

static uint64_t hash_of(reader *r, const oct_tree *t)
{
    const char *text = oct_tree_text(oct_tree_member(t, "hash"));
    char *end = NULL;
    const unsigned long long v = text ? strtoull(text, &end, 16) : 0;
    r->ok &= text && *text && !*end;
    return v;
}

oct_status oct_evaluation_changed(const char *path, oct_err *err)
{
    oct_fail(err, OCT_EUSAGE, "%s is not what it was when the parts were made", path);
    oct_hint(err, "make the parts again, or put the old file back");
    return OCT_EUSAGE;
}

/* Checks that a file has not changed. */
static oct_status take_file(reader *r, const char *key, const char **path, oct_err *err)
{
    const oct_tree *t = oct_tree_member(r->root, key);
    char *data;
    size_t size;
    if (!t || !(*path = text_of(r, oct_tree_member(t, "path"), true)) || !oct_tree_member(t, "hash"))
        return OCT_OK;
    OCT_TRY(oct_read_all(*path, MOST_TRUTH, &data, &size, err));
    const uint64_t hash = oct_hash(OCT_HASH_INIT, data, size);
    oct_free(data);
    return hash == hash_of(r, t) || !r->ok ? OCT_OK : oct_evaluation_changed(*path, err);
}

/* Reads the gates of the parts' command lines. */
static oct_status take_gates(reader *r, oct_gates *g, const char *label, oct_err *err)
{
    const oct_tree *t = oct_tree_member(r->root, "gates");
    const octet_texts drops = list_of(r, oct_tree_member(t, oct_gate_name(OCT_GATE_DROP)));
    for (size_t i = 0; i < drops.n && r->ok && !r->memory; i++)
        OCT_TRY(oct_gates_add(g, oct_gate_name(OCT_GATE_DROP), drops.v[i], err));
    for (size_t k = 0; k < OCT_GATE_KINDS; k++) {
        const char *value = k == OCT_GATE_DROP ? NULL : text_of(r, oct_tree_member(t, oct_gate_name(k)), false);
        if (value)
            OCT_TRY(oct_gates_add(g, oct_gate_name(k), value, err));
    }
    const char *file = text_of(r, oct_tree_member(t, "file"), false);
    return file ? oct_gates_read(g, file, label, err) : OCT_OK;
}

static oct_status take_run(reader *r, octet_evaluate_options *a, uint64_t **hash, oct_err *err)
{
    const oct_tree *models = oct_tree_member(r->root, "models");
    const size_t n = oct_tree_count(models);
    const char *schema = oct_tree_text(oct_tree_member(r->root, "schema"));
    r->ok &= schema && strcmp(schema, schema_name) == 0 && oct_tree_is_list(models) && n >= 1;
    *hash = oct_arena_calloc(r->arena, n + 1, sizeof **hash);
    const char **path = oct_arena_calloc(r->arena, n + 1, sizeof *path);
    if (!*hash || !path)
        return oct_nomem(err);
    for (size_t k = 0; k < n; k++) {
        path[k] = text_of(r, oct_tree_member(oct_tree_at(models, k), "path"), true);
        (*hash)[k] = hash_of(r, oct_tree_at(models, k));
    }
    a->model = path[0];
    a->quantized = (octet_texts){ path + 1, n ? n - 1 : 0 };
    a->samples.data = list_of(r, oct_tree_member(r->root, "data"));
    a->samples.preprocess = list_of(r, oct_tree_member(r->root, "preprocess"));
    a->samples.samples = int_of(r, "samples");
    a->samples.first = bool_of(r, "first");
    a->samples.seed = int_of(r, "seed");
    a->samples.skip_bad = bool_of(r, "skip_bad");
    return OCT_OK;
}

static oct_status take_all(reader *r, oct_evaluation *s, oct_err *err)
{
    octet_evaluate_options *a = &s->x;
    OCT_TRY(take_run(r, a, &s->hash, err));
    a->compute = text_of(r, oct_tree_member(r->root, "compute"), false);
    a->twin = text_of(r, oct_tree_member(r->root, "as"), false);
    a->metrics = list_of(r, oct_tree_member(r->root, "metrics"));
    a->per_class = bool_of(r, "per_class");
    a->layers = bool_of(r, "layers") ? 1 : -1;
    s->layer_samples = int_of(r, "layer_samples");
    a->batch = int_of(r, "batch");
    r->ok &= a->batch >= 0 && (!a->compute || strcmp(a->compute, "bf16") == 0);
    if (!r->ok || r->memory)
        return OCT_OK;
    OCT_TRY(take_file(r, "truth", &a->truth, err));
    const oct_tree *decode = oct_tree_member(r->root, "decode");
    if (oct_tree_member(decode, "hash"))
        return take_file(r, "decode", &a->decode, err);
    a->decode = text_of(r, oct_tree_member(decode, "path"), false);
    return OCT_OK;
}

oct_status oct_evaluation_take_parts(oct_evaluation *s, oct_err *err)
{
    oct_tree *root;
    OCT_TRY(oct_parts_open(&s->parts, s->h.parts.v, s->h.parts.n, err));
    const oct_part *p = &s->parts.v[0];
    OCT_TRY(oct_tree_parse(p->asked, strlen(p->asked), p->path, &root, err));
    reader r = { root, s->arena, true, false };
    oct_status st = take_all(&r, s, err);
    if (st == OCT_OK && r.ok && !r.memory)
        st = take_gates(&r, &s->part_gates, p->path, err);
    oct_tree_free(root);
    if (st == OCT_OK && r.memory)
        return oct_nomem(err);
    return st == OCT_OK && !r.ok ? oct_part_broken(p, "what was asked for is not told as this version tells it", err)
                                 : st;
}

/* ---- a part, and all of them ---- */

oct_status oct_evaluation_part(oct_evaluation *s, const char *path, oct_err *err)
{
    const long long part = (long long)s->x.shard, parts = (long long)s->x.shards;
    oct_buf asked = OCT_BUF_INIT;
    oct_eval_options o;
    oct_part_out p;
    int64_t samples = 0;
    OCT_TRY(oct_evaluation_open_samples(s, err));
    OCT_TRY(oct_evaluation_options(s, &o, err));
    oct_status st = put_asked(s, o.layer_samples, &asked, err);
    if (st == OCT_OK)
        st = oct_part_create(&p, path, oct_buf_str(&asked), (uint32_t)part, (uint32_t)parts, err);
    oct_buf_free(&asked);
    if (st == OCT_OK)
        st = oct_eval_part(s->models, s->n_models, s->src, &o, &p, &samples, err);
    OCT_TRY(st);
    oct_samples_say_taken(s->h.voice, s->src);
    if (!samples)
        oct_say(s->h.voice, OCT_NOTE_WARNING, "shard %lld/%lld holds no samples", part, parts);
    oct_say(s->h.voice, 0, "%s: part %lld/%lld, %lld samples%s", path, part, parts, (long long)samples,
            s->gates.n ? "; 'qeval merge' judges the gates, of all parts" : "");
    return OCT_OK;
}

oct_status oct_evaluation_join(oct_evaluation *s, oct_err *err)
{
    enum { NAMED = 5 };
    oct_joined j = { 0 };
    oct_eval_options o;
    OCT_TRY(oct_evaluation_options(s, &o, err));
    OCT_TRY(oct_eval_join(s->models, s->n_models, &s->parts, &o, &j, &s->result, err));
    s->context = (oct_report_context){ .data = s->x.samples.data.v,
                                       .n_data = s->x.samples.data.n,
                                       .preprocess = j.preprocess,
                                       .bad = j.bad,
                                       .n_bad = j.n_bad };
    if (j.bad_samples)
        oct_say(s->h.voice, OCT_NOTE_WARNING, "%lld broken sample%s left out", (long long)j.bad_samples,
                j.bad_samples == 1 ? " was" : "s were");
    for (size_t i = 0; j.bad_samples && i < j.n_bad; i++)
        oct_say(s->h.voice, i < NAMED ? 0 : 1, "  %s", j.bad[i]);
    return OCT_OK;
}
