/* lib/observers/calib_read.c -- reads calibration tables from bytes that may be anything. */
#include "observers/calib.h"
#include "observers/calib_digits.h"

#include "base/io.h"
#include "base/mem.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MAX_TEXT ((size_t)512 << 20)    /* unpacked */
#define MAX_BINS (2 * (8176 + 8 * 245)) /* every octave in use */

typedef struct reader {
    const char *label;
    const char *p, *end;     /* what is left of the line */
    const char *line, *next; /* where the line begins, and where the next one does */
    const char *limit;
    size_t number;
    oct_calib *c;
    bool has_model, has_preprocess, has_samples, ended;
    oct_calib_tensor *t; /* the tensor that lines with a leading space belong to */
    size_t t_line;
    bool any_octave;
    int last_octave[2], rank[2];
    bool used[512];
    size_t n_staged;
    size_t chan_next;
    uint64_t total;
    uint64_t staged[MAX_BINS]; /* counts of the octaves in the order read */
} reader;

static void fault_at(const reader *r, const char *p, oct_err *err, const char *fmt, ...) OCT_PRINTF(4, 5);
static void fault_at(const reader *r, const char *p, oct_err *err, const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    oct_fail(err, OCT_EMALFORMED, "%s:%zu:%zu: %s", r->label, r->number, (size_t)(p - r->line) + 1, text);
}
/* A macro, so that static analysis sees that it is never OCT_OK. */
#define bad_at(...) (fault_at(__VA_ARGS__), OCT_EMALFORMED)

static bool next_line(reader *r)
{
    if (r->next >= r->limit)
        return false;
    const char *nl = memchr(r->next, '\n', (size_t)(r->limit - r->next));
    r->line = r->p = r->next;
    r->end = nl ? nl : r->limit;
    r->next = nl ? nl + 1 : r->limit;
    if (r->end > r->p && r->end[-1] == '\r') /* edited on another system */
        r->end--;
    r->number++;
    return true;
}

static void skip_blanks(reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t'))
        r->p++;
}

/* The next run of characters up to a blank; *n is 0 at the end of the line. */
static const char *word(reader *r, size_t *n)
{
    skip_blanks(r);
    const char *from = r->p;
    while (r->p < r->end && *r->p != ' ' && *r->p != '\t')
        r->p++;
    *n = (size_t)(r->p - from);
    return from;
}

static bool is_word(const char *w, size_t n, const char *s)
{
    return n == strlen(s) && memcmp(w, s, n) == 0;
}

static oct_status expect_word(reader *r, const char *s, oct_err *err)
{
    size_t n;
    const char *w = word(r, &n);
    return is_word(w, n, s) ? OCT_OK : bad_at(r, w, err, "expected '%s'", s);
}

static oct_status expect_end(reader *r, oct_err *err)
{
    size_t n;
    const char *w = word(r, &n);
    return n == 0 || *w == '#' ? OCT_OK : bad_at(r, w, err, "unexpected text at the end of the line");
}

static bool decimal(const char *w, size_t n, uint64_t max, uint64_t *v)
{
    *v = 0;
    for (size_t i = 0; i < n; i++) {
        if (w[i] < '0' || w[i] > '9' || *v > (UINT64_MAX - 9) / 10)
            return false;
        *v = *v * 10 + (uint64_t)(w[i] - '0');
    }
    return n > 0 && *v <= max;
}

static oct_status read_u64(reader *r, uint64_t max, uint64_t *v, oct_err *err)
{
    size_t n;
    const char *w = word(r, &n);
    return decimal(w, n, max, v) ? OCT_OK
                                 : bad_at(r, w, err, "expected a whole number up to %llu", (unsigned long long)max);
}

static oct_status read_f32(reader *r, float *v, oct_err *err)
{
    size_t n;
    const char *w = word(r, &n);
    char text[64], *stop;
    if (n == 0 || n >= sizeof text)
        return bad_at(r, w, err, "expected a number");
    memcpy(text, w, n);
    text[n] = 0;
    *v = strtof(text, &stop) + 0.0f;
    if (stop != text + n || !isfinite(*v) || strpbrk(text, "xXnN"))
        return bad_at(r, w, err, "expected a finite decimal number");
    return OCT_OK;
}

