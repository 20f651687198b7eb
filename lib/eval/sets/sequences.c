/* Labels and texts, sample by sample. */
#include "eval/sets/sequences.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "eval/metrics/class_sums.h"
#include "base/bytes.h"
#include "eval/metrics/entities.h"
#include "eval/sets/judging.h"

#include <math.h>
#include <string.h>

enum { MOST_LABEL = 1 << 20 };

/* What a sample contributes: of one label, of all entities (label -1), of words (-2) or of characters (-3). */
typedef struct row {
    uint32_t sample;
    int32_t label;
    uint32_t hit, extra, missed; /* of words and characters: edits in `extra`, those of the truth in `missed` */
} row;
enum { ENTITIES = -1, WORDS = -2, CHARACTERS = -3 };

typedef struct sequences {
    oct_set base;
    row *v;
    size_t n, cap;
    size_t labels;
    int32_t *found; /* of the current sample */
    size_t n_found, cap_found;
} sequences;

static row *row_of(sequences *q, size_t from, int32_t label)
{
    for (size_t i = from; i < q->n; i++)
        if (q->v[i].label == label)
            return &q->v[i];
    if (!OCT_SET_GROW(q->v, q->n, q->cap))
        return NULL;
    q->v[q->n] = (row){ .sample = (uint32_t)q->base.n, .label = label };
    return &q->v[q->n++];
}

/* ---- what was found ---- */

static int32_t best_of(const float *v, size_t n)
{
    const size_t best = n == 1 ? 0 : oct_class_of(v, n, 0);
    return best == OCT_NO_CLASS ? -1 : (int32_t)best;
}

static oct_status find_labels(sequences *q, const oct_set_view *v, oct_err *err)
{
    const oct_set_tensor *t;
    OCT_TRY(oct_output_find(&q->base.judging->rule->output, 0, v->out, v->n_out, &t, err));
    const size_t classes = t->codes || !t->rank ? 1 : (size_t)t->dims[t->rank - 1], n = classes ? t->n / classes : 0;
    if (!t->codes && (classes < 2 || classes > MOST_LABEL))
        return oct_fail(err, OCT_EUSAGE, "--decode: output '%s' has neither labels nor scores of them, [L,C]", t->name);
    for (q->n_found = 0; q->n_found < n; q->n_found++) {
        if (!OCT_SET_GROW(q->found, q->n_found, q->cap_found))
            return oct_nomem(err);
        const float *at = t->v + q->n_found * classes;
        q->found[q->n_found] = !t->codes                             ? best_of(at, classes)
                               : *at >= 0 && *at < (float)MOST_LABEL ? (int32_t)*at
                                                                     : -1;
    }
    return OCT_OK;
}

/* ---- labels ---- */

static bool is_outside(const oct_decode *r, int32_t label)
{
    return label >= 0 && label < r->n_tags && strcmp(r->tag[label], "O") == 0;
}

static oct_status count_label(sequences *q, size_t from, int32_t label, bool hit, bool extra, oct_err *err)
{
    if (label < 0 || is_outside(q->base.judging->rule, label))
        return OCT_OK;
    row *r = row_of(q, from, label);
    if (!r)
        return oct_nomem(err);
    r->hit += hit;
    r->extra += !hit && extra;
    r->missed += !hit && !extra;
    q->labels = (size_t)label >= q->labels ? (size_t)label + 1 : q->labels;
    return OCT_OK;
}

static oct_status add_labels(sequences *q, const oct_set_view *v, const oct_truth_sequence *t, oct_err *err)
{
    const oct_decode *r = q->base.judging->rule;
    const size_t from = q->n;
    size_t kept = 0;
    if (t->n > q->n_found)
        return oct_fail(err, OCT_EMALFORMED, "%s: %zu labels, and the model gives %zu", v->name, t->n, q->n_found);
    int32_t *want = oct_calloc(t->n + 1, sizeof *want);
    if (!want)
        return oct_nomem(err);
    oct_status s = OCT_OK;
    for (size_t i = 0; i < t->n && s == OCT_OK; i++) {
        if (t->label[i] < 0)
            continue;
        const int32_t a = t->label[i], b = q->found[i];
        s = count_label(q, from, a, a == b, false, err);
        if (s == OCT_OK && a != b)
            s = count_label(q, from, b, false, true, err);
        want[kept] = a;
        q->found[kept++] = b;
    }
    row *e = s == OCT_OK && r->n_tags ? row_of(q, from, ENTITIES) : NULL;
    if (s == OCT_OK && r->n_tags)
        s = e ? oct_entities_compare(r->tag, (size_t)r->n_tags, want, q->found, kept, &e->hit, &e->extra, &e->missed,
                                     err)
              : oct_nomem(err);
    oct_free(want);
    return s;
}

/* ---- texts ---- */

