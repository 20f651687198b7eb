/* lib/observers/calib_read.c -- reads calibration tables from bytes that may be anything. */
#include "observers/calib.h"
#include "observers/calib_digits.h"

#include "base/io.h"
#include "base/words.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <zlib.h>

#define MAX_TEXT ((size_t)512 << 20)    /* unpacked */
#define MAX_BINS (2 * (8176 + 8 * 245)) /* every octave in use */

typedef struct reader {
    oct_words w;
    oct_calib *c;
    bool ended;
    oct_calib_tensor *t; /* the tensor that lines with a leading space belong to */
    oct_words t_line;    /* where its line begins */
    bool any_octave;
    int last_octave[2], rank[2];
    bool used[512];
    size_t n_staged;
    size_t chan_next;
    uint64_t total;
    uint64_t staged[MAX_BINS]; /* counts of the octaves in the order read */
} reader;

static oct_status read_sum(oct_words *w, oct_xsum *s, oct_err *err)
{
    const oct_word word = oct_words_take(w);
    return oct_xsum_parse(s, word.at, word.n)
               ? OCT_OK
               : oct_words_fault(w, word.at, err, "an exact sum such as -1a2bp-24 is expected");
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
    const oct_word word = oct_words_take(&r->w);
    const char *p = word.at, *end = p + word.n;
    size_t i = 0;
    bool any = false;
    while (p < end) {
        const char *at = p;
        bool run = *p == '.';
        uint64_t c;
        p += run;
        if (!read_count(&p, end, &c))
            return oct_words_fault(&r->w, at, err, "bad digit in a histogram");
        if (run ? c > n - i : i >= n)
            return oct_words_fault(&r->w, at, err, "more than the %zu bins of this octave", n);
        if (run) {
            i += (size_t)c;
            continue;
        }
        v[i++] = c;
        any |= c != 0;
        if (__builtin_add_overflow(r->total, c, &r->total))
            return oct_words_fault(&r->w, at, err, "the counts overflow");
    }
    return any ? OCT_OK : oct_words_fault(&r->w, word.at, err, "an octave without values");
}

static oct_status read_octave(reader *r, int sign, oct_err *err)
{
    const oct_word word = oct_words_take(&r->w);
    const bool minus = word.n && *word.at == '-';
    uint64_t e;
    if (!oct_word_count((oct_word){ word.at + minus, word.n - minus }, 127, &e))
        return oct_words_fault(&r->w, word.at, err, "an exponent from -127 to 127 is expected");
    const int exponent = 127 + (minus ? -(int)e : (int)e);
    if (exponent >= r->last_octave[sign] || (!sign && r->last_octave[1] < 255))
        return oct_words_fault(&r->w, word.at, err,
                               "octaves must come by sign, + first, from the largest exponent down");
    r->last_octave[sign] = exponent;
    int bits = 13 - r->rank[sign]++;
    bits = bits > OCT_STATS_BITS_MAX ? OCT_STATS_BITS_MAX : bits < OCT_STATS_BITS_MIN ? OCT_STATS_BITS_MIN : bits;
    const size_t bins = (size_t)1 << bits;
    uint64_t *v = r->staged + r->n_staged;
    memset(v, 0, bins * sizeof *v);
    OCT_TRY(read_counts(r, v, bins, err));
    r->n_staged += bins;
    r->used[sign * 256 + exponent] = true;
    r->any_octave = true;
    return OCT_OK;
}

static oct_status read_positive(oct_words *w, void *self, oct_err *err)
{
    return read_octave(self, 0, err);
}

static oct_status read_negative(oct_words *w, void *self, oct_err *err)
{
    return read_octave(self, 1, err);
}

static oct_status read_channels(oct_words *w, void *self, oct_err *err)
{
    reader *r = self;
    uint64_t n;
    oct_words_skip(w);
    const char *at = w->at;
    if (r->t->chan.channels)
        return oct_words_fault(w, w->line, err, "a second 'channels' line");
    OCT_TRY(oct_words_count(w, UINT32_MAX, &n, err));
    /* Each channel takes a line, so the rest of the file limits their number. */
    if (n == 0 || n > (uint64_t)(w->limit - w->line) / 12)
        return oct_words_fault(w, at, err, "%llu channels do not fit into the file", (unsigned long long)n);
    r->chan_next = 0;
    return oct_chan_init(&r->t->chan, (size_t)n, err);
}