static oct_status read_sum(reader *r, oct_xsum *s, oct_err *err)
{
    size_t n;
    const char *w = word(r, &n);
    return oct_xsum_parse(s, w, n) ? OCT_OK : bad_at(r, w, err, "expected an exact sum such as -1a2bp-24");
}

static int hex_value(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* The character of an escape after a backslash; -1: it is not one. */
static int unescape(reader *r)
{
    if (r->p < r->end && (*r->p == '"' || *r->p == '\\'))
        return (unsigned char)*r->p++;
    if (r->end - r->p < 3 || *r->p != 'x' || hex_value(r->p[1]) < 0 || hex_value(r->p[2]) < 0)
        return -1;
    int v = hex_value(r->p[1]) * 16 + hex_value(r->p[2]);
    r->p += 3;
    return v > 0 ? v : -1;
}

/* Reads a quoted text. Release it with oct_free. */
static oct_status read_quoted(reader *r, char **out, oct_err *err)
{
    skip_blanks(r);
    const char *from = r->p;
    if (r->p >= r->end || *r->p != '"')
        return bad_at(r, r->p, err, "expected a text in double quotes");
    r->p++;
    char *s = oct_alloc((size_t)(r->end - r->p) + 1);
    size_t n = 0;
    if (!s)
        return oct_nomem(err);
    while (r->p < r->end && *r->p != '"') {
        int c = (unsigned char)*r->p++;
        if (c == '\\')
            c = unescape(r);
        if (c <= 0) {
            oct_free(s);
            return bad_at(r, r->p, err, "bad escape or NUL in a text");
        }
        s[n++] = (char)c;
    }
    s[n] = 0;
    if (r->p >= r->end) {
        oct_free(s);
        return bad_at(r, from, err, "the text's closing quote is missing");
    }
    r->p++;
    *out = s;
    return OCT_OK;
}

/* ---- what belongs to a tensor ---- */

static int digit(const char *alphabet, char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

static bool read_count(const char **p, const char *end, uint64_t *v)
{
    *v = 0;
    while (*p < end) {
        char c = *(*p)++;
        int last = digit(OCT_DIGITS_LAST, c), more = digit(OCT_DIGITS_MORE, c);
        if ((last < 0 && more < 0) || *v >> 59)
            return false;
        *v = *v << 5 | (uint64_t)(last >= 0 ? last : more);
        if (last >= 0)
            return true;
    }
    return false;
}

/* Reads the counts of an octave of n bins into v, which must be zeroed. Their sum is added to r->total. */
static oct_status read_counts(reader *r, uint64_t *v, size_t n, oct_err *err)
{
    size_t len, i = 0;
    const char *w = word(r, &len), *p = w, *end = w + len;
    bool any = false;
    while (p < end) {
        const char *at = p;
        bool run = *p == '.';
        uint64_t c;
        p += run;
        if (!read_count(&p, end, &c))
            return bad_at(r, at, err, "bad digit in a histogram");
        if (run ? c > n - i : i >= n)
            return bad_at(r, at, err, "more than the %zu bins of this octave", n);
        if (run) {
            i += (size_t)c;
            continue;
        }
        v[i++] = c;
        any |= c != 0;
        if (__builtin_add_overflow(r->total, c, &r->total))
            return bad_at(r, at, err, "the counts overflow");
    }
    return any ? OCT_OK : bad_at(r, w, err, "an octave without values");
}

static oct_status read_octave(reader *r, int sign, oct_err *err)
{
    size_t n;
    const char *w = word(r, &n);
    bool minus = n && *w == '-';
    uint64_t e;
    if (!decimal(w + minus, n - minus, 127, &e))
        return bad_at(r, w, err, "expected an exponent from -127 to 127");
    int exponent = 127 + (minus ? -(int)e : (int)e);
    if (exponent >= r->last_octave[sign] || (!sign && r->last_octave[1] < 255))
        return bad_at(r, w, err, "octaves must come by sign, + first, from the largest exponent down");
    r->last_octave[sign] = exponent;
    int bits = 13 - r->rank[sign]++;
    bits = bits > OCT_STATS_BITS_MAX ? OCT_STATS_BITS_MAX : bits < OCT_STATS_BITS_MIN ? OCT_STATS_BITS_MIN : bits;
    size_t bins = (size_t)1 << bits;
    uint64_t *v = r->staged + r->n_staged;
    memset(v, 0, bins * sizeof *v);
    OCT_TRY(read_counts(r, v, bins, err));
    r->n_staged += bins;
    r->used[sign * 256 + exponent] = true;
    r->any_octave = true;
    return expect_end(r, err);
}

static oct_status read_channels(reader *r, oct_err *err)
{
    uint64_t n;
    const char *at = r->p;
    if (r->t->chan.channels)
        return bad_at(r, at, err, "a second 'channels' line");
    OCT_TRY(read_u64(r, UINT32_MAX, &n, err));
    /* Each channel takes a line, so the rest of the file limits their number. */
    if (n == 0 || n > (uint64_t)(r->limit - r->line) / 12)
        return bad_at(r, at, err, "%llu channels do not fit into the file", (unsigned long long)n);
    r->chan_next = 0;
    OCT_TRY(expect_end(r, err));
    return oct_chan_init(&r->t->chan, (size_t)n, err);
}

static oct_status read_chan(reader *r, oct_err *err)
{
    uint64_t i;
    const char *at = r->p;
    oct_chan_stats *s = &r->t->chan;
    OCT_TRY(read_u64(r, UINT32_MAX, &i, err));
    if (i != r->chan_next || i >= s->channels)
        return bad_at(r, at, err, "channels must be listed in order, below the number announced");
    oct_chan *c = &s->c[r->chan_next++];
    OCT_TRY(read_u64(r, UINT64_MAX, &c->n, err));
    OCT_TRY(read_f32(r, &c->min, err));
    OCT_TRY(read_f32(r, &c->max, err));
    OCT_TRY(read_sum(r, &c->sum, err));
    if (c->min > c->max || (c->n == 0 && (c->min != 0 || c->max != 0)))
        return bad_at(r, at, err, "the channel's range does not fit its count");
    return expect_end(r, err);
}

/* ---- a tensor as a whole ---- */

static void place(const reader *r, oct_stats *s)
{
    size_t at = 0;
    for (int sign = 0; sign < 2; sign++)
        for (int e = 254; e >= 0; e--) {
            int o = sign * 256 + e;
            if (!s->used[o])
                continue;
            size_t n = (size_t)1 << (23 - s->octave[o].shift);
            for (size_t i = 0; i < n; i++)
                oct_stats_set_count(s, s->octave[o].off + i, r->staged[at++]);
        }
}

static size_t n_filled(const reader *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_staged; i++)
        n += r->staged[i] != 0;
    return n;
}

static bool holds(oct_bin b, float v, uint64_t count)
{
    bool in = b.lo == b.hi ? v == 0 : b.lo < 0 ? v > b.lo && v <= b.hi : v >= b.lo && v < b.hi;
    return in && count >= 1 && count <= b.count;
}

/* Whether the extremes lie in the outermost bins that are not empty. The choice of ranges relies on this. */
static bool agrees(const oct_stats *s)
{
    if (oct_stats_finite(s) == 0)
        return s->min == 0 && s->max == 0 && s->min_count == 0 && s->max_count == 0 && s->samples == 0;
    size_t at = 0;
    oct_bin b = { 0 };
    if (!oct_stats_next(s, &at, &b) || !holds(b, s->min, s->min_count))
        return false;
    while (oct_stats_next(s, &at, &b))
        ;
    return holds(b, s->max, s->max_count) && s->samples >= 1 && s->samples <= s->n;
}

/* Completes a tensor after its last line. */
static oct_status finish_tensor(reader *r, oct_err *err)
{
    oct_calib_tensor *t = r->t;
    if (!t)
        return OCT_OK;
    r->t = NULL;
    oct_stats *s = &t->stats;
    if (t->off && !r->any_octave && t->chan.channels == 0) {
        oct_stats_init(s); /* all its lines are commented out, so that only the name is known */
        return OCT_OK;
    }
    uint64_t rest = 0;
    bool fits = !__builtin_add_overflow(r->total, s->zeros, &rest) && !__builtin_add_overflow(rest, s->inf[0], &rest) &&
                !__builtin_add_overflow(rest, s->inf[1], &rest) && rest == s->n;
    if (!fits)
        return oct_fail(err, OCT_EMALFORMED,
                        "%s:%zu:1: tensor '%s': n is not the sum of zeros, infinities and the histogram's counts",
                        r->label, r->t_line, t->name);
    if (r->chan_next != t->chan.channels)
        return oct_fail(err, OCT_EMALFORMED, "%s:%zu:1: tensor '%s': %zu of %zu channels", r->label, r->t_line, t->name,
                        r->chan_next, t->chan.channels);
    OCT_TRY(oct_stats_room(s, s->n, err));
    if (s->n)
        OCT_TRY(oct_stats_layout(s, r->used, n_filled(r), err));
    if (r->any_octave)
        place(r, s);
    if (!agrees(s))
        return oct_fail(err, OCT_EMALFORMED, "%s:%zu:1: tensor '%s': min, max and avg do not fit the histogram",
                        r->label, r->t_line, t->name);
    return OCT_OK;
}

/* Reads "as u8 SCALE ZERO", or nothing. */
static oct_status read_exact(reader *r, oct_calib_exact *x, oct_err *err)
{
    size_t n;
    const char *w = word(r, &n), *at;
    uint64_t zero;
    if (n == 0 || *w == '#')
        return OCT_OK;
    if (!is_word(w, n, "as"))
        return bad_at(r, w, err, "expected 'as TYPE SCALE ZERO' or the end of the line");
    w = word(r, &n);
    x->bits = is_word(w, n, "u8") ? 8 : is_word(w, n, "u16") ? 16 : 0;
    if (!x->bits)
        return bad_at(r, w, err, "expected 'u8' or 'u16'");
    skip_blanks(r);
    at = r->p;
    OCT_TRY(read_f32(r, &x->scale, err));
    if (!(x->scale >= FLT_MIN))
        return bad_at(r, at, err, "a scale must be positive, and not denormal");
    OCT_TRY(read_u64(r, (1u << x->bits) - 1, &zero, err));
    x->zero = (int32_t)zero;
    return expect_end(r, err);
}

static oct_status read_pin(reader *r, oct_calib_tensor *t, oct_err *err)
{
    size_t n;
    skip_blanks(r);
    const char *at = r->p, *w = word(r, &n);
    if (n == 0 || *w == '#')
        return OCT_OK;
    if (!is_word(w, n, "pin"))
        return bad_at(r, w, err, "expected 'pin LO HI' or the end of the line");
    OCT_TRY(read_f32(r, &t->pin.lo, err));
    OCT_TRY(read_f32(r, &t->pin.hi, err));
    if (!(t->pin.lo <= 0 && t->pin.hi >= 0))
        return bad_at(r, at, err, "a pinned range must include 0");
    t->pinned = true;
    return read_exact(r, &t->exact, err);
}

static oct_status read_stats(reader *r, oct_stats *s, oct_err *err)
{
    OCT_TRY(expect_word(r, "n", err));
    OCT_TRY(read_u64(r, UINT64_MAX, &s->n, err));
    OCT_TRY(expect_word(r, "zeros", err));
    OCT_TRY(read_u64(r, UINT64_MAX, &s->zeros, err));
    OCT_TRY(expect_word(r, "inf", err));
    OCT_TRY(read_u64(r, UINT64_MAX, &s->inf[0], err));
    OCT_TRY(read_u64(r, UINT64_MAX, &s->inf[1], err));
    OCT_TRY(expect_word(r, "min", err));
    OCT_TRY(read_f32(r, &s->min, err));
    OCT_TRY(read_u64(r, UINT64_MAX, &s->min_count, err));
    OCT_TRY(expect_word(r, "max", err));
    OCT_TRY(read_f32(r, &s->max, err));
    OCT_TRY(read_u64(r, UINT64_MAX, &s->max_count, err));
    OCT_TRY(expect_word(r, "avg", err));
    OCT_TRY(read_u64(r, UINT64_MAX, &s->samples, err));
    OCT_TRY(read_sum(r, &s->min_sum, err));
    return read_sum(r, &s->max_sum, err);
}

static oct_status read_tensor(reader *r, bool off, oct_err *err)
{
    char *name;
    skip_blanks(r);
    const char *at = r->p;
    OCT_TRY(read_quoted(r, &name, err));
    oct_calib_tensor *t = NULL;
    oct_status st = oct_calib_find(r->c, name) ? bad_at(r, at, err, "tensor '%.200s' occurs twice", name)
                                               : oct_calib_add(r->c, name, &t, err);
    oct_free(name);
    OCT_TRY(st);
    t->off = off;
    OCT_TRY(read_stats(r, &t->stats, err));
    OCT_TRY(read_pin(r, t, err));
    r->t = t;
    r->t_line = r->number;
    r->any_octave = false;
    r->n_staged = r->chan_next = 0;
    r->total = 0;
    r->last_octave[0] = r->last_octave[1] = 255;
    r->rank[0] = r->rank[1] = 0;
    memset(r->used, 0, sizeof r->used);
    return OCT_OK;
}

/* ---- the head ---- */

static oct_status once(reader *r, bool *seen, const char *what, oct_err *err)
{
    if (*seen)
        return bad_at(r, r->line, err, "a second '%s' line", what);
    *seen = true;
    return OCT_OK;
}

static oct_status read_hash(reader *r, uint64_t *hash, oct_err *err)
{
    size_t n;
    const char *w = word(r, &n);
    bool hex = n == 16;
    *hash = 0;
    for (size_t i = 0; hex && i < n; i++) {
        hex = hex_value(w[i]) >= 0;
        *hash = *hash << 4 | (uint64_t)(hex_value(w[i]) & 15);
    }
    return hex ? OCT_OK : bad_at(r, w, err, "expected 16 hexadecimal digits");
}

static oct_status read_model(reader *r, oct_err *err)
{
    OCT_TRY(once(r, &r->has_model, "model", err));
    char *text;
    OCT_TRY(read_quoted(r, &text, err));
    uint64_t hash;
    oct_status st = read_hash(r, &hash, err);
    if (st == OCT_OK)
        st = oct_calib_set_model(r->c, text, hash, err);
    oct_free(text);
    OCT_TRY(st);
    return expect_end(r, err);
}

static oct_status read_preprocess(reader *r, oct_err *err)
{
    OCT_TRY(once(r, &r->has_preprocess, "preprocess", err));
    char *text;
    OCT_TRY(read_quoted(r, &text, err));
    oct_status st = oct_calib_set_preprocess(r->c, text, err);
    oct_free(text);
    OCT_TRY(st);
    return expect_end(r, err);
}

static oct_status read_samples(reader *r, oct_err *err)
{
    OCT_TRY(once(r, &r->has_samples, "samples", err));
    OCT_TRY(read_u64(r, UINT64_MAX, &r->c->samples, err));
    return expect_end(r, err);
}

/* What a part is compared by, if it is there. */
static oct_status read_mark(reader *r, oct_calib_shard *mark, oct_err *err)
{
    skip_blanks(r);
    if (r->p == r->end)
        return OCT_OK;
    OCT_TRY(expect_word(r, "of", err));
    OCT_TRY(read_hash(r, &mark->samples, err));
    return read_hash(r, &mark->files, err);
}

static oct_status read_shard(reader *r, oct_err *err)
{
    char *set;
    OCT_TRY(read_quoted(r, &set, err));
    size_t n;
    const char *w = word(r, &n), *slash = n ? memchr(w, '/', n) : NULL;
    uint64_t i = 0, count = 0;
    oct_err why = OCT_ERR_INIT;
    oct_status st;
    if (!slash || !decimal(w, (size_t)(slash - w), UINT32_MAX, &i) ||
        !decimal(slash + 1, n - (size_t)(slash + 1 - w), UINT32_MAX, &count))
        st = bad_at(r, w, err, "expected a shard such as 0/4");
    else {
        st = oct_calib_add_shard(r->c, set, (uint32_t)i, (uint32_t)count, &why);
        if (st != OCT_OK)
            st = st == OCT_ENOMEM ? oct_nomem(err) : bad_at(r, w, err, "%s", why.text);
    }
    oct_calib_shard mark = { .set = set, .index = (uint32_t)i, .count = (uint32_t)count };
    if (st == OCT_OK)
        st = read_mark(r, &mark, err);
    if (st == OCT_OK)
        oct_calib_mark_shard(r->c, &mark);
    oct_free(set);
    OCT_TRY(st);
    return expect_end(r, err);
}

static oct_status read_version(reader *r, oct_err *err)
{
    size_t n;
    if (!next_line(r))
        return oct_fail(err, OCT_EMALFORMED, "%s: an empty file is not a calibration table", r->label);
    const char *w = word(r, &n);
    if (!is_word(w, n, "octet-calibration")) {
        fault_at(r, w, err, "not a calibration table: the first line must be 'octet-calibration 1'");
        oct_hint(err, "'qcalib import' makes a table from ranges that another tool has found");
        return OCT_EMALFORMED;
    }
    w = word(r, &n);
    uint64_t version;
    if (!decimal(w, n, UINT32_MAX, &version))
        return bad_at(r, w, err, "expected the version of the format");
    if (version != 1)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s: calibration table of version %llu; this program reads version 1",
                        r->label, (unsigned long long)version);
    return expect_end(r, err);
}

