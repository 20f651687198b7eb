/* Chooses schemes for a size: a form for each unit, so that the expected loss at the outputs, a sum over the units, is
 * the least within the limit.
 *
 * The curve of size against loss takes steps along the lower convex hulls of the units' forms, those first that reduce
 * the loss most for each byte. A single size is reached better by dynamic programming over sizes, because several small
 * layers may have to stay small for a large one. Bytes of units are known only approximately. So the file is made and
 * its size is counted, and the room is reduced by the excess until the file fits. The result is the same on every
 * machine, because neither a clock nor a file system is involved. */
#include "quant/budget/size_choice_int.h"

#include "base/number_text.h"
#include "eval/metrics/summary.h"
#include "kernels/math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_ROUNDS = 16,
    END_BYTES = 1 << 10, /* the most bytes that the types of an input or output add to the file */
    PERCENT = 100        /* up to this, a number of bytes is a share whose sign was forgotten */
};

/* ---- the limit ---- */

oct_status oct_size_limit_parse(const char *option, const char *text, oct_size_limit *l, oct_err *err)
{
    *l = (oct_size_limit){ 0 };
    const bool known = oct_size_text(text, &l->bytes, &l->share);
    if (known && l->bytes && l->bytes <= PERCENT) {
        oct_fail(err, OCT_EUSAGE, "%s: '%.100s' is %u bytes, less than any model has", option, text,
                 (unsigned)l->bytes);
        oct_hint(err, "did you mean %u%%?", (unsigned)l->bytes);
        return OCT_EUSAGE;
    }
    if (known)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "%s: '%.100s' is not a size", option, text);
    oct_hint(err, "give a share of the float file, as 25%%, or bytes, as 12MB or 800kB");
    return OCT_EUSAGE;
}

/* The limit in bytes of the file. `least` are its known bytes when units take `bytes`. */
static double limit_of(const oct_size_units *u, double least, double bytes)
{
    const oct_conversion *c = u->c;
    const oct_size_limit *l = &c->o.size;
    double elements = 0;
    for (size_t i = 0; i < u->n; i++)
        elements += u->unit[i].aside ? 0 : u->unit[i].elements;
    const double limit = l->bytes       ? (double)l->bytes
                         : l->share > 0 ? l->share * (double)c->size_before
                                        : least - bytes + elements * l->bits / 8;
    return fmax(floor(limit - (double)c->o.n_ends * END_BYTES), 1);
}

/* ---- steps ---- */

typedef struct step {
    size_t unit;
    int form;            /* the form after the step */
    double bytes, noise; /* additional bytes, and noise that is removed */
} step;

/* The next form of a unit: of those with more bytes and less noise, the one that removes most noise for each byte; -1:
 * there is none. */
static int next_form(const oct_size_unit *x, int at)
{
    int best = -1;
    double most = 0;
    for (int f = 0; f < OCT_SIZE_FORMS; f++) {
        const double bytes = x->option[f].bytes - x->option[at].bytes, noise = x->option[at].noise - x->option[f].noise;
        if (!x->option[f].there || !(bytes > 0) || !(noise > 0) || !(noise / bytes > most))
            continue;
        best = f;
        most = noise / bytes;
    }
    return best;
}

/* The form with the fewest bytes, and among several the least noise. */
static int first_form(const oct_size_unit *x)
{
    int best = 0;
    for (int f = 1; f < OCT_SIZE_FORMS; f++) {
        const oct_size_option *o = &x->option[f], *than = &x->option[best];
        if (o->there && (o->bytes < than->bytes || (o->bytes == than->bytes && o->noise < than->noise)))
            best = f;
    }
    return best;
}

static int by_worth(const void *a, const void *b)
{
    const step *p = a, *q = b;
    const double x = p->noise / p->bytes, y = q->noise / q->bytes;
    if (x != y)
        return x > y ? -1 : 1;
    return p->unit != q->unit ? (p->unit < q->unit ? -1 : 1) : (p->bytes > q->bytes) - (p->bytes < q->bytes);
}