static oct_status read_chan(oct_words *w, void *self, oct_err *err)
{
    reader *r = self;
    oct_chan_stats *s = &r->t->chan;
    uint64_t i;
    oct_words_skip(w);
    const char *at = w->at;
    OCT_TRY(oct_words_count(w, UINT32_MAX, &i, err));
    if (i != r->chan_next || i >= s->channels)
        return oct_words_fault(w, at, err, "channels must be listed in order, below the number announced");
    oct_chan *c = &s->c[r->chan_next++];
    OCT_TRY(oct_words_count(w, UINT64_MAX, &c->n, err));
    OCT_TRY(oct_words_f32(w, &c->min, err));
    OCT_TRY(oct_words_f32(w, &c->max, err));
    OCT_TRY(read_sum(w, &c->sum, err));
    if (c->min > c->max || (c->n == 0 && (c->min != 0 || c->max != 0)))
        return oct_words_fault(w, at, err, "the channel's range does not fit its count");
    return OCT_OK;
}

static const oct_words_key parts[] = {
    { "+", .read = read_positive },
    { "-", .read = read_negative },
    { "channels", .read = read_channels },
    { "chan", .read = read_chan },
};

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
        return oct_words_fault(&r->t_line, r->t_line.line, err,
                               "tensor '%.200s': n is not the sum of zeros, infinities and the histogram's counts",
                               t->name);
    if (r->chan_next != t->chan.channels)
        return oct_words_fault(&r->t_line, r->t_line.line, err, "tensor '%.200s': %zu of %zu channels", t->name,
                               r->chan_next, t->chan.channels);
    OCT_TRY(oct_stats_room(s, s->n, err));
    if (s->n)
        OCT_TRY(oct_stats_layout(s, r->used, n_filled(r), err));
    if (r->any_octave)
        place(r, s);
    if (!agrees(s))
        return oct_words_fault(&r->t_line, r->t_line.line, err,
                               "tensor '%.200s': min, max and avg do not fit the histogram", t->name);
    return OCT_OK;
}

/* Reads "as u8 SCALE ZERO", or nothing. */
static oct_status read_exact(oct_words *w, oct_calib_exact *x, oct_err *err)
{
    static const char *const types[] = { "u8", "u16" };
    uint64_t zero;
    size_t i;
    if (oct_words_done(w))
        return OCT_OK;
    const oct_word word = oct_words_take(w);
    if (!oct_word_is(word, "as"))
        return oct_words_fault(w, word.at, err, "'as TYPE SCALE ZERO' or the end of the line is expected");
    OCT_TRY(OCT_WORDS_ONE_OF(w, "type", types, &i, err));
    x->bits = i ? 16 : 8;
    oct_words_skip(w);
    const char *at = w->at;
    OCT_TRY(oct_words_f32(w, &x->scale, err));
    if (!(x->scale >= FLT_MIN))
        return oct_words_fault(w, at, err, "a scale must be positive, and not denormal");
    OCT_TRY(oct_words_count(w, (1u << x->bits) - 1, &zero, err));
    x->zero = (int32_t)zero;
    return OCT_OK;
}

static oct_status read_pin(oct_words *w, oct_calib_tensor *t, oct_err *err)
{
    if (oct_words_done(w))
        return OCT_OK;
    const oct_word word = oct_words_take(w);
    if (!oct_word_is(word, "pin"))
        return oct_words_fault(w, word.at, err, "'pin LO HI' or the end of the line is expected");
    OCT_TRY(oct_words_f32(w, &t->pin.lo, err));
    OCT_TRY(oct_words_f32(w, &t->pin.hi, err));
    if (!(t->pin.lo <= 0 && t->pin.hi >= 0))
        return oct_words_fault(w, word.at, err, "a pinned range must include 0");
    t->pinned = true;
    return read_exact(w, &t->exact, err);
}

/* Counts behind a word. */
static oct_status read_named(oct_words *w, const char *word, uint64_t *a, uint64_t *b, oct_err *err)
{
    OCT_TRY(oct_words_expect(w, word, err));
    OCT_TRY(oct_words_count(w, UINT64_MAX, a, err));
    return b ? oct_words_count(w, UINT64_MAX, b, err) : OCT_OK;
}

