/* The table of methods, and which of them a conversion uses. */
#include "quant/methods/methods.h"

#include <math.h>
#include <string.h>

#define OCT_STEP(function, words)
#define OCT_METHOD(m) extern const oct_method m;
#include "quant/convert/steps.inc"
#undef OCT_METHOD
#define OCT_METHOD(m) &m,
static const oct_method *const all[] = {
#include "quant/convert/steps.inc"
};
#undef OCT_METHOD
#undef OCT_STEP
_Static_assert(OCT_COUNT(all) <= OCT_METHODS_MAX, "a set holds all methods");

const oct_method *const *oct_method_all(size_t *n)
{
    *n = OCT_COUNT(all);
    return all;
}

const char *oct_method_step_name(oct_method_step s)
{
    static const char *const names[] = {
        [OCT_STEP_GRAPH] = "graph",     [OCT_STEP_RANGES] = "ranges",     [OCT_STEP_CHOICE] = "choice",
        [OCT_STEP_WEIGHTS] = "weights", [OCT_STEP_ROUNDING] = "rounding", [OCT_STEP_BIASES] = "biases"
    };
    return names[s];
}

const char *oct_method_needs_name(oct_method_needs n)
{
    static const char *const names[] = {
        [OCT_NEEDS_NOTHING] = "nothing", [OCT_NEEDS_STATISTICS] = "statistics", [OCT_NEEDS_SAMPLES] = "samples"
    };
    return names[n];
}

bool oct_method_is_worse(const oct_method_result *r)
{
    const bool less_is_better = strcmp(r->unit ? r->unit : "", "steps") == 0;
    return r->measure && (less_is_better ? r->after > r->before : r->after < r->before);
}

static void put_measured(oct_buf *out, double v, const char *unit)
{
    const bool db = strcmp(unit, "dB") == 0;
    if (isinf(v) && v > 0 && db)
        oct_buf_puts(out, "exact");
    else if (!isfinite(v))
        oct_buf_puts(out, "not finite");
    else
        oct_buf_printf(out, db ? "%.1f %s" : *unit ? "%.2g %s" : "%.2g%s", v, unit);
}

void oct_method_text(const oct_method_result *r, oct_buf *out)
{
    if (!r->measure) {
        oct_buf_puts(out, *r->choice ? r->choice : r->method->summary);
        return;
    }
    oct_buf_printf(out, "%s%s%s ", r->choice, *r->choice ? ", " : "", r->measure);
    put_measured(out, r->after, r->unit);
    oct_buf_puts(out, " (without: ");
    put_measured(out, r->before, r->unit);
    if (oct_method_is_worse(r))
        oct_buf_printf(out, "; kept, as %s", r->although ? r->although : "other measures are better");
    if (r->next) {
        oct_buf_printf(out, "; next best: %s with ", r->next);
        put_measured(out, r->next_value, r->unit);
    }
    oct_buf_puts(out, ")");
}

oct_method_set oct_methods_default(void)
{
    oct_method_set s = { { false }, { false } };
    for (size_t i = 0; i < OCT_COUNT(all); i++)
        s.on[i] = all[i]->by_default;
    return s;
}

oct_method_set oct_methods_high(void)
{
    oct_method_set s = oct_methods_default();
    for (size_t i = 0; i < OCT_COUNT(all); i++)
        s.on[i] |= all[i]->high;
    return s;
}

static oct_status unknown(const char *name, oct_err *err)
{
    oct_nearest near = { .word = name, .most = 1 + (int)strlen(name) / 4 };
    for (size_t i = 0; i < OCT_COUNT(all); i++)
        oct_nearest_try(&near, all[i]->name);
    oct_fail(err, OCT_EUSAGE, "there is no method '%s'", name);
    oct_nearest_hint(&near, 1, "--list-methods shows all", err);
    return OCT_EUSAGE;
}

oct_status oct_methods_switch(oct_method_set *s, const char *name, bool on, oct_err *err)
{
    size_t i = 0;
    while (i < OCT_COUNT(all) && strcmp(all[i]->name, name) != 0)
        i++;
    if (i == OCT_COUNT(all))
        return unknown(name, err);
    if (s->asked[i] && s->on[i] != on)
        return oct_fail(err, OCT_EUSAGE, "the method '%s' is switched on and off", name);
    s->on[i] = on;
    s->asked[i] = true;
    return OCT_OK;
}

void oct_methods_drop_needing(oct_method_set *s, oct_method_needs needs)
{
    for (size_t i = 0; i < OCT_COUNT(all); i++)
        s->on[i] &= all[i]->needs != needs;
}

void oct_methods_drop_step(oct_method_set *s, oct_method_step step)
{
    for (size_t i = 0; i < OCT_COUNT(all); i++)
        s->on[i] &= all[i]->step != step;
}

bool oct_methods_any_needing(const oct_method_set *s, oct_method_needs needs)
{
    bool any = false;
    for (size_t i = 0; i < OCT_COUNT(all); i++)
        any |= s->on[i] && all[i]->needs == needs;
    return any;
}
