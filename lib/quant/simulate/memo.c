/* The file has measurements as lines of text: a word, the sites from and to, noise and SQNR. A line with the key
 * precedes the measurements of that key. A conversion with goals has two keys: that of the decisions before trials, and
 * that of the result. */
#include "quant/simulate/memo.h"

#include "base/buf.h"
#include "base/io.h"
#include "quant/job/placed.h"
#include "quant/place/place.h"
#include "quant/simulate/simulate_int.h"
#include "quant/weights/constants.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SAVE_SECONDS 2
enum { MOST_BYTES = 64 << 20, WORD = 16, KEYS = 8 };
static const char title[] = "octet sensitivity 1\n";

typedef struct entry {
    uint64_t key;
    char what[WORD];
    size_t from, to;
    oct_sim_loss loss;
} entry;

struct oct_memo {
    const char *path;
    oct_arena *arena;
    uint64_t key;
    uint64_t others[KEYS]; /* the keys in the file, the latest first */
    size_t n_others;
    entry *e;
    size_t n, cap, saved;
    double when;
};

/* ---- the key ---- */

static uint64_t hash_quant(uint64_t h, const oct_quant *q)
{
    if (!q)
        return oct_hash(h, "-", 1);
    h = oct_hash(h, &q->dtype, sizeof q->dtype);
    h = oct_hash(h, q->scale, (size_t)q->n * sizeof *q->scale);
    if (q->zp)
        h = oct_hash(h, q->zp, (size_t)q->n * sizeof *q->zp);
    if (q->qvals)
        h = oct_hash(h, q->qvals->data, (size_t)q->qvals->count * (size_t)oct_dtype_bits(q->qvals->dtype) / 8);
    return h;
}

static uint64_t hash_node(uint64_t h, const oct_qjob *j, int node)
{
    const int form[] = { (int)oct_scheme_of(j, node), (int)oct_half_type(j, node) };
    oct_qconstant c;
    h = oct_hash(h, form, sizeof form);
    for (int slot = 0; slot < OCT_CONSTANT_SLOTS; slot++)
        if (oct_constant_of(j, node, slot, &c) && c.use != OCT_CONSTANT_OPERAND)
            h = hash_quant(h, c.quant);
    return h;
}

static uint64_t hash_job(uint64_t h, const oct_qjob *j)
{
    for (size_t v = 0; v < j->n_values; v++) {
        const int root = oct_params_root(j, (int)v);
        h = oct_hash(h, &root, sizeof root);
        h = hash_quant(h, oct_quant_of(j, v));
        for (size_t k = 0; k < OCT_READ_TYPES; k++)
            h = hash_quant(h, oct_quant_as(j, (int)v, k));
    }
    for (size_t i = 0; i < j->n_layer; i++) {
        const qconstants *n = &j->constants[j->layer[i]];
        h = hash_node(h, j, j->layer[i]);
        for (size_t k = 0; k < OCT_COUNT(n->weights); k++) {
            h = hash_quant(h, n->weights[k] ? &n->weights[k]->quant : NULL);
            if (n->weights[k] && n->weights[k]->qvals)
                h = oct_hash(h, n->weights[k]->qvals->data, (size_t)n->weights[k]->qvals->count);
        }
        h = hash_quant(h, n->bias);
    }
    for (size_t i = 0; i < j->n_body; i++)
        h = hash_job(h, j->body[i].job);
    return h;
}

uint64_t oct_memo_key(const oct_conversion *c, const oct_sim *s)
{
    const uint64_t model = oct_model_hash(c->m);
    uint64_t h = hash_job(oct_hash(OCT_HASH_INIT, &model, sizeof model), c->job);
    for (size_t i = 0; i < s->n_samples; i++)
        for (size_t k = 0; k < s->core->n_inputs; k++)
            h = oct_hash(h, s->sample[i]->input[k].data, s->sample[i]->input[k].bytes);
    return h;
}

/* ---- the file ---- */

static oct_status append(oct_memo *m, const entry *e, oct_err *err)
{
    if (m->n == m->cap && !OCT_GROW(m->arena, m->e, m->n, m->cap))
        return oct_nomem(err);
    m->e[m->n++] = *e;
    return OCT_OK;
}

