/* Computes digests of a conversion's inputs, and writes and reads them as text. */
#include "quant/convert/record.h"

#include "base/mem.h"
#include "base/pool.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *words;
} parts[OCT_RECORD_PARTS] = {
    [OCT_RECORD_SOURCE] = { "source", "float model" },
    [OCT_RECORD_SOURCE_DATA] = { "source-data", "external data of the float model" },
    [OCT_RECORD_TABLE] = { "table", "calibration table" },
    [OCT_RECORD_POLICY] = { "policy", "policy table" },
    [OCT_RECORD_TARGET] = { "target", "target file" },
    [OCT_RECORD_LABELS] = { "labels", "file of labels" },
    [OCT_RECORD_TRUTH] = { "truth", "truth of the samples" },
    [OCT_RECORD_RULE] = { "rule", "rule for outputs" },
    [OCT_RECORD_SAMPLES] = { "samples", "set of samples" },
};

const char *oct_record_name(oct_record_part p)
{
    return parts[p].name;
}

const char *oct_record_words(oct_record_part p)
{
    return parts[p].words;
}

/* ---- digests ---- */

static void close_entry(oct_record_entry *e, oct_sha256 *h)
{
    unsigned char digest[OCT_SHA256_BYTES];
    oct_sha256_end(h, digest);
    oct_sha256_text(digest, e->sha256);
    e->there = true;
}

/* Large files are removed from memory while they are read. *stop ends that. */
static void add_map(oct_sha256 *h, const oct_map *m, const atomic_bool *stop)
{
    const size_t step = 16 << 20;
    for (size_t at = 0; at < m->size && !(stop && atomic_load(stop)); at += step) {
        const char *p = (const char *)m->data + at;
        const size_t n = m->size - at < step ? m->size - at : step;
        oct_sha256_add(h, p, n);
        oct_map_forget(p, n);
    }
}

static void add_model(oct_record *r, const oct_model *m, const atomic_bool *stop)
{
    const size_t first = m->from_file ? 1 : 0;
    oct_sha256 h;
    oct_sha256_begin(&h);
    if (m->from_file)
        add_map(&h, &m->maps[0], stop);
    else
        oct_sha256_add(&h, m->data, m->size);
    close_entry(&r->part[OCT_RECORD_SOURCE], &h);
    if (m->n_maps == first)
        return;
    oct_sha256_begin(&h);
    for (size_t i = first; i < m->n_maps; i++)
        add_map(&h, &m->maps[i], stop);
    close_entry(&r->part[OCT_RECORD_SOURCE_DATA], &h);
}

void oct_record_model(oct_record *r, const oct_model *m)
{
    add_model(r, m, NULL);
}

/* ---- beside other work ---- */

struct oct_record_task {
    oct_record *record;
    const oct_model *model;
    pthread_t thread;
    bool runs; /* until it was joined */
    atomic_bool stop;
};

static void *hash_model(void *arg)
{
    struct oct_record_task *t = arg;
    add_model(t->record, t->model, &t->stop);
    return NULL;
}

void oct_record_begin(oct_record *r, const oct_model *m, int threads)
{
    enum { LEAST = 64 << 20 };
    const bool beside = threads != 1 && oct_processors() > 1 && oct_model_bytes(m) >= LEAST;
    struct oct_record_task *t = beside ? oct_calloc(1, sizeof *t) : NULL;
    if (t) {
        t->record = r;
        t->model = m;
        t->runs = oct_thread_start(&t->thread, hash_model, t);
        r->task = t;
    }
    if (!t || !t->runs)
        oct_record_model(r, m);
}

void oct_record_wait(const oct_record *r)
{
    if (r->task && r->task->runs)
        pthread_join(r->task->thread, NULL);
    if (r->task)
        r->task->runs = false;
}

void oct_record_end(oct_record *r)
{
    if (r->task)
        atomic_store(&r->task->stop, true);
    oct_record_wait(r);
    oct_free(r->task);
    r->task = NULL;
}

