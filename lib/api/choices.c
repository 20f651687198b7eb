#include "api/choices.h"
#include "api/report_forms.h"

/* The compiler compares the declarations of both. */
#include "data/data.h"
#include "encodings/encodings.h"
#include "eval/metrics/costs.h"
#include "eval/metrics/metric.h"
#include "eval/report/printers.h"
#include "eval/sets/decode.h"
#include "observers/observer.h"
#include "passes/pass.h"
#include "quant/methods/methods.h"
#include "quant/policy/policy.h"
#include "targets/target.h"

const char *oct_choice_scheme(size_t i, const char **summary)
{
    return i < OCT_SCHEME_COUNT ? oct_scheme_name((oct_scheme)i) : NULL;
}

const char *oct_choice_pass(size_t i, const char **summary)
{
    size_t n;
    const oct_pass *const *p = oct_pass_all(&n);
    *summary = i < n ? p[i]->summary : NULL;
    return i < n ? p[i]->name : NULL;
}

oct_status oct_choice_target_proof(const char *name, const char **proof, oct_err *err)
{
    static const char *const words[] = { "run here", "rules only", "twin proved" };
    oct_target *t;
    OCT_TRY(oct_target_open(name, &t, err));
    *proof = words[oct_target_rules_of(t)->proof];
    oct_target_close(t);
    return OCT_OK;
}

bool oct_choice_method_at(size_t i, oct_choice_method *m)
{
    size_t n;
    const oct_method *const *all = oct_method_all(&n);
    if (i >= n)
        return false;
    *m = (oct_choice_method){
        all[i]->name,       all[i]->summary, oct_method_step_name(all[i]->step), oct_method_needs_name(all[i]->needs),
        all[i]->by_default, all[i]->high
    };
    return true;
}