static void note_key(oct_memo *m, uint64_t key)
{
    if (key == m->key)
        return;
    memmove(m->others + 1, m->others, (KEYS - 1) * sizeof *m->others);
    m->others[0] = key;
    m->n_others += m->n_others < KEYS;
}

static oct_status read_entries(oct_memo *m, const char *text, oct_err *err)
{
    uint64_t key = 0;
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        entry e = { .key = key };
        if (sscanf(line, "key %" SCNx64, &key) == 1)
            note_key(m, key);
        else if (sscanf(line, "%15s %zu %zu %lg %lg", e.what, &e.from, &e.to, &e.loss.noise, &e.loss.sqnr) == 5)
            OCT_TRY(append(m, &e, err));
        else
            return oct_fail(err, OCT_EMALFORMED, "%s: a measurement has a word and four numbers, not \"%.*s\"", m->path,
                            (int)strcspn(line, "\n"), line);
    }
    return OCT_OK;
}

static oct_status read_file(oct_memo *m, oct_err *err)
{
    char *text = NULL;
    OCT_TRY(oct_read_text(m->path, MOST_BYTES, "a file of sensitivities", &text, err));
    const oct_status s =
        strncmp(text, title, sizeof title - 1) == 0
            ? read_entries(m, text + sizeof title - 1, err)
            : oct_fail(err, OCT_EMALFORMED, "%s: this is not a file of sensitivities, so it is left as it is", m->path);
    oct_free(text);
    return s;
}

static size_t count_entries(const oct_memo *m, uint64_t key)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        n += m->e[i].key == key;
    return n;
}

oct_status oct_memo_open(const char *path, uint64_t key, oct_arena *arena, oct_memo **out, size_t *known, oct_err *err)
{
    oct_memo *m = oct_arena_calloc(arena, 1, sizeof *m);
    oct_path_kind kind;
    if (!m)
        return oct_nomem(err);
    *m = (oct_memo){ .path = path, .arena = arena, .key = key, .when = oct_now() };
    OCT_TRY(oct_path_look(path, &kind, err));
    if (kind != OCT_PATH_NONE)
        OCT_TRY(read_file(m, err));
    m->saved = m->n;
    *known = count_entries(m, key);
    *out = m;
    return OCT_OK;
}

static void put_entries(const oct_memo *m, uint64_t key, oct_buf *b)
{
    oct_buf_printf(b, "key %016" PRIx64 "\n", key);
    for (size_t i = 0; i < m->n; i++)
        if (m->e[i].key == key)
            oct_buf_printf(b, "%s %zu %zu %.17g %.17g\n", m->e[i].what, m->e[i].from, m->e[i].to, m->e[i].loss.noise,
                           m->e[i].loss.sqnr);
}

oct_status oct_memo_save(oct_memo *m, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    oct_out o;
    if (m->saved == m->n)
        return OCT_OK;
    oct_buf_puts(&b, title);
    /* the latest last; if there are too many, the oldest is dropped */
    for (size_t k = m->n_others < KEYS ? m->n_others : KEYS - 1; k > 0; k--)
        put_entries(m, m->others[k - 1], &b);
    put_entries(m, m->key, &b);
    oct_status s = b.failed ? oct_nomem(err) : oct_out_open(&o, m->path, err);
    if (s == OCT_OK) {
        oct_out_write(&o, oct_buf_str(&b), b.len);
        s = oct_out_commit(&o, err);
    }
    oct_buf_free(&b);
    m->saved = m->n;
    m->when = oct_now();
    return s;
}

/* ---- measurements ---- */

bool oct_memo_find(const oct_memo *m, const char *what, size_t from, size_t to, oct_sim_loss *loss)
{
    for (size_t i = 0; i < m->n; i++) {
        const entry *e = &m->e[i];
        if (e->key == m->key && e->from == from && e->to == to && strcmp(e->what, what) == 0) {
            *loss = e->loss;
            return true;
        }
    }
    return false;
}

oct_status oct_memo_add(oct_memo *m, const char *what, size_t from, size_t to, const oct_sim_loss *loss, oct_err *err)
{
    entry e = { .key = m->key, .from = from, .to = to, .loss = *loss };
    snprintf(e.what, sizeof e.what, "%s", what);
    OCT_TRY(append(m, &e, err));
    return oct_now() - m->when > SAVE_SECONDS ? oct_memo_save(m, err) : OCT_OK;
}