void oct_record_file(oct_record *r, oct_record_part p, const char *path)
{
    oct_record_entry *e = &r->part[p];
    oct_sha256 h;
    oct_map m;
    if (!path)
        return;
    *e = (oct_record_entry){ .there = true, .sha256 = "-" };
    if (oct_map_open(&m, path, NULL) != OCT_OK)
        return;
    oct_sha256_begin(&h);
    add_map(&h, &m, NULL);
    close_entry(e, &h);
    oct_map_close(&m);
}

oct_record_entry oct_record_samples(const oct_source *src)
{
    unsigned char digest[OCT_SHA256_BYTES];
    oct_record_entry e = { .there = true, .n = oct_source_digest(src, digest) };
    oct_sha256_text(digest, e.sha256);
    return e;
}

/* ---- the text ---- */

void oct_record_put(const oct_record *r, oct_buf *b)
{
    for (int p = 0; p < OCT_RECORD_PARTS; p++) {
        const oct_record_entry *e = &r->part[p];
        if (!e->there)
            continue;
        oct_buf_printf(b, "%s%s %s%s", b->len ? "\n" : "", parts[p].name,
                       e->sha256[0] == '-' ? "" : "sha256:", e->sha256);
        if (p == OCT_RECORD_SAMPLES)
            oct_buf_printf(b, " %012llu", (unsigned long long)e->n);
    }
}

/* Files may be pipes, which can be read only once. The model and the samples are hashed while they are read. */
static bool may_be_unknown(int p)
{
    return p != OCT_RECORD_SOURCE && p != OCT_RECORD_SOURCE_DATA && p != OCT_RECORD_SAMPLES;
}

/* Reads one line of n bytes. */
static bool read_line(const char *line, size_t n, oct_record *r)
{
    static const char prefix[] = "sha256:";
    enum { PREFIX = sizeof prefix - 1, DIGITS = OCT_SHA256_TEXT - 1, MOST = 12 };
    int p = 0;
    while (p < OCT_RECORD_PARTS &&
           !(strncmp(line, parts[p].name, strlen(parts[p].name)) == 0 && line[strlen(parts[p].name)] == ' '))
        p++;
    if (p == OCT_RECORD_PARTS || r->part[p].there)
        return false;
    oct_record_entry *e = &r->part[p];
    const char *word = line + strlen(parts[p].name) + 1, *end = line + n;
    e->there = true;
    if (end - word == 1 && *word == '-' && may_be_unknown(p)) {
        strcpy(e->sha256, "-");
        return true;
    }
    if (end - word < PREFIX + DIGITS || strncmp(word, prefix, PREFIX) != 0 ||
        strspn(word + PREFIX, "0123456789abcdef") < DIGITS)
        return false;
    memcpy(e->sha256, word + PREFIX, DIGITS);
    e->sha256[DIGITS] = '\0';
    word += PREFIX + DIGITS;
    if (p != OCT_RECORD_SAMPLES)
        return word == end;
    if (end - word != 1 + MOST || *word != ' ' || strspn(word + 1, "0123456789") < MOST)
        return false;
    e->n = strtoull(word + 1, NULL, 10);
    return true;
}

oct_status oct_record_read(const char *text, oct_record *r, oct_err *err)
{
    *r = (oct_record){ 0 };
    for (size_t line = 1;; line++) {
        const size_t n = strcspn(text, "\n");
        if (!read_line(text, n, r))
            return oct_fail(err, OCT_EMALFORMED, OCT_RECORD_KEY ": line %zu is not a line of a record", line);
        if (!text[n])
            break;
        text += n + 1;
    }
    if (!r->part[OCT_RECORD_SOURCE].there)
        return oct_fail(err, OCT_EMALFORMED, OCT_RECORD_KEY ": it does not say what the model was made from");
    return OCT_OK;
}