static oct_status read_part(reader *r, oct_err *err)
{
    size_t n;
    const char *w = word(r, &n);
    if (n == 0 || *w == '#')
        return OCT_OK;
    if (!r->t)
        return bad_at(r, w, err, "a line that begins with a space belongs to a tensor, but there is none above");
    if (is_word(w, n, "+"))
        return read_octave(r, 0, err);
    if (is_word(w, n, "-"))
        return read_octave(r, 1, err);
    if (is_word(w, n, "channels"))
        return read_channels(r, err);
    if (is_word(w, n, "chan"))
        return read_chan(r, err);
    return bad_at(r, w, err, "expected '+', '-', 'channels' or 'chan'");
}

/* Whether a tensor's line is commented out: "#tensor" or "# tensor", and a quote. If so, r->p is then at the name. */
static bool is_commented_tensor(reader *r)
{
    const char *from = r->p;
    size_t n;
    r->p++;
    const char *w = word(r, &n);
    skip_blanks(r);
    if (is_word(w, n, "tensor") && r->p < r->end && *r->p == '"')
        return true;
    r->p = from;
    return false;
}

static oct_status read_line(reader *r, oct_err *err)
{
    if (r->p == r->end)
        return OCT_OK;
    if (*r->p == ' ' || *r->p == '\t')
        return read_part(r, err);
    bool off = *r->p == '#';
    if (off && !is_commented_tensor(r))
        return OCT_OK;
    OCT_TRY(finish_tensor(r, err));
    if (r->ended)
        return bad_at(r, r->line, err, "text behind the 'end' line");
    if (off)
        return read_tensor(r, true, err);
    size_t n;
    const char *w = word(r, &n);
    if (is_word(w, n, "tensor"))
        return read_tensor(r, false, err);
    if (is_word(w, n, "model"))
        return read_model(r, err);
    if (is_word(w, n, "preprocess"))
        return read_preprocess(r, err);
    if (is_word(w, n, "samples"))
        return read_samples(r, err);
    if (is_word(w, n, "shard"))
        return read_shard(r, err);
    if (is_word(w, n, "end")) {
        r->ended = true;
        return expect_end(r, err);
    }
    return bad_at(r, w, err, "expected 'model', 'preprocess', 'samples', 'shard', 'tensor' or 'end'");
}

