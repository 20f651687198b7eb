/* lib/encodings/text_of_table.c -- from a calibration table to the text of a form. */
#include "encodings/encodings_int.h"

#include "base/mem.h"

#include <math.h>

#define LARGEST 0x1p120f /* so that no bound that follows from the parameters is beyond float32 */

/* Parameters as the form has them: of int8 around zero, or of unsigned values. */
static void parameters(const oct_encoding_form *f, const oct_calib_tensor *t, const oct_qrange *g, oct_encoding_row *r)
{
    const oct_calib_exact *x = &t->exact;
    const oct_range within = { fmaxf(r->range.lo, -LARGEST), fminf(r->range.hi, LARGEST) };
    r->bits = 8;
    r->q = oct_qparams_from_range(within, *g);
    if (!t->pinned || !x->bits || (f->symmetric && !(x->bits == 8 && x->zero == 128)))
        return;
    r->bits = x->bits;
    r->q = (oct_qparams){ x->scale, f->symmetric ? 0 : x->zero };
}

/* Those of tensors that have a range. */
static oct_status find_rows(const oct_encoding_form *f, const oct_calib *c, oct_observer_spec observer,
                            oct_encoding_rows *rows, oct_err *err)
{
    const oct_qrange g = f->symmetric ? (oct_qrange){ -127, 127, true } : (oct_qrange){ 0, 255, false };
    for (size_t i = 0; i < c->n_tensors; i++) {
        const oct_calib_tensor *t = c->tensors[i];
        oct_encoding_row r = { .name = t->name, .range = t->pin };
        oct_selection sel;
        if (t->off || (!t->pinned && oct_stats_finite(&t->stats) == 0))
            continue;
        if (!t->pinned) {
            OCT_TRY_WITHIN(oct_observe(&t->stats, observer, g, &sel, err), err, "tensor '%.200s'", t->name);
            r.range = sel.range;
        }
        parameters(f, t, &g, &r);
        rows->v[rows->n++] = r;
    }
    return OCT_OK;
}

oct_status oct_encodings_text(const oct_encoding_form *f, const oct_calib *c, oct_observer_spec observer,
                              const oct_graph *g, oct_buf *out, size_t *n, oct_err *err)
{
    oct_encoding_rows rows = { .v = oct_calloc(c->n_tensors + 1, sizeof *rows.v), .g = g };
    oct_status s = rows.v ? find_rows(f, c, observer, &rows, err) : oct_nomem(err);
    if (s == OCT_OK && rows.n == 0)
        s = oct_fail(err, OCT_EUSAGE, "the table has no range for any tensor");
    if (s == OCT_OK)
        s = f->write(&rows, out, err);
    *n = f->by_layer ? rows.written : rows.n;
    oct_free(rows.v);
    return s == OCT_OK && out->failed ? oct_nomem(err) : s;
}
