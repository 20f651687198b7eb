/* A model on an ONNX test case. */
#include "api/evaluation_int.h"

#include "eval/run/testcase.h"

oct_status oct_evaluation_check(const oct_evaluation *s, double rtol, double atol, oct_case_reports *to, oct_err *err)
{
    if (s->n_models > 1 || s->x.samples.data.n != 1)
        return oct_fail(err, OCT_EUSAGE, "--check runs one model on one test case");
    const char *model = s->x.model, *folder = s->x.samples.data.v[0];
    const oct_check_options o = { rtol, atol, s->pool };
    oct_check_result r;
    OCT_TRY_WITHIN(oct_check_case(s->models[0].graph, folder, &o, &r, err), err, "%s", model);
    oct_check_json(model, folder, &o, &r, &to->json);
    oct_check_junit(model, folder, &r, &to->junit);
    oct_buf_printf(&to->text, "%s: %zu output%s agree, largest difference %.3g", folder, r.outputs,
                   r.outputs == 1 ? "" : "s", r.max_abs);
    if (to->json.failed || to->junit.failed || to->text.failed)
        return oct_nomem(err);
    return r.first[0] ? oct_fail(err, OCT_EGOAL, "%s: %s; %llu of %llu values differ, by at most %.3g", folder, r.first,
                                 (unsigned long long)r.differ, (unsigned long long)r.values, r.max_abs)
                      : OCT_OK;
}
