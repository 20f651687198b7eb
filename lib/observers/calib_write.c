/* lib/observers/calib_write.c -- the calibration table as text. */
#include "observers/calib.h"
#include "observers/calib_digits.h"

#include "base/io.h"
#include "base/utf8.h"

#include <string.h>
#include <zlib.h>

#define END_LINE "end\n" /* its absence shows that a file was cut short */

/* Characters that must not be printed are written as escapes, byte by byte, so that the table is valid UTF-8 and safe
 * to print. */
static void put_quoted(oct_buf *b, const char *s)
{
    oct_buf_add(b, "\"", 1);
    for (size_t n; *s; s += n) {
        const uint32_t c = oct_utf8_char(s, 4, &n);
        if (c == '"' || c == '\\')
            oct_buf_printf(b, "\\%c", (int)c);
        else if (!oct_char_unsafe(c) && !(c == OCT_BAD_CHAR && n == 1))
            oct_buf_add(b, s, n);
        else
            for (size_t i = 0; i < n; i++)
                oct_buf_printf(b, "\\x%02x", (unsigned char)s[i]);
    }
    oct_buf_add(b, "\"", 1);
}

static void put_u64(oct_buf *b, uint64_t v)
{
    oct_buf_printf(b, " %llu", (unsigned long long)v);
}

static void put_f32(oct_buf *b, float f)
{
    char text[32];
    oct_buf_add(b, " ", 1);
    oct_buf_puts(b, oct_f32_text(text, f));
}

static void put_sum(oct_buf *b, const oct_xsum *s)
{
    oct_buf_add(b, " ", 1);
    oct_xsum_text(s, b);
}

/* Writes a count in base 32 (calib_digits.h). */
static void put_count(oct_buf *b, uint64_t v)
{
    char text[13];
    int at = sizeof text;
    text[--at] = OCT_DIGITS_LAST[v & 31];
    for (v >>= 5; v; v >>= 5)
        text[--at] = OCT_DIGITS_MORE[v & 31];
    oct_buf_add(b, text + at, sizeof text - (size_t)at);
}

/* Writes n bins from `first` on. Two or more zeros in a row are written as '.' and their number. Zeros at the end are
 * left out. */
static void put_counts(oct_buf *b, const oct_stats *s, size_t first, size_t n)
{
    while (n && oct_stats_count(s, first + n - 1) == 0)
        n--;
    for (size_t i = 0; i < n;) {
        size_t run = 0;
        while (oct_stats_count(s, first + i + run) == 0)
            run++;
        if (run >= 2) {
            oct_buf_add(b, ".", 1);
            put_count(b, run);
        } else if (run == 1) {
            oct_buf_add(b, "0", 1);
        } else {
            put_count(b, oct_stats_count(s, first + i));
            run = 1;
        }
        i += run;
    }
}

static void put_octaves(oct_buf *b, const oct_stats *s)
{
    for (int sign = 0; sign < 2; sign++)
        for (int e = 254; e >= 0; e--) {
            int o = sign * 256 + e;
            if (!s->used[o])
                continue;
            oct_buf_printf(b, " %c %d ", sign ? '-' : '+', e - 127);
            put_counts(b, s, s->octave[o].off, (size_t)1 << (23 - s->octave[o].shift));
            oct_buf_add(b, "\n", 1);
        }
}

static void put_channels(oct_buf *b, const oct_chan_stats *s)
{
    if (s->channels == 0)
        return;
    oct_buf_printf(b, " channels %zu\n", s->channels);
    for (size_t i = 0; i < s->channels; i++) {
        const oct_chan *c = &s->c[i];
        oct_buf_printf(b, " chan %zu", i);
        put_u64(b, c->n);
        put_f32(b, c->min);
        put_f32(b, c->max);
        put_sum(b, &c->sum);
        oct_buf_add(b, "\n", 1);
    }
}

static void put_tensor(oct_buf *b, const oct_calib_tensor *t)
{
    const oct_stats *s = &t->stats;
    oct_buf_puts(b, t->off ? "#tensor " : "tensor ");
    put_quoted(b, t->name);
    oct_buf_puts(b, " n");
    put_u64(b, s->n);
    oct_buf_puts(b, " zeros");
    put_u64(b, s->zeros);
    oct_buf_puts(b, " inf");
    put_u64(b, s->inf[0]);
    put_u64(b, s->inf[1]);
    oct_buf_puts(b, " min");
    put_f32(b, s->min);
    put_u64(b, s->min_count);
    oct_buf_puts(b, " max");
    put_f32(b, s->max);
    put_u64(b, s->max_count);
    oct_buf_puts(b, " avg");
    put_u64(b, s->samples);
    put_sum(b, &s->min_sum);
    put_sum(b, &s->max_sum);
    if (t->pinned) {
        oct_buf_puts(b, " pin");
        put_f32(b, t->pin.lo);
        put_f32(b, t->pin.hi);
        if (t->exact.bits) {
            oct_buf_printf(b, " as u%d", t->exact.bits);
            put_f32(b, t->exact.scale);
            oct_buf_printf(b, " %d", (int)t->exact.zero);
        }
    }
    oct_buf_add(b, "\n", 1);
    put_octaves(b, s);
    put_channels(b, &t->chan);
}