/* An extreme and its count. */
static oct_status read_extreme(oct_words *w, const char *word, float *v, uint64_t *n, oct_err *err)
{
    OCT_TRY(oct_words_expect(w, word, err));
    OCT_TRY(oct_words_f32(w, v, err));
    return oct_words_count(w, UINT64_MAX, n, err);
}

static oct_status read_stats(oct_words *w, oct_stats *s, oct_err *err)
{
    OCT_TRY(read_named(w, "n", &s->n, NULL, err));
    OCT_TRY(read_named(w, "zeros", &s->zeros, NULL, err));
    OCT_TRY(read_named(w, "inf", &s->inf[0], &s->inf[1], err));
    OCT_TRY(read_extreme(w, "min", &s->min, &s->min_count, err));
    OCT_TRY(read_extreme(w, "max", &s->max, &s->max_count, err));
    OCT_TRY(read_named(w, "avg", &s->samples, NULL, err));
    OCT_TRY(read_sum(w, &s->min_sum, err));
    return read_sum(w, &s->max_sum, err);
}

static oct_status read_entry(reader *r, bool off, oct_err *err)
{
    oct_words *w = &r->w;
    char *name;
    oct_words_skip(w);
    const char *at = w->at;
    OCT_TRY(oct_words_quoted(w, &name, err));
    oct_calib_tensor *t = NULL;
    if (oct_calib_find(r->c, name))
        return oct_words_fault(w, at, err, "tensor '%.200s' occurs twice", name);
    OCT_TRY(oct_calib_add(r->c, name, &t, err));
    t->off = off;
    OCT_TRY(read_stats(w, &t->stats, err));
    OCT_TRY(read_pin(w, t, err));
    r->t = t;
    r->t_line = *w;
    r->any_octave = false;
    r->n_staged = r->chan_next = 0;
    r->total = 0;
    r->last_octave[0] = r->last_octave[1] = 255;
    r->rank[0] = r->rank[1] = 0;
    memset(r->used, 0, sizeof r->used);
    return oct_words_end(w, err);
}

static oct_status read_tensor(oct_words *w, void *self, oct_err *err)
{
    return read_entry(self, false, err);
}

/* ---- the head ---- */

static oct_status read_hash(oct_words *w, uint64_t *hash, oct_err *err)
{
    const oct_word word = oct_words_take(w);
    bool hex = word.n == 16;
    *hash = 0;
    for (size_t i = 0; hex && i < word.n; i++) {
        hex = oct_hex_digit(word.at[i]) >= 0;
        *hash = *hash << 4 | (uint64_t)(oct_hex_digit(word.at[i]) & 15);
    }
    return hex ? OCT_OK : oct_words_fault(w, word.at, err, "16 hexadecimal digits are expected");
}

static oct_status read_model(oct_words *w, void *self, oct_err *err)
{
    char *text;
    uint64_t hash;
    OCT_TRY(oct_words_quoted(w, &text, err));
    OCT_TRY(read_hash(w, &hash, err));
    return oct_calib_set_model(((reader *)self)->c, text, hash, err);
}

static oct_status read_preprocess(oct_words *w, void *self, oct_err *err)
{
    char *text;
    OCT_TRY(oct_words_quoted(w, &text, err));
    return oct_calib_set_preprocess(((reader *)self)->c, text, err);
}

static oct_status read_samples(oct_words *w, void *self, oct_err *err)
{
    return oct_words_count(w, UINT64_MAX, &((reader *)self)->c->samples, err);
}

/* What a part is compared by, if it is there. */
static oct_status read_mark(oct_words *w, oct_calib_shard *mark, oct_err *err)
{
    if (oct_words_done(w))
        return OCT_OK;
    OCT_TRY(oct_words_expect(w, "of", err));
    OCT_TRY(read_hash(w, &mark->samples, err));
    return read_hash(w, &mark->files, err);
}

static oct_status read_shard(oct_words *w, void *self, oct_err *err)
{
    char *set;
    OCT_TRY(oct_words_quoted(w, &set, err));
    const oct_word word = oct_words_take(w);
    const char *slash = memchr(word.at, '/', word.n);
    const size_t n = slash ? (size_t)(slash - word.at) : 0;
    uint64_t i = 0, count = 0;
    oct_err what = OCT_ERR_INIT;
    if (!slash || !oct_word_count((oct_word){ word.at, n }, UINT32_MAX, &i) ||
        !oct_word_count((oct_word){ slash + 1, word.n - n - 1 }, UINT32_MAX, &count))
        return oct_words_fault(w, word.at, err, "a shard such as 0/4 is expected");
    oct_calib *c = ((reader *)self)->c;
    if (oct_calib_add_shard(c, set, (uint32_t)i, (uint32_t)count, &what) != OCT_OK)
        return oct_words_misplaced(w, word.at, &what, err);
    oct_calib_shard mark = { .set = set, .index = (uint32_t)i, .count = (uint32_t)count };
    OCT_TRY(read_mark(w, &mark, err));
    oct_calib_mark_shard(c, &mark);
    return OCT_OK;
}

