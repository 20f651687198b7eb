/* Words and numbers of the page. */
#include "eval/report/page_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void ev_page_text(const ev_page *p, const char *s)
{
    oct_xml_text(p->b, s ? s : "");
}

static bool within(char c, char first, char last)
{
    return c >= first && c <= last;
}

/* Whether a line may end behind s[i]: behind a separator, unless it is the point of a number, and between words written
 * together, as in LayerNormalization. */
static bool ends_part(const char *s, size_t i)
{
    if (i == 0 && s[0] == '/') /* the root of a path */
        return false;
    if (s[i] == '.' && i && within(s[i - 1], '0', '9') && within(s[i + 1], '0', '9'))
        return false;
    return strchr("/_.:,", s[i]) || (within(s[i], 'a', 'z') && within(s[i + 1], 'A', 'Z'));
}

void ev_page_name(const ev_page *p, const char *s)
{
    char part[64];
    size_t n = 0, kept = 0; /* bytes of s; of these in part */
    for (; s && s[n]; n++) {
        const bool inside =
            ((unsigned char)s[n] & 0xC0) == 0x80; /* a character, which is not cut; names need not be UTF-8 */
        if (kept == sizeof part - 1 || (kept >= sizeof part - 4 && !inside)) {
            part[kept] = 0;
            ev_page_text(p, part);
            kept = 0;
        }
        part[kept++] = s[n];
        if (s[n + 1] && !ends_part(s, n))
            continue;
        part[kept] = 0;
        ev_page_text(p, part);
        oct_buf_puts(p->b, s[n + 1] ? "<wbr>" : "");
        kept = 0;
    }
}

void ev_page_db(const ev_page *p, double db)
{
    if (isnan(db))
        oct_buf_puts(p->b, "not finite");
    else if (isinf(db))
        oct_buf_puts(p->b, db > 0 ? "exact" : "no signal");
    else
        oct_buf_printf(p->b, "%.1f dB", db);
}

const char *ev_page_share(char dst[EV_SHARE_TEXT], double share)
{
    const double percent = 100 * share;
    if (isnan(share))
        dst[0] = 0;
    else if (percent > 0 && percent < 0.01)
        snprintf(dst, EV_SHARE_TEXT, "< 0.01 %%");
    else
        snprintf(dst, EV_SHARE_TEXT,
                 percent == 0 || percent >= 99.95 ? "%.0f %%"
                 : percent < 1                    ? "%.2f %%"
                                                  : "%.1f %%",
                 percent);
    return dst;
}

void ev_page_share_cell(const ev_page *p, double share, const char *class_name)
{
    char text[EV_SHARE_TEXT];
    oct_buf_printf(p->b, isnan(share) ? "<td class=\"n%s%s\">" : "<td class=\"n%s%s\" data-v=\"%.6g\">",
                   *class_name ? " " : "", class_name, 100 * share);
    ev_page_text(p, ev_page_share(text, share));
    oct_buf_puts(p->b, "</td>");
}

void ev_page_bytes(const ev_page *p, double bytes)
{
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
    size_t at = 0;
    while (bytes >= 999.5 && at + 1 < OCT_COUNT(units)) {
        bytes /= 1000;
        at++;
    }
    oct_buf_printf(p->b,
                   at == 0       ? "%.0f %s"
                   : bytes < 10  ? "%.2f %s"
                   : bytes < 100 ? "%.1f %s"
                                 : "%.0f %s",
                   bytes, units[at]);
}

void ev_page_ms(const ev_page *p, double ms)
{
    if (ms < 0.1)
        oct_buf_printf(p->b, ms < 0.01 ? "%.1f µs" : "%.0f µs", ms * 1e3);
    else
        oct_buf_printf(p->b, ms >= 100 ? "%.0f ms" : ms >= 10 ? "%.1f ms" : ms >= 1 ? "%.2f ms" : "%.3f ms", ms);
}

void ev_page_value(const ev_page *p, const oct_item *metric, double v)
{
    const char *unit = oct_item_text(metric, "unit");
    if (isnan(v))
        return;
    if (oct_item_true(metric, "percent"))
        oct_buf_printf(p->b, "%.2f %%", 100 * v);
    else if (strcmp(unit, "dB") == 0)
        ev_page_db(p, v);
    else
        oct_buf_printf(p->b, fabs(v) < 0.1 ? "%.4g%s%s" : "%.6g%s%s", v, *unit ? " " : "",
                       unit); /* six digits tell 0.999239 from 1 */
}

double ev_page_score(const ev_page *p)
{
    return oct_item_number(oct_item_member(oct_item_at(p->model, "metrics"), oct_item_text(p->metric, "name")), "");
}

const oct_item *ev_page_drop(const ev_page *p)
{
    return oct_item_member(oct_item_at(p->model, "drop"), oct_item_text(p->metric, "name"));
}

const char *ev_page_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

const char *ev_page_kind(const char *scheme, const char *codes)
{
    static const char *const kinds[][2] = { { "int8", "int8" },          { "static", "int8" },   { "dynamic", "int8" },
                                            { "weight-only", "blocks" }, { "stored", "blocks" }, { "fp16", "half" },
                                            { "bf16", "half" } };
    if (codes && strstr(codes, "int16"))
        return "int16";
    for (size_t i = 0; scheme && i < OCT_COUNT(kinds); i++)
        if (strcmp(scheme, kinds[i][0]) == 0)
            return kinds[i][1];
    return "float";
}

