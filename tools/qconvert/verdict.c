/* Prints how the result compares with the goals. */
#include "qconvert/qconvert.h"

#include "cli/textfmt.h"

/* Prints the result of the trials. */
static void print_trials(const session *s, FILE *f)
{
    const oct_conversion *c = &s->of.c;
    char text[OCT_TRIAL_TEXT];
    size_t at = 0;
    while (at < c->n_trials && !c->trials[at].taken)
        at++;
    if (c->n_trials < 2 && !c->stopped)
        return;
    const size_t n = c->n_trials - 1;
    oct_print(f, "%zu trial%s%s: %s", n, n == 1 ? "" : "s", c->stopped ? ", then the time limit ended them" : "",
              oct_goal_trial_text(text, &c->trials[at]));
    oct_print(f,
              c->divided ? "; %llu samples chose, others judge\n"
                         : "; the samples that judge also chose (too few to decide in halves)\n",
              (unsigned long long)c->trials[at].samples);
}

void verdict_goals(const session *s, FILE *f)
{
    char text[OCT_GATE_TEXT];
    if (!s->of.c.verdict || !s->of.n_goals)
        return;
    print_trials(s, f);
    for (size_t i = 0; i < s->of.n_goals;
         i++) { /* the value of the metric for each goal, and whether the samples suffice */
        const oct_eval_score x = oct_conversion_goal_score(&s->of.c, i);
        oct_print(f, "goal: %s\n", oct_goal_text(text, &s->of.goals[i], &x));
    }
}
