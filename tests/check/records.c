/* tests/check/records.c -- names of kernel records, and the choice of one of them by chance. */
#include "check.h"
#include "kernels/dw/dw_int.h"
#include "kernels/conv/qflat.h"
#include "kernels/conv/qwinograd.h"
#include "kernels/qgemm/qgemm.h"
#include "kernels/sgemm/sgemm.h"

size_t oct_check_records(bool bytes, const char *names[OCT_CHECK_RECORDS])
{
    const oct_isa have = oct_isa_active();
    size_t n = 0, count[4];
    const oct_sgemm_kernel *s = oct_sgemm_kernels(&count[0]);
    const oct_sdw_kernel *sd = oct_sdw_kernels(&count[1]);
    const oct_qgemm_kernel *q = oct_qgemm_kernels(&count[2]);
    const oct_qdw_kernel *qd = oct_qdw_kernels(&count[3]);
    for (size_t i = 0; i < count[0] && !bytes; i++)
        if ((s[i].isa & ~have) == 0)
            names[n++] = s[i].name;
    for (size_t i = 0; i < count[1] && !bytes; i++)
        if ((sd[i].isa & ~have) == 0)
            names[n++] = sd[i].name;
    for (size_t i = 0; i < count[2] && bytes; i++)
        if ((q[i].isa & ~have) == 0)
            names[n++] = q[i].name;
    for (size_t i = 0; i < count[3] && bytes; i++)
        if ((qd[i].isa & ~have) == 0)
            names[n++] = qd[i].name;
    const oct_qwinograd_kernel *const *qw = oct_qwinograd_kernels(&count[0]);
    for (size_t i = 0; i < count[0] && bytes; i++)
        if ((qw[i]->isa & ~have) == 0)
            names[n++] = qw[i]->name;
    if (bytes)
        names[n++] = OCT_QFLAT_NAME;
    return n;
}

void oct_check_want_any(oct_check *t, bool bytes)
{
    const char *names[OCT_CHECK_RECORDS];
    const size_t n = oct_check_records(bytes, names), i = oct_check_below(t, n + 1);
    oct_choice_want(i < n ? names[i] : NULL, NULL);
}