static oct_status read_all_lines(reader *r, oct_err *err)
{
    OCT_TRY(read_version(r, err));
    while (next_line(r))
        OCT_TRY(read_line(r, err));
    OCT_TRY(finish_tensor(r, err));
    if (!r->has_model)
        return oct_fail(err, OCT_EMALFORMED, "%s: the 'model' line is missing", r->label);
    if (!r->ended)
        return oct_fail(err, OCT_EMALFORMED, "%s: the 'end' line is missing: the file was cut short", r->label);
    return OCT_OK;
}

static oct_status parse_text(const char *text, size_t size, const char *label, oct_calib **out, oct_err *err)
{
    reader *r = oct_calloc(1, sizeof *r);
    if (!r)
        return oct_nomem(err);
    r->label = label;
    r->next = r->line = text;
    r->limit = text + size;
    r->c = oct_calib_create();
    oct_status st = r->c ? read_all_lines(r, err) : oct_nomem(err);
    if (st == OCT_OK)
        *out = r->c;
    else
        oct_calib_destroy(r->c);
    oct_free(r);
    return st;
}

/* ---- gzip ---- */

static oct_status inflate_all(z_stream *z, const char *label, char **text, size_t *size, oct_err *err)
{
    size_t cap = 0, used = 0;
    char *v = NULL;
    for (int rc = Z_OK;;) {
        if (used == cap) {
            size_t more = cap ? cap * 2 : 1 << 16;
            char *p = more <= MAX_TEXT ? oct_realloc(v, cap, more) : NULL;
            if (!p) {
                oct_free(v);
                return more <= MAX_TEXT
                           ? oct_nomem(err)
                           : oct_fail(err, OCT_EMALFORMED, "%s: unpacks to more than %zu MiB", label, MAX_TEXT >> 20);
            }
            v = p;
            cap = more;
        }
        z->next_out = (Bytef *)v + used;
        z->avail_out = (uInt)(cap - used);
        rc = inflate(z, Z_NO_FLUSH);
        used = cap - z->avail_out;
        if (rc == Z_STREAM_END && z->avail_in > 0)
            rc = inflateReset(z); /* a file may have several members */
        else if (rc == Z_STREAM_END)
            break;
        if (rc == Z_OK || (rc == Z_BUF_ERROR && z->avail_out == 0))
            continue;
        oct_free(v);
        return rc == Z_MEM_ERROR ? oct_nomem(err)
                                 : oct_fail(err, OCT_EMALFORMED, "%s: damaged or cut short gzip data", label);
    }
    *text = v;
    *size = used;
    return OCT_OK;
}