/* Symbols of the labels that were found: of runs of the same one the first, without blanks, where the rule says ctc. */
static void spell(const sequences *q, oct_buf *b)
{
    const oct_decode *r = q->base.judging->rule;
    const int64_t blank = r->blank == -1 ? r->n_symbols - 1 : r->blank;
    for (size_t i = 0; i < q->n_found; i++) {
        const int32_t c = q->found[i];
        if (r->end >= 0 && c == r->end)
            return;
        if (r->ctc && (c == blank || (i && c == q->found[i - 1])))
            continue;
        if (c >= 0 && c < r->n_symbols)
            oct_buf_puts(b, r->symbol[c]);
    }
}

/* Numbers that are equal where words (or characters) are: texts cut at blanks, which stand at the ends of none. */
typedef struct pieces {
    const char **at;
    size_t *len;
    size_t n, cap_at, cap_len;
} pieces;

static bool is_blank(const char *s)
{
    return *s == ' ' || *s == '\t' || *s == '\n' || *s == '\r' || *s == '\v' || *s == '\f';
}

static bool add_piece(pieces *p, const char *at, size_t n)
{
    if (!OCT_SET_GROW(p->at, p->n, p->cap_at) || !OCT_SET_GROW(p->len, p->n, p->cap_len))
        return false;
    p->at[p->n] = at;
    p->len[p->n++] = n;
    return true;
}

static bool cut(const char *s, bool words, pieces *p)
{
    size_t end = strlen(s), n;
    p->n = 0;
    while (end && is_blank(s + end - 1))
        end--;
    const char *last = s + end;
    while (s < last && is_blank(s))
        s++;
    while (s < last) {
        if (words) {
            for (n = 0; s + n < last && !is_blank(s + n); n++)
                ;
        } else {
            oct_utf8_char(s, (size_t)(last - s), &n);
        }
        if (n && !add_piece(p, s, n))
            return false;
        s += n;
        while (words && s < last && is_blank(s))
            s++;
    }
    return true;
}

/* Levenshtein's distance. left: u32[b->n + 1]. */
static uint32_t distance(const pieces *a, const pieces *b, uint32_t *left)
{
    for (size_t k = 0; k <= b->n; k++)
        left[k] = (uint32_t)k;
    for (size_t i = 0; i < a->n; i++) {
        uint32_t corner = left[0]++;
        for (size_t k = 0; k < b->n; k++) {
            const bool same = a->len[i] == b->len[k] && memcmp(a->at[i], b->at[k], a->len[i]) == 0;
            const uint32_t put = corner + !same, in = left[k] + 1, out = left[k + 1] + 1;
            corner = left[k + 1];
            left[k + 1] = put < in ? (put < out ? put : out) : in < out ? in : out;
        }
    }
    return left[b->n];
}

static oct_status add_edits(sequences *q, const char *want, const char *found, int32_t kind, oct_err *err)
{
    pieces a = { 0 }, b = { 0 };
    const size_t from = q->n;
    uint32_t *left = NULL;
    row *r = NULL;
    bool enough = cut(want, kind == WORDS, &a) && cut(found, kind == WORDS, &b);
    enough = enough && (left = oct_calloc(b.n + 1, sizeof *left)) && (r = row_of(q, from, kind));
    if (enough) {
        r->extra = distance(&a, &b, left);
        r->missed = (uint32_t)a.n;
    }
    oct_free(a.at);
    oct_free(a.len);
    oct_free(b.at);
    oct_free(b.len);
    oct_free(left);
    return enough ? OCT_OK : oct_nomem(err);
}

static oct_status add_text(sequences *q, const char *want, oct_err *err)
{
    if (!q->base.judging->rule->n_symbols) {
        oct_fail(err, OCT_EUSAGE, "the truth has texts, and the rule does not say what the model's labels spell");
        oct_hint(err, "symbols FILE, with the symbol of each label in a line");
        return OCT_EUSAGE;
    }
    oct_buf b = OCT_BUF_INIT;
    spell(q, &b);
    oct_status s = b.failed ? oct_nomem(err) : add_edits(q, want, oct_buf_str(&b), WORDS, err);
    if (s == OCT_OK)
        s = add_edits(q, want, oct_buf_str(&b), CHARACTERS, err);
    oct_buf_free(&b);
    return s;
}

/* ---- the set ---- */

static oct_status sequences_add(oct_set *s, const oct_set_view *v, oct_err *err)
{
    sequences *q = (sequences *)s;
    const oct_truth_sequence *t = s->judging->truth ? oct_truth_sequence_of(s->judging->truth, v->index) : NULL;
    if (!s->judging->truth)
        return oct_fail(err, OCT_EUSAGE, "sequences need their labels or texts: --truth labels.npy or truth.jsonl");
    if (!t)
        return OCT_OK;
    OCT_TRY(find_labels(q, v, err));
    OCT_TRY(t->text ? add_text(q, t->text, err) : add_labels(q, v, t, err));
    s->scratch = OCT_SUMS_OF_CLASS * q->labels;
    s->n++;
    return OCT_OK;
}

static oct_status sequences_finish(oct_set *s, oct_err *err)
{
    return s->n ? OCT_OK
                : oct_fail(err, OCT_EMALFORMED, "%s: it has none of the samples", oct_truth_path(s->judging->truth));
}

