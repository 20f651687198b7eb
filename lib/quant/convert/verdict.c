/* Judges a result: compares it, tries what a warning would name, warns, and holds goals against it. */
#include "quant/convert/convert_int.h"

oct_status oct_conversion_judge(oct_conversion *c, const char *output, oct_err *err)
{
    oct_pick pick;
    OCT_TRY(oct_conversion_compare_result(c, output, &pick, err));
    if (!c->verdict)
        return OCT_OK;
    OCT_TRY(oct_cures_try(c, &pick, err));
    oct_conversion_warn_of_loss(c);
    return oct_conversion_hold_goals(c, err);
}
