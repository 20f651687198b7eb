/* Equations of Einsum. */
#include "ops/nn/einsum.h"

#include <string.h>

bool oct_einsum_has(const oct_einsum_term *t, int label)
{
    for (int i = 0; i < t->n; i++)
        if (t->label[i] == label)
            return true;
    return false;
}

static int letter_of(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

static oct_status add_label(oct_einsum_term *t, int label, oct_err *err)
{
    if (t->n == OCT_MAX_RANK)
        return oct_fail(err, OCT_EUNSUPPORTED, "a term of more than %d dimensions", OCT_MAX_RANK);
    t->label[t->n++] = (int8_t)label;
    return OCT_OK;
}

/* Reads one term up to ',', '-' or the end. dots: dimensions that "..." stands for, or -1: whatever `rank` leaves,
 * which is then returned in *found (-1 without an ellipsis). */
static oct_status read_term(const char **text, int rank, int dots, oct_einsum_term *t, int *found, oct_err *err)
{
    int letters = 0;
    const char *p = *text;
    t->n = 0;
    *found = -1;
    for (; *p != 0 && *p != ',' && *p != '-'; p++)
        letters += letter_of(*p) >= 0;
    for (p = *text; *p != 0 && *p != ',' && *p != '-'; p++) {
        if (*p == ' ')
            continue;
        if (letter_of(*p) >= 0) {
            OCT_TRY(add_label(t, letter_of(*p), err));
            continue;
        }
        if (strncmp(p, "...", 3) != 0 || *found >= 0)
            return oct_fail(err, OCT_EMALFORMED, "equation: unexpected '%c'", *p);
        *found = dots >= 0 ? dots : rank - letters;
        if (*found < 0)
            return oct_fail(err, OCT_EMALFORMED, "equation: a term of %d letters for an operand of %d dimensions",
                            letters, rank);
        for (int i = *found - 1; i >= 0; i--)
            OCT_TRY(add_label(t, OCT_EINSUM_LETTERS + i, err));
        p += 2;
    }
    *text = p;
    return OCT_OK;
}

static oct_status read_output(const char *text, const oct_einsum *e, int dots, oct_einsum_term *out, oct_err *err)
{
    int found;
    OCT_TRY(read_term(&text, 0, dots < 0 ? 0 : dots, out, &found, err));
    if (*text != 0)
        return oct_fail(err, OCT_EMALFORMED, "equation: unexpected '%c' in the output", *text);
    for (int i = 0; i < out->n; i++) {
        bool known = false;
        for (int k = 0; k < e->n; k++)
            known |= oct_einsum_has(&e->in[k], out->label[i]);
        for (int k = 0; k < i; k++)
            known &= out->label[k] != out->label[i];
        if (!known)
            return oct_fail(err, OCT_EMALFORMED, "equation: a label of the output is unknown or occurs twice");
    }
    return OCT_OK;
}

/* Without "->": the ellipsis, then what occurs once. */
static oct_status implied_output(const oct_einsum *e, int dots, oct_einsum_term *out, oct_err *err)
{
    int times[OCT_EINSUM_LETTERS] = { 0 };
    for (int k = 0; k < e->n; k++)
        for (int i = 0; i < e->in[k].n; i++)
            if (e->in[k].label[i] < OCT_EINSUM_LETTERS)
                times[e->in[k].label[i]]++;
    out->n = 0;
    for (int i = dots - 1; i >= 0; i--)
        OCT_TRY(add_label(out, OCT_EINSUM_LETTERS + i, err));
    for (int i = 0; i < OCT_EINSUM_LETTERS; i++)
        if (times[i] == 1)
            OCT_TRY(add_label(out, i, err));
    return OCT_OK;
}

oct_status oct_einsum_parse(const char *equation, const int *rank, int n, oct_einsum *e, oct_err *err)
{
    const char *p = equation;
    int dots = -1, found;
    if (n > OCT_EINSUM_INPUTS)
        return oct_fail(err, OCT_EUNSUPPORTED, "%d operands; at most %d are supported", n, OCT_EINSUM_INPUTS);
    for (e->n = 0; e->n < n; e->n++) {
        oct_einsum_term *t = &e->in[e->n];
        OCT_TRY(read_term(&p, rank[e->n], -1, t, &found, err));
        if (t->n != rank[e->n])
            return oct_fail(err, OCT_EMALFORMED, "equation: %d labels for operand %d, which has %d dimensions", t->n,
                            e->n, rank[e->n]);
        dots = found > dots ? found : dots; /* operands with fewer broadcast */
        if (e->n + 1 < n ? *p != ',' : *p == ',')
            return oct_fail(err, OCT_EMALFORMED, "equation: its number of terms is not %d", n);
        p += *p == ',';
    }
    if (*p == 0)
        return implied_output(e, dots, &e->out, err);
    if (p[1] != '>')
        return oct_fail(err, OCT_EMALFORMED, "equation: unexpected '-'");
    return read_output(p + 2, e, dots, &e->out, err);
}