static oct_status read_end(oct_words *w, void *self, oct_err *err)
{
    ((reader *)self)->ended = true;
    return OCT_OK;
}

static const oct_words_key head[] = {
    { "model", .read = read_model, .required = true },
    { "preprocess", .read = read_preprocess },
    { "samples", .read = read_samples },
    { "shard", .read = read_shard, .again = true },
    { "tensor", .read = read_tensor, .again = true },
    { "end", .read = read_end },
};
static const oct_words_format head_format = { .key = head, .n = OCT_COUNT(head) };
static const oct_words_format part_format = { .key = parts, .n = OCT_COUNT(parts), .again = true };

static oct_status read_version(oct_words *w, oct_err *err)
{
    uint64_t version;
    if (!oct_words_line(w))
        return oct_fail(err, OCT_EMALFORMED, "%s: an empty file is not a calibration table", w->label);
    if (!oct_word_is(oct_words_take(w), "octet-calibration")) {
        oct_words_fault(w, w->line, err, "not a calibration table: the first line must be 'octet-calibration 1'");
        oct_hint(err, "'qcalib import' makes a table from ranges that another tool has found");
        return OCT_EMALFORMED;
    }
    OCT_TRY(oct_words_count(w, UINT32_MAX, &version, err));
    if (version != 1)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s: calibration table of version %llu; this program reads version 1",
                        w->label, (unsigned long long)version);
    return oct_words_end(w, err);
}

/* Whether a tensor's line is commented out: "#tensor" or "# tensor", and a quote. If so, the name is next. */
static bool is_commented_tensor(oct_words *w)
{
    const char *from = w->at++;
    const bool tensor = oct_word_is(oct_words_take(w), "tensor");
    oct_words_skip(w);
    if (tensor && w->at < w->end && *w->at == '"')
        return true;
    w->at = from;
    return false;
}

static oct_status read_line(reader *r, oct_err *err)
{
    oct_words *w = &r->w;
    const char first = w->at < w->end ? *w->at : '#';
    const bool off = first == '#' && w->at < w->end && is_commented_tensor(w);
    if (!off && oct_words_done(w))
        return OCT_OK;
    if (first == ' ' || first == '\t')
        return r->t ? oct_words_key_line(w, &part_format, r, err)
                    : oct_words_fault(w, w->at, err,
                                      "a line that begins with a space belongs to a tensor, but there is none above");
    OCT_TRY(finish_tensor(r, err));
    if (r->ended)
        return oct_words_fault(w, w->line, err, "text behind the 'end' line");
    return off ? read_entry(r, true, err) : oct_words_key_line(w, &head_format, r, err);
}

static oct_status read_all_lines(reader *r, oct_err *err)
{
    OCT_TRY(read_version(&r->w, err));
    while (oct_words_line(&r->w))
        OCT_TRY(read_line(r, err));
    OCT_TRY(finish_tensor(r, err));
    OCT_TRY(oct_words_complete(&r->w, &head_format, err));
    return r->ended
               ? OCT_OK
               : oct_fail(err, OCT_EMALFORMED, "%s: the line 'end' is missing: the file was cut short", r->w.label);
}

static oct_status parse_text(const char *text, size_t size, const char *label, oct_calib **out, oct_err *err)
{
    reader *r = oct_calloc(1, sizeof *r);
    if (!r)
        return oct_nomem(err);
    r->w = (oct_words){ .label = label, .next = text, .limit = text + size, .arena = oct_arena_create() };
    r->c = oct_calib_create();
    oct_status st = r->c && r->w.arena ? read_all_lines(r, err) : oct_nomem(err);
    if (st == OCT_OK)
        *out = r->c;
    else
        oct_calib_destroy(r->c);
    oct_arena_destroy(r->w.arena);
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