static void sequences_release(oct_set *s)
{
    oct_free(((sequences *)s)->v);
    oct_free(((sequences *)s)->found);
}

static void sequences_save(oct_set *s, oct_buf *b)
{
    sequences *q = (sequences *)s;
    oct_buf_add_u64(b, s->n);
    oct_buf_add_u64(b, q->n);
    for (size_t i = 0; i < q->n; i++) {
        oct_buf_add_u32(b, (uint32_t)q->v[i].label);
        oct_buf_add_u32(b, q->v[i].hit);
        oct_buf_add_u32(b, q->v[i].extra);
        oct_buf_add_u32(b, q->v[i].missed);
    }
    s->n = q->n = 0;
}

static oct_status sequences_load(oct_set *s, oct_bytes *r, oct_err *err)
{
    enum { ROW = 16 };
    sequences *q = (sequences *)s;
    const uint64_t samples = oct_bytes_u64(r);
    const size_t n = oct_bytes_count(r, ROW);
    r->bad |= samples > 1 || (n && !samples) || s->n >= UINT32_MAX;
    for (size_t i = 0; i < n && !r->bad; i++) {
        if (!OCT_SET_GROW(q->v, q->n, q->cap))
            return oct_nomem(err);
        row x = { .sample = (uint32_t)s->n, .label = (int32_t)oct_bytes_u32(r) };
        x.hit = oct_bytes_u32(r);
        x.extra = oct_bytes_u32(r);
        x.missed = oct_bytes_u32(r);
        r->bad |= x.label < CHARACTERS || x.label >= MOST_LABEL;
        if (r->bad)
            return OCT_OK;
        q->v[q->n++] = x;
        q->labels = x.label >= 0 && (size_t)x.label >= q->labels ? (size_t)x.label + 1 : q->labels;
    }
    s->scratch = OCT_SUMS_OF_CLASS * q->labels;
    s->n += r->bad ? 0 : (size_t)samples;
    return OCT_OK;
}

const oct_set_type oct_set_of_sequences = { sizeof(sequences), sequences_add,  sequences_finish,
                                            sequences_release, sequences_save, sequences_load };

/* ---- values ---- */

static oct_class_sums sums_of(const sequences *q, const double *draws, double *scratch)
{
    const oct_class_sums sums = oct_class_sums_in(scratch, q->labels);
    for (size_t i = 0; i < q->n; i++) {
        const row *r = &q->v[i];
        const double w = draws ? draws[r->sample] : 1;
        if (r->label < 0)
            continue;
        sums.hit[r->label] += w * r->hit;
        sums.extra[r->label] += w * r->extra;
        sums.missed[r->label] += w * r->missed;
    }
    return sums;
}

double oct_sequences_token_f1(const oct_set *s, const double *draws, double *scratch)
{
    const oct_class_sums sums = sums_of((const sequences *)s, draws, scratch);
    return oct_share_mean(OCT_SHARE_F1, &sums);
}

static row sum_of(const oct_set *s, const double *draws, int32_t kind, double sum[3])
{
    const sequences *q = (const sequences *)s;
    row any = { 0 };
    sum[0] = sum[1] = sum[2] = 0;
    for (size_t i = 0; i < q->n; i++) {
        const row *r = &q->v[i];
        const double w = draws ? draws[r->sample] : 1;
        if (r->label != kind)
            continue;
        any.hit = 1;
        sum[0] += w * r->hit;
        sum[1] += w * r->extra;
        sum[2] += w * r->missed;
    }
    return any;
}

double oct_sequences_entity_f1(const oct_set *s, const double *draws, double *scratch)
{
    double sum[3];
    return sum_of(s, draws, ENTITIES, sum).hit ? oct_share_of(OCT_SHARE_F1, sum[0], sum[1], sum[2]) : NAN;
}

static double edits(const oct_set *s, const double *draws, int32_t kind)
{
    double sum[3];
    sum_of(s, draws, kind, sum);
    return sum[2] > 0 ? sum[1] / sum[2] : NAN;
}

double oct_sequences_wer(const oct_set *s, const double *draws, double *scratch)
{
    return edits(s, draws, WORDS);
}

double oct_sequences_cer(const oct_set *s, const double *draws, double *scratch)
{
    return edits(s, draws, CHARACTERS);
}

oct_status oct_sequences_table(const oct_set *s, oct_arena *arena, oct_class_table *t, oct_err *err)
{
    const sequences *q = (const sequences *)s;
    *t = (oct_class_table){ .counts = "places" };
    double *scratch = oct_arena_calloc(arena, s->scratch + 1, sizeof *scratch);
    t->row = oct_arena_calloc(arena, q->labels + 1, sizeof *t->row);
    if (!scratch || !t->row)
        return oct_nomem(err);
    const oct_class_sums sums = sums_of(q, NULL, scratch);
    for (size_t i = 0; i < sums.n; i++)
        oct_class_row_add(t, (int64_t)i, sums.hit[i], sums.extra[i], sums.missed[i], NAN);
    return OCT_OK;
}
