/* The outputs of a model over samples. */
#include "api/evaluation_int.h"

#include "eval/run/outputs.h"
#include "ops/op.h"

oct_status oct_evaluation_outputs(oct_evaluation *e, const char *path, oct_err *err)
{
    const oct_eval_model *m = &e->models[0];
    if (e->n_models > 1)
        return oct_fail(err, OCT_EUSAGE, "--outputs runs one model, and %zu are given", e->n_models);
    OCT_TRY(oct_evaluation_open_samples(e, err));
    const bool shares = oct_op_shares_scales(m->graph);
    const size_t batch = e->x.batch ? (size_t)e->x.batch : 1;
    int64_t samples;
    const oct_engine_opts how = { e->pool, m->bf16, m->remote, m->name, m->twin };
    const oct_status s = oct_write_outputs(m->graph, e->samples.state, e->samples.n_state, &how, e->src, path, batch,
                                           e->h.voice.progress, e->h.voice.arg, &samples, err);
    if (s == OCT_EUNSUPPORTED || s == OCT_ENUMERIC)
        oct_within(err, "%s", e->x.model);
    OCT_TRY(s);
    oct_samples_say_taken(e->h.voice, e->src);
    oct_say(e->h.voice, 0, "%s: outputs of %lld samples%s", path, (long long)samples,
            shares && batch > 1 ? "; the model quantizes dynamically, so they depend on --batch" : "");
    return OCT_OK;
}
