/* Strings: StringConcat, StringSplit, StringNormalizer, RegexFullMatch; Equal and Cast of strings. */
#include "base/buf.h"
#include "ops/core/elem.h"
#include "ops/core/infer.h"
#include "ops/text/regex.h"
#include "ops/text/strings.h"
#include "ops/text/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static oct_status check_strings(const oct_exec *x, int slot, oct_err *err)
{
    if (!x->in[slot] || x->in[slot]->kind != OCT_DATUM_TENSOR || x->in[slot]->t.dtype != OCT_STRING)
        return oct_fail(err, OCT_EMALFORMED, "input %d is no tensor of strings", slot);
    return OCT_OK;
}

/* ------------------------------------------------------------------ two tensors, broadcast */

typedef struct pairs {
    int rank;
    int64_t dims[OCT_MAX_RANK], count;
    int64_t step[2][OCT_MAX_RANK];
} pairs;

static void steps_of(const oct_datum *t, const pairs *p, int64_t *step)
{
    int64_t s = 1;
    for (int k = p->rank - 1; k >= 0; k--) {
        int own = k - (p->rank - t->t.rank);
        step[k] = own >= 0 && t->dims[own] != 1 ? s : 0;
        s *= own >= 0 ? t->dims[own] : 1;
    }
}

static oct_status pair_up(const oct_exec *x, pairs *p, oct_err *err)
{
    oct_shape shape[2];
    oct_dim d[2][OCT_MAX_RANK], both[OCT_MAX_RANK];
    for (int i = 0; i < 2; i++) {
        OCT_TRY(check_strings(x, i, err));
        shape[i] = (oct_shape){ x->in[i]->t.rank, d[i] };
        for (int k = 0; k < x->in[i]->t.rank; k++)
            d[i][k] = oct_dim_of(x->in[i]->dims[k]);
    }
    OCT_TRY(oct_broadcast_dims(&shape[0], &shape[1], &p->rank, both, err));
    for (int k = 0; k < p->rank; k++)
        p->dims[k] = both[k].n;
    if (!oct_count(p->dims, p->rank, &p->count))
        return oct_nomem(err);
    steps_of(x->in[0], p, p->step[0]);
    steps_of(x->in[1], p, p->step[1]);
    return OCT_OK;
}

/* Calls fn for every pair, in order. */
static oct_status each_pair(const oct_exec *x, const pairs *p,
                            oct_status (*fn)(void *arg, int64_t i, oct_str a, oct_str b, oct_err *err), void *arg,
                            oct_err *err)
{
    const oct_str *a = x->in[0]->t.data, *b = x->in[1]->t.data;
    int64_t index[OCT_MAX_RANK] = { 0 }, at[2] = { 0, 0 };
    for (int64_t i = 0; i < p->count; i++) {
        OCT_TRY(fn(arg, i, a[at[0]], b[at[1]], err));
        for (int k = p->rank - 1; k >= 0; k--) {
            at[0] += p->step[0][k];
            at[1] += p->step[1][k];
            if (++index[k] < p->dims[k])
                break;
            at[0] -= p->step[0][k] * p->dims[k];
            at[1] -= p->step[1][k] * p->dims[k];
            index[k] = 0;
        }
    }
    return OCT_OK;
}

static oct_status same_pair(void *arg, int64_t i, oct_str a, oct_str b, oct_err *err)
{
    ((uint8_t *)arg)[i] = oct_text_same(a, b);
    return OCT_OK;
}

oct_status oct_strings_equal(oct_exec *x, oct_err *err)
{
    pairs p;
    OCT_TRY(pair_up(x, &p, err));
    OCT_TRY(oct_datum_tensor(OCT_BOOL, p.rank, p.dims, &x->out[0], err));
    return each_pair(x, &p, same_pair, oct_datum_data(x->out[0]), err);
}

/* Strings being made: their bytes go into an arena until they are copied into the result. */
typedef struct making {
    oct_arena *arena;
    oct_str *s;
} making;

static oct_status start(making *m, int64_t count, oct_err *err)
{
    *m = (making){ oct_arena_create(), NULL };
    m->s = m->arena ? oct_arena_calloc(m->arena, (size_t)count + 1, sizeof *m->s) : NULL;
    return m->s ? OCT_OK : oct_nomem(err);
}

