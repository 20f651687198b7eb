/* Reports the choice for a size, and the curve of size against loss. */
#include "qconvert/qconvert.h"

#include "cli/text_table.h"
#include "cli/textfmt.h"

#include <math.h>

enum { LINES = 20, BAR = 30 };

/* A bar for the remaining loss: its length is proportional to dB between the best and the worst. */
static const char *bar(char dst[BAR + 1], double sqnr, double least, double most)
{
    const double share = most > least && isfinite(sqnr) ? (sqnr - least) / (most - least) : 1;
    const int n = (int)(share * BAR + 0.5);
    for (int i = 0; i < BAR; i++)
        dst[i] = i < n ? '#' : ' ';
    dst[n < 0 ? 0 : n > BAR ? BAR : n] = '\0';
    return dst;
}

static void put_point(oct_table *t, const session *s, const oct_size_point *p, double least, double most)
{
    char bytes[32], share[32], db[32], chart[BAR + 1];
    snprintf(share, sizeof share, "%.1f %%", 100 * p->bytes / (double)s->c.size_before);
    const char *cells[] = { p->taken ? "*" : "",
                            oct_fmt_bytes(bytes, (uint64_t)p->bytes),
                            share,
                            oct_fmt_db(db, p->sqnr),
                            bar(chart, p->sqnr, least, most),
                            *p->layer ? p->layer : "all in the fewest bytes",
                            p->form };
    oct_table_texts(t, cells);
}

/* Prints the choice layer by layer beside one form for all layers. */
static oct_status print_rivals(const oct_size_choice *x, FILE *f, oct_err *err)
{
    if (!x->n_rivals)
        return OCT_OK;
    oct_table *t =
        oct_table_of("llrr", (const char *[]){ "", "form", "size", x->samples ? "output SQNR" : "expected SQNR" });
    for (size_t i = 0; i < x->n_rivals; i++) {
        char bytes[32], db[32];
        const oct_size_rival *r = &x->rival[i];
        const char *cells[] = { i == x->taken ? "*" : "",
                                *r->form     ? r->form
                                : r->between ? "the same, float between layers"
                                             : "chosen layer by layer",
                                oct_fmt_bytes(bytes, r->bytes), oct_fmt_db(db, r->sqnr) };
        oct_table_texts(t, cells);
    }
    if (x->samples)
        oct_print(f, "\nCompared with one form for all layers, by %zu samples that did not choose (* is taken):\n",
                  x->samples);
    else
        oct_print(f, "\nCompared with one form for all layers, as expected (* is taken):\n");
    const oct_status st = oct_table_print(t, f, err);
    oct_table_destroy(t);
    if (x->samples && st == OCT_OK)
        oct_print(
            f,
            "  weights are rounded to the nearest values here; methods of rounding follow, for what is taken alone\n");
    return st;
}

oct_status size_report_print(const session *s, FILE *f, oct_err *err)
{
    const oct_size_choice *x = &s->c.size;
    if (!x->n)
        return OCT_OK;
    char limit[32], after[32], db[32];
    double most = x->point[0].sqnr;
    for (size_t i = 0; i < x->n; i++)
        most = isfinite(x->point[i].sqnr) ? fmax(most, x->point[i].sqnr) : most;
    oct_table *t =
        oct_table_of("lrrrlll", (const char *[]){ "", "size", "of float", x->measured ? "output SQNR" : "expected SQNR",
                                                  "", "and then", "becomes" });
    size_t shown = 0, each = s->cli->verbose || x->n <= LINES ? 1 : (x->n + LINES - 1) / LINES;
    for (size_t i = 0; i < x->n; i++)
        if (i % each == 0 || i + 1 == x->n ||
            (x->point[i].taken && (i + 1 == x->n || !x->point[i + 1].taken) && ++shown <= LINES))
            put_point(t, s, &x->point[i], x->point[0].sqnr, most);
    oct_print(f, "\nSize against loss, expected%s (* is what the model has; %s are allowed, it takes %s, with %s):\n",
              x->measured ? " from samples" : " from the rounding of weights and inputs alone",
              oct_fmt_bytes(limit, x->limit), oct_fmt_bytes(after, s->c.size_after), oct_fmt_db(db, x->sqnr));
    oct_status st = oct_table_print(t, f, err);
    oct_table_destroy(t);
    if (each > 1)
        oct_print(f, "  one of %zu steps is shown (-v shows all)\n", each);
    return st == OCT_OK ? print_rivals(x, f, err) : st;
}

static void put_json_point(oct_json *j, const void *row)
{
    const oct_size_point *p = row;
    oct_json_str(j, "layer", *p->layer ? p->layer : NULL);
    oct_json_str(j, "form", *p->form ? p->form : NULL);
    oct_json_int(j, "bytes", (int64_t)p->bytes);
    if (!isnan(p->sqnr))
        oct_json_num(j, "sqnr_db", p->sqnr);
    if (isinf(p->sqnr))
        oct_json_bool(j, "exact", p->sqnr > 0);
    oct_json_bool(j, "taken", p->taken);
}

static void put_json_rival(oct_json *j, const void *row)
{
    const oct_size_rival *r = row;
    oct_json_str(j, "form", *r->form ? r->form : NULL);
    oct_json_bool(j, "float_between", r->between);
    oct_json_int(j, "bytes", (int64_t)r->bytes);
    if (isfinite(r->sqnr))
        oct_json_num(j, "sqnr_db", r->sqnr);
}

void size_report_json(oct_json *j, const session *s)
{
    const oct_size_choice *x = &s->c.size;
    if (!x->n)
        return;
    oct_json_open(j, "size", '{');
    oct_json_int(j, "limit", (int64_t)x->limit);
    oct_json_int(j, "least", (int64_t)x->least);
    oct_json_bool(j, "missed", x->missed);
    oct_json_bool(j, "measured", x->measured);
    if (isfinite(x->sqnr))
        oct_json_num(j, "sqnr_db", x->sqnr);
    oct_json_int(j, "samples", (int64_t)x->samples);
    oct_json_int(j, "taken", (int64_t)x->taken);
    oct_json_rows(j, "compared", x->rival, x->n_rivals, sizeof *x->rival, put_json_rival);
    oct_json_rows(j, "curve", x->point, x->n, sizeof *x->point, put_json_point);
    oct_json_close(j);
}