static oct_status parse_gzip(const void *data, size_t size, const char *label, oct_calib **out, oct_err *err)
{
    z_stream z = { .next_in = (Bytef *)data, .avail_in = (uInt)size };
    if (size > UINT32_MAX / 2)
        return oct_fail(err, OCT_EMALFORMED, "%s: too large for a calibration table", label);
    if (inflateInit2(&z, 15 + 16) != Z_OK)
        return oct_nomem(err);
    char *text = NULL;
    oct_status st = inflate_all(&z, label, &text, &size, err);
    inflateEnd(&z);
    if (st != OCT_OK)
        return st;
    st = parse_text(text, size, label, out, err);
    oct_free(text);
    return st;
}

oct_status oct_calib_parse(const void *data, size_t size, const char *label, oct_calib **out, oct_err *err)
{
    const uint8_t *b = data;
    if (size >= 2 && b[0] == 0x1f && b[1] == 0x8b)
        return parse_gzip(data, size, label, out, err);
    return parse_text(size ? data : "", size, label, out, err);
}

oct_status oct_calib_load(const char *path, oct_calib **out, oct_err *err)
{
    if (strcmp(path, "-") == 0) {
        char *data;
        size_t size;
        OCT_TRY(oct_read_all(path, MAX_TEXT, &data, &size, err));
        oct_status st = oct_calib_parse(data, size, "standard input", out, err);
        oct_free(data);
        return st;
    }
    oct_map m;
    OCT_TRY(oct_map_open(&m, path, err));
    oct_status st = oct_calib_parse(m.data, m.size, path, out, err);
    oct_map_close(&m);
    return st;
}