/* Lists all steps in the order in which they are taken. */
static size_t list_steps(oct_size_units *u, step *s)
{
    size_t n = 0;
    for (size_t i = 0; i < u->n; i++) {
        const oct_size_unit *x = &u->unit[i];
        int at = x->aside ? -1 : first_form(x);
        for (int to; at >= 0 && (to = next_form(x, at)) >= 0; at = to)
            s[n++] =
                (step){ i, to, x->option[to].bytes - x->option[at].bytes, x->option[at].noise - x->option[to].noise };
    }
    qsort(s, n, sizeof *s, by_worth);
    return n;
}

/* Puts all units in their smallest form. */
static double begin(oct_size_units *u)
{
    double bytes = 0;
    if (u->others == OCT_SIZE_OTHERS_HALF)
        u->others = OCT_SIZE_OTHERS_POLICY;
    for (size_t i = 0; i < u->n; i++) {
        oct_size_unit *x = &u->unit[i];
        x->at = x->aside ? 0 : first_form(x);
        bytes += x->aside ? 0 : x->option[x->at].bytes;
    }
    return bytes;
}

/* ---- the least loss within a size ---- */

enum { MOST_CELLS = 1 << 24, MOST_ROOM = 1 << 14 }; /* the most cells of the table; the most steps of the size */

typedef struct table {
    size_t room; /* in units of `grain` bytes: what may be used beyond the smallest forms */
    double grain;
    double *noise; /* [room + 1]: the least noise of the units so far, within so many bytes */
    double *next;
    uint8_t *form; /* [units][room + 1]: the form of the unit in that solution */
} table;

/* Bytes beyond the smallest form, rounded up: what fits in the table fits in the file. */
static size_t rounded_up(const oct_size_unit *x, int form, double grain)
{
    const double above = x->option[form].bytes - x->option[first_form(x)].bytes;
    return above > 0 ? (size_t)ceil(above / grain) : 0;
}

static void add_unit(const table *t, const oct_size_unit *x, uint8_t *form)
{
    const int first = first_form(x);
    for (size_t r = 0; r <= t->room; r++) {
        t->next[r] = t->noise[r] + x->option[first].noise;
        form[r] = (uint8_t)first;
    }
    for (int f = 0; f < OCT_SIZE_FORMS; f++) {
        if (!x->option[f].there || f == first)
            continue;
        const size_t above = rounded_up(x, f, t->grain);
        for (size_t r = above; r <= t->room; r++) {
            const double noise = t->noise[r - above] + x->option[f].noise;
            if (noise < t->next[r]) {
                t->next[r] = noise;
                form[r] = (uint8_t)f;
            }
        }
    }
    memcpy(t->noise, t->next, (t->room + 1) * sizeof *t->noise);
}

/* Uses the room that remains, because the table rounds up: takes steps of units that still fit. */
static void fill_rest(oct_size_units *u, const step *s, size_t n, double room)
{
    for (size_t i = 0; i < u->n; i++)
        room -= u->unit[i].aside
                    ? 0
                    : u->unit[i].option[u->unit[i].at].bytes - u->unit[i].option[first_form(&u->unit[i])].bytes;
    for (size_t i = 0; i < n; i++) {
        oct_size_unit *x = &u->unit[s[i].unit];
        const oct_size_option *to = &x->option[s[i].form], *at = &x->option[x->at];
        if (to->bytes <= at->bytes || to->noise >= at->noise || to->bytes - at->bytes > room)
            continue;
        room -= to->bytes - at->bytes;
        x->at = s[i].form;
    }
}

