/* Fuzz target: any bytes as ranges of another tool: an error, or a table that reads back and that each form writes so
 * that it reads it. */
#include "encodings/encodings.h"

#include "base/mem.h"
#include "fuzz_net.h"
#include "fuzz_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pins(const oct_calib *c)
{
    for (size_t i = 0; i < c->n_tensors; i++) {
        const oct_calib_tensor *t = c->tensors[i];
        const oct_calib_exact *x = &t->exact;
        if (!t->pinned && !t->off)
            abort();
        if (!(t->pin.lo <= 0 && t->pin.hi >= 0 && isfinite(t->pin.lo) && isfinite(t->pin.hi)))
            abort();
        if (x->bits && !((x->bits == 8 || x->bits == 16) && x->scale > 0 && isfinite(x->scale) && x->zero >= 0 &&
                         x->zero < 1 << x->bits))
            abort();
    }
}

static void check_forms(const oct_calib *c)
{
    for (size_t i = 0; i < oct_encoding_form_count(); i++) {
        oct_buf b = OCT_BUF_INIT;
        oct_encodings e;
        oct_encodings_match m;
        oct_calib *into = oct_calib_create();
        size_t n;
        const oct_status s =
            oct_encodings_text(oct_encoding_form_at(i), c, oct_observer_default(), network(), &b, &n, NULL);
        if (s == OCT_OK && n > 0) {
            const oct_status read = oct_encodings_parse(b.data, b.len, "again", &e, NULL);
            if (read != OCT_OK && read != OCT_EUNSUPPORTED)
                abort();
            if (read == OCT_OK && oct_encodings_take(&e, "again", network(), into, &m, NULL) != OCT_OK)
                abort();
            oct_encodings_free(&e);
        } else if (s != OCT_OK && s != OCT_EUSAGE) {
            abort();
        }
        oct_calib_destroy(into);
        oct_buf_free(&b);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_encodings e;
    oct_encodings_match m;
    oct_calib *c = oct_calib_create();
    if (oct_encodings_parse(data, size, "fuzz", &e, NULL) == OCT_OK) {
        check_pins(e.ranges);
        check_reads_back(e.ranges);
        if (oct_encodings_take(&e, "fuzz", network(), c, &m, NULL) == OCT_OK) {
            check_pins(c);
            check_forms(c);
        }
    }
    oct_encodings_free(&e);
    oct_calib_destroy(c);
    return 0;
}
