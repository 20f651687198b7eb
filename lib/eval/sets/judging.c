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

bool oct_output_fits(const oct_decode_output *p, const oct_set_tensor *t)
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
        if (oct_output_fits(p, &out[i]) && (p->name || p->rank || !rank || out[i].rank == rank)) {
            *t = &out[i];
            return OCT_OK;
        }
    place_text(text, p, rank);
    oct_fail(err, OCT_EUSAGE, "--decode: the model has no %s", text);
    list_outputs(out, n, err);
    return OCT_EUSAGE;
}
