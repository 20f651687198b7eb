/* Fuzz target: any bytes as the parts of a measurement of sensitivities. They are refused, or give measurements that
 * stand once each, and are the same in whatever order the files are named. */
#include "fuzz_parts.h"
#include "quant/simulate/memo_int.h"

#include <math.h>

static void check_entry(oct_memo *m, const oct_memo_entry *e)
{
    oct_sim_loss loss;
    if (!(e->loss.noise >= 0) || isnan(e->loss.sqnr) || (e->from || e->to ? e->from >= e->to : false))
        abort();
    if (!oct_memo_find(m, e->what, e->from, e->to, &loss) || loss.noise != e->loss.noise || loss.sqnr != e->loss.sqnr)
        abort();
}

static void check_memo(oct_memo *m)
{
    oct_err err = OCT_ERR_INIT;
    if (!oct_memo_is_closed(m) || oct_memo_check(m, m->key, &err) != OCT_OK ||
        oct_memo_check(m, m->key + 1, &err) != OCT_EUSAGE || oct_memo_lacks(m, "values", 0, 1, &err) != OCT_EMALFORMED)
        abort();
    for (size_t i = 0; i < m->n; i++)
        check_entry(m, &m->e[i]);
    if (oct_memo_asked(m) != m->n) /* each found itself, and no other */
        abort();
}

/* The measurements as the program writes them, or nothing. */
static oct_status join(const char *const *path, size_t n, oct_buf *text)
{
    static const oct_part_form *const forms[] = { &oct_part_of_sensitivity, NULL };
    oct_err err = OCT_ERR_INIT;
    oct_parts parts;
    oct_status s = oct_parts_open(&parts, forms, path, n, &err);
    if (s == OCT_OK) {
        oct_arena *a = oct_arena_create();
        oct_memo *m;
        s = a ? oct_memo_join(&parts, a, &m, &err) : OCT_ENOMEM;
        if (s == OCT_OK) {
            check_memo(m);
            oct_memo_put(m, text);
        }
        oct_arena_destroy(a);
        oct_parts_close(&parts);
    }
    if (s != OCT_OK && s != OCT_EMALFORMED && s != OCT_EUSAGE)
        abort();
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_buf one = OCT_BUF_INIT, other = OCT_BUF_INIT;
    const size_t n = fuzz_write_parts(data, size);
    const oct_status s = join(fuzz_part_path, n, &one), t = join(fuzz_parts_turned(n), n, &other);
    if ((s == OCT_OK) != (t == OCT_OK) || one.len != other.len ||
        (one.len && memcmp(one.data, other.data, one.len) != 0))
        abort();
    oct_buf_free(&one);
    oct_buf_free(&other);
    return 0;
}
