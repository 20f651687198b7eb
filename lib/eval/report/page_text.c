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

void ev_page_db_cell(const ev_page *p, double db, const char *class_name)
{
    oct_buf_printf(p->b, "<td class=\"n%s%s\"", *class_name ? " " : "", class_name);
    if (isnan(db) || isinf(db))
        oct_buf_printf(p->b, " data-v=\"%s\"", isinf(db) && db > 0 ? "9999" : "-9999");
    oct_buf_puts(p->b, ">");
    if (isfinite(db))
        oct_buf_printf(p->b, "%.1f", db);
    else
        ev_page_db(p, db);
    oct_buf_puts(p->b, "</td>");
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

void ev_page_ms(const ev_page *p, double seconds)
{
    const double ms = seconds * 1e3;
    if (ms < 0.1)
        oct_buf_printf(p->b, ms < 0.01 ? "%.1f µs" : "%.0f µs", seconds * 1e6);
    else
        oct_buf_printf(p->b, ms >= 100 ? "%.0f ms" : ms >= 10 ? "%.1f ms" : ms >= 1 ? "%.2f ms" : "%.3f ms", ms);
}

void ev_page_value(const ev_page *p, const oct_metric *m, double v)
{
    if (isnan(v))
        return;
    if (oct_metric_in_percent(m))
        oct_buf_printf(p->b, "%.2f %%", 100 * v);
    else if (strcmp(m->unit, "dB") == 0)
        ev_page_db(p, v);
    else
        oct_buf_printf(p->b, fabs(v) < 0.1 ? "%.4g%s%s" : "%.6g%s%s", v, *m->unit ? " " : "",
                       m->unit); /* six digits tell 0.999239 from 1 */
}

const char *ev_page_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

const char *ev_page_kind(const char *scheme, oct_dtype codes)
{
    static const char *const kinds[][2] = { { "int8", "int8" },          { "static", "int8" },   { "dynamic", "int8" },
                                            { "weight-only", "blocks" }, { "stored", "blocks" }, { "fp16", "half" },
                                            { "bf16", "half" } };
    if (codes == OCT_U16 || codes == OCT_S16)
        return "int16";
    for (size_t i = 0; scheme && i < OCT_COUNT(kinds); i++)
        if (strcmp(scheme, kinds[i][0]) == 0)
            return kinds[i][1];
    return "float";
}

const char *ev_page_model_kind(const ev_page *p, size_t k)
{
    static const char *const kinds[] = { "int8", "int16", "half", "blocks" };
    const oct_eval_model_result *m = &p->r->models[k];
    const oct_page_model *notes = ev_page_model(p, k);
    size_t count[OCT_COUNT(kinds)] = { 0 }, best = 0;
    for (size_t i = 0; i < OCT_COUNT(kinds); i++) {
        for (size_t l = 0; l < m->n_layers; l++)
            count[i] += strcmp(ev_page_kind(m->layers[l].scheme, m->layers[l].range.dtype), kinds[i]) == 0;
        for (size_t l = 0; l < notes->n_layers && !m->n_layers; l++)
            count[i] += strcmp(ev_page_kind(notes->layer[l].scheme, OCT_UNDEFINED), kinds[i]) == 0;
        best = count[i] > count[best] ? i : best;
    }
    return k == 0 ? "float" : count[best] || m->integer_steps ? kinds[best] : "float";
}

void ev_page_section(const ev_page *p, const char *id, const char *title)
{
    oct_buf_printf(p->b, "<section id=\"%s\">\n<h2>%s</h2>\n", id, title);
}

void ev_page_section_end(const ev_page *p)
{
    oct_buf_puts(p->b, "</section>\n");
}

void ev_page_model_title(const ev_page *p, size_t k)
{
    if (p->r->n_models <= 2)
        return;
    oct_buf_puts(p->b, "<h3>");
    ev_page_text(p, ev_page_base(p->r->models[k].name));
    oct_buf_puts(p->b, "</h3>\n");
}

const oct_page_model *ev_page_model(const ev_page *p, size_t k)
{
    static const oct_page_model none = { .layer = NULL };
    return p->c->page && p->c->page->model ? &p->c->page->model[k] : &none;
}