/* The forms with the least noise that take at most `room` bytes beyond the smallest forms. */
static oct_status choose_within(oct_size_units *u, const step *s, size_t n, double room, oct_err *err)
{
    begin(u);
    if (!u->n || !(room >= 1))
        return OCT_OK;
    table t = { .room = MOST_CELLS / u->n < MOST_ROOM ? MOST_CELLS / u->n : MOST_ROOM };
    t.grain = fmax(room / (double)t.room, 1);
    t.room = (size_t)(room / t.grain);
    t.noise = oct_calloc(t.room + 1, sizeof *t.noise);
    t.next = oct_calloc(t.room + 1, sizeof *t.next);
    t.form = oct_calloc(u->n * (t.room + 1), 1);
    const bool good = t.noise && t.next && t.form;
    for (size_t i = 0; i < u->n && good; i++)
        if (!u->unit[i].aside)
            add_unit(&t, &u->unit[i], t.form + i * (t.room + 1));
    size_t left = t.room;
    for (size_t i = u->n; i-- > 0 && good;)
        if (!u->unit[i].aside) {
            u->unit[i].at = t.form[i * (t.room + 1) + left];
            left -= rounded_up(&u->unit[i], u->unit[i].at, t.grain);
        }
    oct_free(t.noise);
    oct_free(t.next);
    oct_free(t.form);
    if (good)
        fill_rest(u, s, n, room);
    return good ? OCT_OK : oct_nomem(err);
}

/* ---- the record ---- */

double oct_size_noise(const oct_size_units *u)
{
    double noise = 0;
    for (size_t i = 0; i < u->n; i++)
        noise += u->unit[i].aside ? 0 : u->unit[i].option[u->unit[i].at].noise;
    return noise;
}

double oct_size_decibels(double noise)
{
    return noise > 0 ? -10 * oct_log10(noise) : INFINITY;
}

double oct_size_ratio(double decibels)
{
    return oct_exp(-decibels * 0.23025850929940458); /* ln(10) / 10 */
}

/* Draws the curve. Its first point has `least` bytes; units add their bytes to that. */
static oct_status draw_curve(oct_size_units *u, oct_err *err)
{
    oct_conversion *c = u->c;
    step *s = oct_arena_calloc(u->a, u->n * OCT_SIZE_FORMS + 1, sizeof *s);
    const size_t n = s ? list_steps(u, s) : 0;
    oct_size_point *p = oct_arena_calloc(c->arena, n + 1, sizeof *p);
    double noise = 0, bytes = (double)c->size.least;
    if (!s || !p)
        return oct_nomem(err);
    for (size_t i = 0; i < u->n; i++)
        noise += u->unit[i].aside ? 0 : u->unit[i].option[first_form(&u->unit[i])].noise;
    p[0] = (oct_size_point){ "", "", bytes, oct_size_decibels(noise), true };
    for (size_t i = 0; i < n; i++) {
        const oct_size_unit *x = &u->unit[s[i].unit];
        const char *name = oct_arena_strdup(c->arena, oct_node_label(u->j->g, x->first));
        noise -= s[i].noise;
        bytes += s[i].bytes;
        p[i + 1] = (oct_size_point){ name, oct_size_forms[s[i].form].name, bytes, oct_size_decibels(noise),
                                     x->option[x->at].noise <= x->option[s[i].form].noise };
        if (!name)
            return oct_nomem(err);
    }
    c->size.sqnr = oct_size_decibels(oct_size_noise(u));
    c->size.point = p;
    c->size.n = n + 1;
    return OCT_OK;
}

/* ---- choosing ---- */

/* Makes decisions, including what follows them if `rounded`, and counts the bytes of the file. */
static oct_status apply(oct_size_units *u, bool rounded, uint64_t *bytes, oct_err *err)
{
    OCT_TRY(oct_size_apply(u, err));
    for (int k = OCT_STEP_CHOICE + 1; k < OCT_STEP_COUNT && rounded; k++)
        OCT_TRY(u->c->run_methods(u->c, (oct_method_step)k, err));
    OCT_TRY(oct_conversion_settle(u->c, err));
    return oct_conversion_size(u->c, bytes, err);
}