static oct_status join_pair(void *arg, int64_t i, oct_str a, oct_str b, oct_err *err)
{
    making *m = arg;
    size_t n;
    char *to = oct_add_size(a.n, b.n, &n) ? oct_arena_alloc(m->arena, n + 1) : NULL;
    if (!to)
        return oct_nomem(err);
    if (a.n)
        memcpy(to, a.s, a.n);
    if (b.n)
        memcpy(to + a.n, b.s, b.n);
    m->s[i] = (oct_str){ to, n };
    return OCT_OK;
}

static oct_status concat_exec(oct_exec *x, oct_err *err)
{
    pairs p;
    making m;
    OCT_TRY(pair_up(x, &p, err));
    oct_status s = start(&m, p.count, err);
    if (s == OCT_OK)
        s = each_pair(x, &p, join_pair, &m, err);
    if (s == OCT_OK)
        s = oct_datum_strings(p.rank, p.dims, m.s, &x->out[0], err);
    oct_arena_destroy(m.arena);
    return s;
}

static oct_status concat_infer(const oct_infer *c, oct_err *err)
{
    oct_shape a = oct_in_shape(c, 0), b = oct_in_shape(c, 1);
    oct_dim d[OCT_MAX_RANK];
    int rank;
    oct_out_dtype(c, 0, OCT_STRING);
    OCT_TRY(oct_broadcast_dims(&a, &b, &rank, d, err));
    return oct_out_shape(c, 0, rank, d, err);
}

const oct_op oct_op_string_concat = {
    OCT_SCHEMA("StringConcat", "", 20, 2, 2, 1, 1),
    .infer = concat_infer,
    .exec = concat_exec,
};

/* ------------------------------------------------------------------ StringSplit */

/* Takes the next part of *rest; false: there is none. Without a delimiter, parts are what stands between white
 * space. */
typedef struct splitter {
    oct_str delimiter;
    bool spaces;
    int64_t most; /* parts; the last takes all that is left */
} splitter;

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static oct_str from(oct_str s, size_t at)
{
    return (oct_str){ s.s + at, s.n - at };
}

static bool next_word(const splitter *p, int64_t number, oct_str *rest, oct_str *part)
{
    size_t at = 0, end;
    while (at < rest->n && is_space(rest->s[at]))
        at++;
    *rest = from(*rest, at);
    if (!rest->n)
        return false;
    for (end = 0; end < rest->n && (number + 1 == p->most || !is_space(rest->s[end]));)
        end++;
    *part = (oct_str){ rest->s, end };
    *rest = from(*rest, end);
    return true;
}

/* s NULL: the delimiter before was the last. */
static bool next_part(const splitter *p, int64_t number, oct_str *rest, oct_str *part)
{
    if (p->spaces)
        return next_word(p, number, rest, part);
    if (!rest->s)
        return false;
    *part = *rest;
    for (size_t at = 0; number + 1 != p->most && at + p->delimiter.n <= rest->n; at++)
        if (memcmp(rest->s + at, p->delimiter.s, p->delimiter.n) == 0) {
            part->n = at;
            *rest = from(*rest, at + p->delimiter.n);
            return true;
        }
    rest->s = NULL;
    return true;
}

static int64_t count_parts(const splitter *p, oct_str s)
{
    int64_t n = 0;
    for (oct_str part; next_part(p, n, &s, &part);)
        n++;
    return n;
}

static oct_status split_exec(oct_exec *x, oct_err *err)
{
    const oct_attr *d = oct_node_attr(x->node, "delimiter");
    int64_t longest = 0, dims[OCT_MAX_RANK + 1], total, limit = oct_node_int(x->node, "maxsplit", -1);
    splitter p = { .most = limit < 0 ? -1 : limit + 1 };
    OCT_TRY(check_strings(x, 0, err));
    if (d && d->type == OCT_ATTR_STRING)
        p.delimiter = (oct_str){ d->s, d->s_len };
    p.spaces = p.delimiter.n == 0;
    const oct_datum *t = x->in[0];
    const oct_str *s = t->t.data;
    OCT_TRY(oct_datum_tensor(OCT_S64, t->t.rank, t->dims, &x->out[1], err));
    int64_t *counts = oct_datum_data(x->out[1]);
    for (int64_t i = 0; i < t->t.count; i++) {
        counts[i] = count_parts(&p, s[i]);
        longest = counts[i] > longest ? counts[i] : longest;
    }
    memcpy(dims, t->dims, (size_t)t->t.rank * sizeof *dims);
    dims[t->t.rank] = longest;
    if (!oct_count(dims, t->t.rank + 1, &total))
        return oct_nomem(err);
    making m;
    oct_status st = start(&m, total, err);
    for (int64_t i = 0; st == OCT_OK && i < t->t.count; i++) {
        oct_str rest = s[i];
        for (int64_t k = 0; k < longest; k++)
            if (k >= counts[i] || !next_part(&p, k, &rest, &m.s[i * longest + k]))
                m.s[i * longest + k] = (oct_str){ "", 0 };
    }
    if (st == OCT_OK)
        st = oct_datum_strings(t->t.rank + 1, dims, m.s, &x->out[0], err);
    oct_arena_destroy(m.arena);
    return st;
}

