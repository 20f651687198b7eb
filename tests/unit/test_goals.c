/* Layers that stay float, or get 16 bits, for a goal. */
#include "converted.h"

#include "quant/job/placed.h"

TEST_GROUP(folder_make, folder_remove);

/* A conversion of the planted network that is to reach so many dB. */
static work *with_goal(double db, int trials, oct_goal *goal)
{
    work *w = new_work();
    build_planted(w, 100, false);
    *goal = (oct_goal){ .option = "--min-sqnr", .metric = "sqnr", .limit = { pow(10, -db / 10), false } };
    w->o.goals = goal;
    w->o.n_goals = 1;
    w->o.trials = trials;
    decide(w);
    return w;
}

TEST(goal_leaves_the_culprit_float)
{
    oct_goal goal;
    work *plain;
    double share;
    const double before = planted(100, false, false, &plain);
    work *w = with_goal(before + 4, 8, &goal);
    const oct_qjob *j = w->c.job;
    assert_int_equal(w->c.n_trials, 2);
    assert_true(!w->c.trials[0].met && !w->c.trials[0].taken && w->c.trials[1].met && w->c.trials[1].taken);
    assert_true(fabs(w->c.trials[0].sqnr - before) < 2 && w->c.trials[1].sqnr > before + 4);
    assert_int_equal(w->c.trials[1].layers, 1);
    assert_int_equal(float_layers(w, &share), 1);
    assert_true(fabs(share - w->c.trials[1].macs) < 1e-12 && share > 0);
    assert_int_equal(oct_scheme_of(j, node_named(w, "stem")), OCT_SCHEME_FLOAT);
    assert_non_null(strstr(oct_why_of(j, node_named(w, "stem")), "to reach the goal: rounding the value 'x'"));
    assert_int_equal(oct_scheme_of(j, node_named(w, "body")), OCT_SCHEME_STATIC);
    assert_true(to_db(real_noise(w, "y", 0)) > before + 4); /* of other samples, by really quantized graphs */
    free_work(w);
    free_work(plain);
}

/* Around a value 16 bits come before float, where the target takes them and its costs do not say that they take longer;
 * weights that are the cause become float all the same. */
TEST(goals_widen_before_they_leave_float)
{
    static const struct {
        const char *target;
        bool wide;
        double db;
        float channel; /* of the head's weights, beside those below 1; 0: values of the stem are the cause */
    } each[] = { { "types u8*s8 u16*s8\nop Conv static\n", true, 30, 0 },
                 { "types u8*s8 u16*s8\nop Conv static\n" ALL_COSTS("11"), false, 30, 0 },
                 { "types u8*s8\nop Conv static\n", false, 30, 0 },
                 { "types u8*s8 u16*s8\nop Conv static per-tensor\n", false, 34, 80 } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        work *w = new_work();
        char text[1000];
        snprintf(text, sizeof text, "name mine\nsummary a board\n%s", each[i].target);
        oct_target_close(w->target);
        GOOD(oct_target_parse(text, "t", &w->target, err));
        w->o.job.target = w->target;
        build_planted(w, each[i].channel > 0 ? 1 : 100, false);
        for (int o = 0; o < 8; o++) { /* the large channel counts for nothing, so that rounded weights cost little */
            weights_in(w, "sw")[o * 4] = 0;
            if (each[i].channel > 0)
                weights_in(w, "hw")[o * 32] = each[i].channel;
        }
        oct_goal goal = { .option = "--min-sqnr", .metric = "sqnr", .limit = { pow(10, -each[i].db / 10), false } };
        w->o.goals = &goal;
        w->o.n_goals = 1;
        w->o.trials = 8;
        decide(w);
        const oct_qjob *j = w->c.job;
        const char *culprit = each[i].channel > 0 ? "head" : "stem";
        const oct_goal_trial *first = &w->c.trials[0], *taken = &w->c.trials[1];
        assert_true(w->c.n_trials >= 2 && !first->met && taken->met && taken->taken);
        assert_true(first->layers + first->wide == 0 && taken->layers == !each[i].wide && taken->wide == each[i].wide);
        assert_true((taken->macs > 0) == !each[i].wide);
        const int q = node_named(w, culprit);
        assert_int_equal(oct_scheme_of(j, q), each[i].wide ? OCT_SCHEME_STATIC : OCT_SCHEME_FLOAT);
        assert_true(strncmp(oct_why_of(j, q),
                            each[i].wide ? "activations of 16 bits to reach the goal" : "left float to reach the goal",
                            28) == 0);
        assert_non_null(strstr(oct_why_of(j, q),
                               each[i].channel > 0 ? "rounding the weights of 'head'" : "rounding the value 'x'"));
        assert_true(!each[i].wide || oct_quant_of(j, j->g->input[0])->dtype == OCT_U16);
        assert_true(oct_row_of(j, node_named(w, "body"))->activations == OCT_U8);
        assert_true(to_db(real_noise(w, "y", 0)) > each[i].db); /* of other samples, by really quantized graphs */
        free_work(w);
    }
}

/* What is out of reach is left at the best that the trials found; what is reached at once takes none. */
TEST(goals_end_with_their_trials)
{
    static const struct {
        double db;
        int trials;
        size_t want;
    } cases[] = {
        { 300, 0, 0 }, { 300, 1, 2 }, { 300, 8, 4 }, { -50, 8, 1 }
    }; /* all float is equal: the second trial; a third wants to do with less */
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_goal goal;
        work *w = with_goal(cases[i].db, cases[i].trials, &goal);
        double best = -INFINITY;
        size_t taken = 0;
        assert_int_equal(w->c.n_trials, cases[i].want);
        for (size_t k = 0; k < w->c.n_trials; k++) {
            taken += w->c.trials[k].taken;
            best = fmax(best, w->c.trials[k].sqnr);
        }
        assert_int_equal(taken, cases[i].want > 0);
        for (size_t k = 0; k < w->c.n_trials; k++)
            assert_int_equal(w->c.trials[k].taken, w->c.trials[k].sqnr == best);
        assert_int_equal(isinf(best) && best > 0, cases[i].want == 4);
        free_work(w);
    }
}