static void put_head(oct_buf *b, const oct_calib *c)
{
    oct_buf_puts(b, "octet-calibration 1\nmodel ");
    put_quoted(b, c->model);
    oct_buf_printf(b, " %016llx\npreprocess ", (unsigned long long)c->model_hash);
    put_quoted(b, c->preprocess);
    oct_buf_printf(b, "\nsamples %llu\n", (unsigned long long)c->samples);
    oct_buf missing = OCT_BUF_INIT;
    if (oct_calib_missing(c, &missing)) {
        oct_buf_puts(b, "# incomplete, lacks ");
        oct_text_clean(b, oct_buf_str(&missing), false);
        oct_buf_puts(b, "\n");
    }
    b->failed |= missing.failed;
    oct_buf_free(&missing);
    for (size_t i = 0; i < c->n_shards; i++) {
        oct_buf_puts(b, "shard ");
        put_quoted(b, c->shards[i].set);
        oct_buf_printf(b, " %u/%u", c->shards[i].index, c->shards[i].count);
        if (c->shards[i].samples || c->shards[i].files)
            oct_buf_printf(b, " of %016llx %016llx", (unsigned long long)c->shards[i].samples,
                           (unsigned long long)c->shards[i].files);
        oct_buf_puts(b, "\n");
    }
}

void oct_calib_text(const oct_calib *c, oct_buf *out)
{
    put_head(out, c);
    for (size_t i = 0; i < c->n_tensors; i++)
        put_tensor(out, c->tensors[i]);
    oct_buf_puts(out, END_LINE);
}

/* The file to which text is written, compressed or not. */
typedef struct sink {
    oct_out out;
    z_stream z;
    bool gz;
} sink;

static bool sink_write(sink *s, const char *p, size_t n, bool last)
{
    if (!s->gz) {
        oct_out_write(&s->out, p, n);
        return true;
    }
    uint8_t chunk[1 << 14];
    s->z.next_in = (Bytef *)p;
    do { /* zlib takes less than 4 GiB at once */
        size_t piece = n > (1u << 30) ? 1u << 30 : n;
        s->z.avail_in = (uInt)piece;
        n -= piece;
        do {
            s->z.next_out = chunk;
            s->z.avail_out = sizeof chunk;
            if (deflate(&s->z, last && n == 0 ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_ERROR)
                return false;
            oct_out_write(&s->out, chunk, sizeof chunk - s->z.avail_out);
        } while (s->z.avail_out == 0);
    } while (n);
    return true;
}

/* Writes the text of one tensor at a time, so that the whole text is never in memory. */
static oct_status write_all(const oct_calib *c, sink *s, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    bool fine = true;
    put_head(&b, c);
    for (size_t i = 0; i < c->n_tensors && fine && !b.failed; i++) {
        fine = sink_write(s, oct_buf_str(&b), b.len, false);
        b.len = 0;
        put_tensor(&b, c->tensors[i]);
    }
    oct_buf_puts(&b, END_LINE);
    fine = fine && !b.failed && sink_write(s, oct_buf_str(&b), b.len, true);
    bool failed = b.failed;
    oct_buf_free(&b);
    return failed ? oct_nomem(err) : fine ? OCT_OK : oct_fail(err, OCT_EINTERNAL, "cannot compress the table");
}

oct_status oct_calib_save(const oct_calib *c, const char *path, oct_err *err)
{
    size_t n = strlen(path);
    sink s = { .gz = n > 3 && strcmp(path + n - 3, ".gz") == 0 };
    OCT_TRY(oct_out_open(&s.out, path, err));
    oct_status st = OCT_OK;
    if (s.gz && deflateInit2(&s.z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        s.gz = false;
        st = oct_nomem(err);
    }
    if (st == OCT_OK)
        st = write_all(c, &s, err);
    if (s.gz)
        deflateEnd(&s.z);
    if (st == OCT_OK)
        return oct_out_commit(&s.out, err);
    oct_out_abort(&s.out);
    return st;
}