static oct_status split_infer(const oct_infer *c, oct_err *err)
{
    oct_shape s = oct_in_shape(c, 0);
    oct_dim d[OCT_MAX_RANK + 1];
    oct_out_dtype(c, 0, OCT_STRING);
    oct_out_dtype(c, 1, OCT_S64);
    if (s.rank < 0 || s.rank >= OCT_MAX_RANK)
        return OCT_OK;
    for (int k = 0; k < s.rank; k++)
        d[k] = s.d[k];
    d[s.rank] = (oct_dim){ -1, NULL };
    OCT_TRY(oct_out_shape(c, 0, s.rank + 1, d, err));
    return oct_out_shape(c, 1, s.rank, d, err);
}

const oct_op oct_op_string_split = {
    OCT_SCHEMA("StringSplit", "", 20, 1, 1, 2, 2),
    .infer = split_infer,
    .exec = split_exec,
};

/* ------------------------------------------------------------------ StringNormalizer */

typedef struct normalizer {
    bool sensitive, change, upper;
    oct_str *stop; /* in lower case unless sensitive */
    size_t n_stop;
} normalizer;

static oct_status read_normalizer(const oct_node *n, oct_arena *a, normalizer *z, oct_err *err)
{
    const char *action = oct_node_str(n, "case_change_action", "NONE");
    const oct_attr *stop = oct_node_attr(n, "stopwords");
    *z = (normalizer){ .sensitive = oct_node_int(n, "is_case_sensitive", 0) != 0,
                       .change = strcmp(action, "NONE") != 0,
                       .upper = strcmp(action, "UPPER") == 0 };
    if (z->change && !z->upper && strcmp(action, "LOWER") != 0)
        return oct_fail(err, OCT_EMALFORMED, "'case_change_action' is '%s'", action);
    z->n_stop = stop && stop->type == OCT_ATTR_STRINGS ? (size_t)stop->n : 0;
    if (!(z->stop = oct_arena_calloc(a, z->n_stop + 1, sizeof *z->stop)))
        return oct_nomem(err);
    for (size_t i = 0; i < z->n_stop; i++) {
        z->stop[i] = (oct_str){ stop->strings[i], strlen(stop->strings[i]) };
        if (!z->sensitive && !oct_text_cased(a, z->stop[i], false, &z->stop[i]))
            return oct_nomem(err);
    }
    return OCT_OK;
}

static oct_status is_stopped(const normalizer *z, oct_arena *a, oct_str s, bool *stopped, oct_err *err)
{
    *stopped = false;
    if (!z->sensitive && z->n_stop && !oct_text_cased(a, s, false, &s))
        return oct_nomem(err);
    for (size_t i = 0; i < z->n_stop && !*stopped; i++)
        *stopped = oct_text_same(s, z->stop[i]);
    return OCT_OK;
}

static oct_status normalize(oct_exec *x, const normalizer *z, making *m, oct_err *err)
{
    const oct_datum *t = x->in[0];
    const oct_str *s = t->t.data;
    int64_t n = 0, dims[2] = { 1, 1 };
    for (int64_t i = 0; i < t->t.count; i++) {
        bool stopped;
        OCT_TRY(is_stopped(z, m->arena, s[i], &stopped, err));
        if (stopped)
            continue;
        m->s[n] = s[i];
        if (z->change && !oct_text_cased(m->arena, s[i], z->upper, &m->s[n]))
            return oct_nomem(err);
        n++;
    }
    if (n == 0) /* nothing left is one empty string */
        m->s[n++] = (oct_str){ "", 0 };
    dims[t->t.rank - 1] = n;
    return oct_datum_strings(t->t.rank, dims, m->s, &x->out[0], err);
}

