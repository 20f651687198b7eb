/* What an evaluation judges, and which output a selector means. */
#include "eval/sets/judging.h"

#include "base/buf.h"

#include <stdio.h>
#include <string.h>

oct_set_kind oct_judging_kind(const oct_judging *j)
{
    if (j->rule && j->rule->judges)
        return j->rule->judges;
    return j->truth ? oct_truth_kind(j->truth) : OCT_SET_CLASSES;
}

static bool fits(const oct_decode_output *p, const oct_set_tensor *t)
{
    if (p->name && strcmp(p->name, t->name) != 0)
        return false;
    if (p->rank && p->rank != t->rank)
        return false;
    for (int i = 0; i < p->rank; i++)
        if (p->dims[i] >= 0 && p->dims[i] != t->dims[i])
            return false;
    return true;
}

static void list_outputs(const oct_set_tensor *out, size_t n, oct_err *err)
{
    char dims[96];
    oct_buf b = OCT_BUF_INIT;
    for (size_t i = 0; i < n; i++)
        oct_buf_printf(&b, "%s'%s' %s", i ? ", " : "", out[i].name, oct_dims_text(dims, out[i].rank, out[i].dims));
    oct_hint(err, "of a sample there are %s", oct_buf_str(&b));
    oct_buf_free(&b);
}

static void place_text(char dst[160], const oct_decode_output *p, int rank)
{
    char dims[96] = "";
    if (p->rank)
        oct_dims_text(dims, p->rank, p->dims);
    if (p->name)
        snprintf(dst, 160, "output '%.60s'%s%s", p->name, p->rank ? " of shape " : "", dims);
    else if (p->rank)
        snprintf(dst, 160, "output of shape %s", dims);
    else
        snprintf(dst, 160, "output of %d dimension%s for a sample", rank, rank == 1 ? "" : "s");
}

oct_status oct_output_find(const oct_decode_output *p, int rank, const oct_set_tensor *out, size_t n,
                           const oct_set_tensor **t, oct_err *err)
{
    char text[160];
    for (size_t i = 0; i < n; i++)
        if (fits(p, &out[i]) && (p->name || p->rank || !rank || out[i].rank == rank)) {
            *t = &out[i];
            return OCT_OK;
        }
    place_text(text, p, rank);
    oct_fail(err, OCT_EUSAGE, "--decode: the model has no %s", text);
    list_outputs(out, n, err);
    return OCT_EUSAGE;
}

/* ---- rules that outputs fit ---- */

enum { LEAST_ROWS = 32 }; /* a detector makes more boxes than a picture has */

/* Whether an output has the pattern's name and exactly its dimensions, with more rows than columns and the columns that
 * the rule reads. *rows: how many. *fixed: how many of the name and the dimensions the pattern says. */
static bool has_pattern(const oct_decode_output *o, const oct_set_tensor *t, int64_t *rows, int *fixed)
{
    int64_t columns = 1;
    *rows = 1;
    *fixed = o->name != NULL;
    if (o->boxes || (o->rank && o->rank != t->rank) || (o->name && strcmp(o->name, t->name) != 0))
        return false;
    for (int i = 0; i < o->rank; i++) {
        if (t->dims[i] < 1 || (o->dims[i] >= 0 && o->dims[i] != t->dims[i]))
            return false;
        *(o->dims[i] == OCT_OUTPUT_ROWS ? rows : &columns) *= t->dims[i];
        *fixed += o->dims[i] >= 0;
    }
    const int64_t least = o->last < 0 ? o->first - o->last : o->last + 1;
    return !o->rank || (*rows >= LEAST_ROWS && *rows > columns && columns >= least);
}

/* Finds an output for a part of the rule: of `rows` rows (0: any), and another than `taken` (-1: any). Returns its
 * place, or -1. */
static int find_part(const oct_decode_output *o, const oct_set_tensor *out, size_t n, int64_t *rows, int taken,
                     int *says)
{
    int64_t found;
    int fixed;
    for (size_t i = 0; i < n; i++)
        if ((int)i != taken && has_pattern(o, &out[i], &found, &fixed) && (!*rows || !o->rank || found == *rows)) {
            *rows = *rows ? *rows : found;
            *says += fixed;
            return (int)i;
        }
    return -1;
}

/* How much the rule says of the outputs; -1: it does not fit. */
static int judge(const oct_box_rule *b, const oct_set_tensor *out, size_t n)
{
    const oct_decode_output *others[] = { &b->objectness, &b->scores, &b->classes, &b->count };
    int64_t rows = 0;
    int says = 0;
    const int boxes = find_part(&b->boxes, out, n, &rows, -1, &says);
    if (boxes < 0)
        return -1;
    for (size_t i = 0; i < OCT_COUNT(others); i++) {
        const bool whole = others[i]->first == 0 && others[i]->last == -1;
        if (others[i]->given && find_part(others[i], out, n, &rows, whole ? boxes : -1, &says) < 0)
            return -1;
    }
    return says;
}

size_t oct_rule_guess(const oct_set_tensor *out, size_t n, const char *rule[OCT_GUESSES])
{
    const char *name;
    size_t found = 0;
    int most = 0;
    for (size_t i = 0; (name = oct_decode_builtin(i, NULL)); i++) {
        oct_decode *r = NULL;
        const int says =
            oct_decode_open(name, &r, NULL) == OCT_OK && r->judges == OCT_SET_BOXES ? judge(&r->box, out, n) : -1;
        oct_decode_close(r);
        if (says < 0 || says < most)
            continue;
        found = says > most ? 0 : found;
        most = says;
        if (found < OCT_GUESSES)
            rule[found++] = name;
    }
    return found;
}