static oct_status fit(oct_size_units *u, bool rounded, oct_err *err)
{
    oct_conversion *c = u->c;
    step *s = oct_arena_calloc(u->a, u->n * OCT_SIZE_FORMS + 1, sizeof *s);
    if (!s)
        return oct_nomem(err);
    const size_t n = list_steps(u, s);
    uint64_t bytes;
    const double fewest = begin(u);
    OCT_TRY(apply(u, rounded, &c->size.least, err));
    if (!c->size.limit)
        c->size.limit = (uint64_t)limit_of(u, (double)c->size.least, fewest);
    const double limit = (double)c->size.limit;
    double room = limit - (double)c->size.least;
    bytes = c->size.least;
    for (int round = 0; room > 0 && (round == 0 || (double)bytes > limit); round++) {
        OCT_TRY(choose_within(u, s, n, room, err));
        OCT_TRY(apply(u, rounded, &bytes, err));
        room = round < MOST_ROUNDS ? room - fmax((double)bytes - limit, 0) : 0;
    }
    if ((double)bytes > limit && c->size.least <= c->size.limit) {
        begin(u);
        OCT_TRY(apply(u, rounded, &bytes, err));
    }
    c->size.missed = c->size.least > c->size.limit;
    c->size.now = bytes;
    c->size.taken = 0;
    return OCT_OK;
}

/* Whether the policy puts a node between layers on integers. */
static bool has_integers(const oct_size_units *u)
{
    for (size_t i = 0; i < u->j->n_layer; i++) {
        const int id = u->j->layer[i];
        const oct_op *op = oct_op_of(u->j->g, id);
        if (oct_kept_scheme(&u->first, id) == OCT_SCHEME_STATIC && !oct_kept_row(&u->first, id)->asked && op &&
            op->quant != OCT_QUANT_WEIGHTED)
            return true;
    }
    return false;
}

/* *own: forms of the units that fit the limit, with the other nodes as in u; NULL: there are none. */
static oct_status fit_with(oct_size_units *u, oct_size_others others, int **own, oct_err *err)
{
    oct_size_choice *z = &u->c->size;
    u->others = others;
    OCT_TRY(fit(u, false, err));
    *own = NULL;
    if (z->now > z->limit)
        return OCT_OK;
    if (!(*own = oct_arena_calloc(u->a, u->n + 1, sizeof **own)))
        return oct_nomem(err);
    for (size_t i = 0; i < u->n; i++)
        (*own)[i] = u->unit[i].at;
    return OCT_OK;
}

oct_status oct_size_choose(oct_conversion *c, oct_err *err)
{
    const oct_size_limit *l = &c->o.size;
    int *own[2] = { NULL, NULL };
    if (!l->bytes && !(l->share > 0) && !(l->bits > 0))
        return OCT_OK;
    if (!(c->size_units = oct_arena_calloc(c->arena, 1, sizeof *c->size_units)))
        return oct_nomem(err);
    OCT_TRY(oct_size_list(c, c->arena, c->size_units, err));
    c->size.measured = c->size_units->measured;
    OCT_TRY(fit_with(c->size_units, OCT_SIZE_OTHERS_POLICY, &own[0], err));
    const double noise = oct_size_noise(c->size_units);
    if (has_integers(c->size_units) && noise > 0)
        OCT_TRY(fit_with(c->size_units, OCT_SIZE_OTHERS_FLOAT, &own[1], err));
    if ((own[0] || own[1]) && noise > 0)
        OCT_TRY(oct_size_compare(c->size_units, own, err));
    return draw_curve(c->size_units, err);
}

oct_status oct_size_hold(oct_conversion *c, oct_err *err)
{
    uint64_t bytes;
    if (!c->size_units)
        return OCT_OK;
    OCT_TRY(oct_conversion_size(c, &bytes, err));
    if (bytes <= c->size.limit)
        return OCT_OK;
    OCT_TRY(fit(c->size_units, true, err));
    return draw_curve(c->size_units, err);
}