static oct_status normalizer_exec(oct_exec *x, oct_err *err)
{
    OCT_TRY(check_strings(x, 0, err));
    const oct_datum *t = x->in[0];
    if (t->t.rank < 1 || t->t.rank > 2 || (t->t.rank == 2 && t->dims[0] != 1))
        return oct_fail(err, OCT_EMALFORMED, "a tensor of strings that is neither [C] nor [1,C]");
    making m;
    normalizer z;
    oct_status s = start(&m, t->t.count, err);
    if (s == OCT_OK)
        s = read_normalizer(x->node, m.arena, &z, err);
    if (s == OCT_OK)
        s = normalize(x, &z, &m, err);
    oct_arena_destroy(m.arena);
    return s;
}

static oct_status normalizer_infer(const oct_infer *c, oct_err *err)
{
    oct_shape s = oct_in_shape(c, 0);
    oct_dim d[2] = { { 1, NULL }, { -1, NULL } };
    oct_out_dtype(c, 0, OCT_STRING);
    return s.rank == 1 || s.rank == 2 ? oct_out_shape(c, 0, s.rank, d + 2 - s.rank, err) : OCT_OK;
}

const oct_op oct_op_string_normalizer = {
    OCT_SCHEMA("StringNormalizer", "", 10, 1, 1, 1, 1),
    .infer = normalizer_infer,
    .exec = normalizer_exec,
};

/* ------------------------------------------------------------------ RegexFullMatch */