/* ---- forms ---- */

void ev_form_base(const ev_page *p, const oct_item *x, const char *words)
{
    ev_page_text(p, ev_page_base(oct_item_text(x, "")));
}

void ev_form_base_name(const ev_page *p, const oct_item *x, const char *words)
{
    ev_page_name(p, ev_page_base(oct_item_text(x, "")));
}

void ev_form_name(const ev_page *p, const oct_item *x, const char *words)
{
    ev_page_name(p, oct_item_text(x, ""));
}

/* The s of a plural. */
void ev_form_s(const ev_page *p, const oct_item *x, const char *words)
{
    oct_buf_puts(p->b, oct_item_number(x, "") == 1 ? "" : "s");
}

void ev_form_count(const ev_page *p, const oct_item *x, const char *words)
{
    oct_buf_printf(p->b, "%zu", oct_item_count(x, ""));
}

void ev_form_db(const ev_page *p, const oct_item *x, const char *words)
{
    ev_page_db(p, oct_item_number(x, ""));
}

/* Cells with numbers. data-v: the key for sorting, where the text is none. */
void ev_form_db_cell(const ev_page *p, const oct_item *x, const char *words)
{
    const double db = oct_item_number(x, "");
    oct_buf_printf(p->b, "<td class=\"n%s%s\"", *words ? " " : "", words);
    if (isnan(db) || isinf(db))
        oct_buf_printf(p->b, " data-v=\"%s\"", isinf(db) && db > 0 ? "9999" : "-9999");
    oct_buf_puts(p->b, ">");
    if (isfinite(db))
        oct_buf_printf(p->b, "%.1f", db);
    else
        ev_page_db(p, db);
    oct_buf_puts(p->b, "</td>");
}

/* The error of a layer, with a class that says how large it is. */
void ev_form_error_cell(const ev_page *p, const oct_item *x, const char *words)
{
    const double db = oct_item_number(x, "");
    if (x)
        ev_form_db_cell(p, x, isnan(db) || db < 10 ? "bad" : db < 20 ? "mid" : "");
    else
        oct_buf_puts(p->b, "<td class=\"n\"></td>");
}

void ev_form_share_cell(const ev_page *p, const oct_item *x, const char *words)
{
    ev_page_share_cell(p, oct_item_number(x, ""), words);
}

void ev_form_percent_cell(const ev_page *p, const oct_item *x, const char *words)
{
    const double share = oct_item_number(x, "");
    if (isnan(share))
        oct_buf_printf(p->b, "<td class=\"%s\"></td>", words);
    else
        oct_buf_printf(p->b, "<td class=\"%s\" data-v=\"%.6g\">%.2f&nbsp;%%</td>", words, share, 100 * share);
}

void ev_form_bytes(const ev_page *p, const oct_item *x, const char *words)
{
    if (x)
        ev_page_bytes(p, oct_item_number(x, ""));
}

void ev_form_ms(const ev_page *p, const oct_item *x, const char *words)
{
    ev_page_ms(p, oct_item_number(x, ""));
}

void ev_form_kind(const ev_page *p, const oct_item *x, const char *words)
{
    oct_buf_puts(p->b, ev_page_kind(oct_item_text(x, ""), NULL));
}

/* A line of the facts about a layer. words: what it is. */
static void put_fact(const ev_page *p, const char *words, const char *text)
{
    if (!text || !*text)
        return;
    oct_buf_printf(p->b, "<div><dt>%s</dt><dd>", words);
    ev_page_name(p, text);
    oct_buf_puts(p->b, "</dd></div>");
}

void ev_form_fact(const ev_page *p, const oct_item *x, const char *words)
{
    put_fact(p, words, oct_item_text(x, ""));
}

void ev_form_db_fact(const ev_page *p, const oct_item *x, const char *words)
{
    char text[64];
    const double db = oct_item_number(x, "");
    snprintf(text, sizeof text, "%.1f dB", db);
    put_fact(p, words, isnan(db) ? NULL : isinf(db) ? "exact" : text);
}

void ev_form_share_fact(const ev_page *p, const oct_item *x, const char *words)
{
    char text[EV_SHARE_TEXT];
    put_fact(p, words, ev_page_share(text, oct_item_number(x, "")));
}

#define NUMBER(name, format, factor)                                            \
    void ev_form_##name(const ev_page *p, const oct_item *x, const char *words) \
    {                                                                           \
        if (!isnan(oct_item_number(x, "")))                                     \
            oct_buf_printf(p->b, format, (factor) * oct_item_number(x, ""));    \
    }
NUMBER(f0, "%.0f", 1)
NUMBER(f2, "%.2f", 1)
NUMBER(f6, "%.6f", 1)
NUMBER(g3, "%.3g", 1)
NUMBER(g4, "%.4g", 1)
NUMBER(million, "%.3g", 1e-6)
NUMBER(operations, "%.3g", 2) /* a multiply-accumulate is two of them */

/* A key for sorting. */
void ev_form_g9(const ev_page *p, const oct_item *x, const char *words)
{
    oct_buf_printf(p->b, "%.9g", x ? oct_item_number(x, "") : 0);
}
