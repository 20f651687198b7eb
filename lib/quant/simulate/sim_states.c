/* Starts runs where rounding starts. Measurements that round a few values each are mostly made in the order of the
 * graph. Up to the first rounded value, a run equals the one before it. So the state at that point is kept, and the
 * next run continues from it. */
#include "quant/simulate/simulate_int.h"

#include "quant/convert/convert_int.h"
#include "quant/job/placed.h"

#include <string.h>

static bool keeps_states(const oct_sim_core *s)
{
    return !s->keep && !s->show && s->mask->value && s->now == &s->graph[SIM_REAL];
}

bool oct_sim_is_on(const oct_sim_core *s, size_t tap)
{
    const bool *on = s->mask->value;
    const oct_qjob *j = s->c->job;
    const int v = oct_sim_value(j, s->tapped[tap]);
    return !on || on[oct_sim_way(j, s->tapped[tap]) == OCT_SIM_AT_RUN ? v : oct_params_root(j, v)];
}

/* Whether it is shown: the value has parameters, and oct_sim_show was asked for it. */
static bool is_shown(const oct_sim_core *s, size_t tap)
{
    const oct_qjob *j = s->c->job;
    return oct_sim_way(j, s->tapped[tap]) == OCT_SIM_OWN && s->wanted[oct_sim_value(j, s->tapped[tap])];
}

oct_status oct_sim_need_states(oct_sim_core *s, const oct_sim *set, oct_err *err)
{
    bool there = true;
    for (size_t t = 0; t < s->threads; t++)
        if (!s->worker[t].passed)
            there &= (s->worker[t].passed = oct_arena_calloc(s->decided, s->n_taps + 1, sizeof(bool))) != NULL;
    for (size_t i = 0; i < set->n_samples; i++)
        if (!set->sample[i]->passed)
            there &= (set->sample[i]->passed = oct_arena_calloc(s->decided, s->n_taps + 1, sizeof(bool))) != NULL;
    return there ? OCT_OK : oct_nomem(err);
}

void oct_sim_drop_states(oct_sim_core *s)
{
    for (size_t t = 0; s->worker && t < s->threads; t++)
        s->worker[t].passed = NULL;
    for (int half = 0; half < 2; half++)
        for (size_t i = 0; i < s->half[half].n_samples; i++) {
            oct_plan_state_free(&s->half[half].sample[i]->state);
            s->half[half].sample[i]->passed = NULL;
        }
}

/* Whether no value that will be rounded or shown was passed before the state. */
static bool is_usable(const oct_sim_core *s, const sim_sample *x)
{
    bool usable = x->state.at > 0;
    for (size_t i = 0; i < s->n_taps && usable; i++)
        usable = !x->passed[i] || !(s->show ? is_shown(s, i) : oct_sim_is_on(s, i));
    return usable;
}

/* Restores the state, or starts at the beginning. */
static oct_status begin(sim_worker *w, oct_runner *r, bool restore, oct_plan **plan, oct_err *err)
{
    sim_sample *x = w->s->set->sample[w->sample];
    const size_t n = w->s->n_taps * sizeof *w->passed;
    if (restore)
        memcpy(w->passed, x->passed, n);
    else
        memset(w->passed, 0, n);
    OCT_TRY(oct_runner_begin(r, x->input, plan, err));
    return restore ? oct_plan_restore(*plan, &x->state, err) : OCT_OK;
}

static oct_status show_sample(sim_worker *w, oct_runner *r, oct_plan **plan, oct_err *err)
{
    const oct_sim_core *s = w->s;
    sim_sample *x = s->set->sample[w->sample];
    bool shown;
    size_t last = s->n_taps;
    const oct_status st = begin(w, r, is_usable(s, x), plan, err);
    if (st == OCT_EUNSUPPORTED)
        return oct_runner_run(r, x->input, plan, err); /* the model runs in stages, from beginning to end */
    OCT_TRY(st);
    for (size_t i = 0; i < s->n_taps; i++)
        if (is_shown(s, i) && !w->passed[i] && oct_plan_shows(*plan, i)) {
            OCT_TRY(oct_plan_advance(*plan, i, &shown, err));
            last = i;
        }
    if (last == s->n_taps) /* there was nothing left to show */
        return OCT_OK;
    memcpy(x->passed, w->passed, s->n_taps * sizeof *x->passed);
    x->passed[last] = false; /* it will be shown again from there */
    if (!oct_plan_save(*plan, &x->state))
        oct_plan_state_free(&x->state);
    return OCT_OK;
}

oct_status oct_sim_run_sample(sim_worker *w, oct_runner *r, oct_plan **plan, oct_err *err)
{
    const oct_sim_core *s = w->s;
    sim_sample *x = s->set->sample[w->sample];
    bool shown;
    w->real = keeps_states(s);
    if (s->show)
        return show_sample(w, r, plan, err);
    if (!w->real)
        return oct_runner_run(r, x->input, plan, err);
    OCT_TRY(oct_runner_plan(r, x->input, &w->plan, err));
    w->ahead = !is_usable(s, x);
    const oct_status st = begin(w, r, !w->ahead, plan, err);
    if (st == OCT_EUNSUPPORTED)
        return oct_runner_run(r, x->input, plan, err); /* the model runs in stages, and no state is ever kept */
    OCT_TRY(st);
    return oct_plan_advance(*plan, OCT_NO_TAP, &shown, err);
}

void oct_sim_pass(sim_worker *w, size_t tap)
{
    if (!w->real)
        return;
    w->ahead |= !w->passed[tap];
    w->passed[tap] = true;
}

void oct_sim_end_real(sim_worker *w)
{
    sim_sample *x = w->s->set->sample[w->sample];
    if (w->real && w->ahead) {
        memcpy(x->passed, w->passed, w->s->n_taps * sizeof *x->passed);
        if (!oct_plan_save(w->plan, &x->state))
            oct_plan_state_free(&x->state);
    }
    w->real = false;
}