static oct_status regex_exec(oct_exec *x, oct_err *err)
{
    const oct_attr *pattern = oct_node_attr(x->node, "pattern");
    OCT_TRY(check_strings(x, 0, err));
    if (!pattern || pattern->type != OCT_ATTR_STRING)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'pattern' is missing");
    const oct_datum *t = x->in[0];
    oct_arena *a = oct_arena_create();
    oct_regex *re;
    oct_status s = a ? oct_regex_compile(a, pattern->s, pattern->s_len, &re, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = oct_datum_tensor(OCT_BOOL, t->t.rank, t->dims, &x->out[0], err);
    for (int64_t i = 0; s == OCT_OK && i < t->t.count; i++) {
        oct_str text = ((const oct_str *)t->t.data)[i];
        ((uint8_t *)oct_datum_data(x->out[0]))[i] = oct_regex_full_match(re, text.s, text.n);
    }
    oct_arena_destroy(a);
    return s;
}

static oct_status regex_infer(const oct_infer *c, oct_err *err)
{
    oct_shape s = oct_in_shape(c, 0);
    oct_out_dtype(c, 0, OCT_BOOL);
    return oct_out_shape(c, 0, s.rank, s.d, err);
}

const oct_op oct_op_regex_full_match = {
    OCT_SCHEMA("RegexFullMatch", "", 20, 1, 1, 1, 1),
    .infer = regex_infer,
    .exec = regex_exec,
};

/* ------------------------------------------------------------------ Cast */

static bool is_word(const char *s, const char *word)
{
    for (; *word; s++, word++)
        if ((*s >= 'A' && *s <= 'Z' ? *s + 32 : *s) != *word)
            return false;
    return !*s;
}

/* A number as C writes it, or an infinity or NaN by name. The whole of text counts. */
static bool read_number(const char *text, bool single, double *v)
{
    const char *name = text + (*text == '+' || *text == '-');
    char *end;
    if (is_word(name, "inf") || is_word(name, "infinity"))
        *v = INFINITY;
    else if (is_word(name, "nan"))
        *v = NAN;
    else if ((*name >= '0' && *name <= '9') || *name == '.') {
        *v = single ? (double)strtof(text, &end) : strtod(text, &end); /* both round once */
        return !*end;
    } else
        return false;
    *v = *text == '-' ? -*v : *v;
    return true;
}

static bool read_integer(const char *text, bool is_unsigned, uint64_t *bits)
{
    char *end;
    *bits = is_unsigned ? strtoull(text, &end, 10) : (uint64_t)strtoll(text, &end, 10);
    return end != text && !*end;
}

/* Element i of y from a number's text. */
static oct_status parse_element(oct_datum *y, int64_t i, const char *text, oct_err *err)
{
    const oct_dom dom = oct_dom_of(y->t.dtype);
    uint64_t bits;
    double v;
    if ((dom == OCT_DOM_I || dom == OCT_DOM_U) && read_integer(text, dom == OCT_DOM_U, &bits)) {
        oct_elem_store(y->t.dtype, oct_datum_data(y), i, 1, 1, dom, &bits);
        return OCT_OK;
    }
    if (!read_number(text, dom == OCT_DOM_F, &v))
        return oct_fail(err, OCT_EMALFORMED, "'%.60s' is not a number", text);
    if (dom == OCT_DOM_F) {
        float f = (float)v;
        oct_elem_store(y->t.dtype, oct_datum_data(y), i, 1, 1, OCT_DOM_F, &f);
    } else {
        oct_elem_store(y->t.dtype, oct_datum_data(y), i, 1, 1, OCT_DOM_D, &v);
    }
    return OCT_OK;
}

static oct_status parse_all(const oct_datum *x, oct_dtype to, oct_datum **out, oct_err *err)
{
    const oct_str *s = x->t.data;
    if (oct_dom_of(to) == OCT_DOM_NONE)
        return oct_fail(err, OCT_EUNSUPPORTED, "strings to %s", oct_dtype_name(to));
    OCT_TRY(oct_datum_tensor(to, x->t.rank, x->dims, out, err));
    for (int64_t i = 0; i < x->t.count; i++) {
        char text[400]; /* longer than any double written out */
        if (s[i].n >= sizeof text || memchr(s[i].s, 0, s[i].n))
            return oct_fail(err, OCT_EMALFORMED, "a string of %zu bytes is no number", s[i].n);
        memcpy(text, s[i].s, s[i].n);
        text[s[i].n] = 0;
        OCT_TRY(parse_element(*out, i, text, err));
    }
    return OCT_OK;
}

/* Element i of x as text, in dst[32]. */
static const char *element_text(const oct_datum *x, int64_t i, char dst[32])
{
    oct_chunk c;
    const void *v = oct_elem_load(x->t.dtype, x->t.data, i, 1, 1, &c);
    const oct_dom dom = oct_dom_of(x->t.dtype);
    double d = dom == OCT_DOM_F ? (double)*(const float *)v : dom == OCT_DOM_D ? *(const double *)v : 0;
    if (isnan(d))
        return "NaN";
    if (isinf(d))
        return d > 0 ? "INF" : "-INF";
    if (dom == OCT_DOM_F)
        return oct_f32_text(dst, *(const float *)v);
    if (dom == OCT_DOM_D)
        return oct_f64_text(dst, d);
    if (dom == OCT_DOM_U)
        snprintf(dst, 32, "%llu", (unsigned long long)*(const uint64_t *)v);
    else
        snprintf(dst, 32, "%lld", (long long)*(const int64_t *)v);
    return dst;
}

static oct_status write_all(const oct_datum *x, making *m, oct_datum **out, oct_err *err)
{
    for (int64_t i = 0; i < x->t.count; i++) {
        char dst[32];
        const char *text = oct_arena_strdup(m->arena, element_text(x, i, dst));
        if (!text)
            return oct_nomem(err);
        m->s[i] = (oct_str){ text, strlen(text) };
    }
    return oct_datum_strings(x->t.rank, x->dims, m->s, out, err);
}

oct_status oct_strings_cast(oct_exec *x, oct_err *err)
{
    const oct_datum *in = x->in[0];
    bool like = strcmp(x->node->op, "CastLike") == 0;
    if (in->kind != OCT_DATUM_TENSOR || (like && x->in[1]->kind != OCT_DATUM_TENSOR))
        return oct_fail(err, OCT_EMALFORMED, "an input is no tensor");
    oct_dtype to = like ? x->in[1]->t.dtype : (oct_dtype)oct_node_int(x->node, "to", 0);
    if (in->t.dtype == to) {
        x->out[0] = oct_datum_ref(x->in[0]);
        return OCT_OK;
    }
    if (to != OCT_STRING)
        return parse_all(in, to, &x->out[0], err);
    if (oct_dom_of(in->t.dtype) == OCT_DOM_NONE)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s to strings", oct_dtype_name(in->t.dtype));
    making m;
    oct_status s = start(&m, in->t.count, err);
    if (s == OCT_OK)
        s = write_all(in, &m, &x->out[0], err);
    oct_arena_destroy(m.arena);
    return s;
}
