/* Sensitivity and mixed precision, on networks with a planted cause. */
#include "converted.h"

#include "quant/job/placed.h"
#include "quant/simulate/sensitivity.h"

TEST_GROUP(folder_make, folder_remove);

TEST(planted_value_is_first)
{
    work *w = new_work();
    oct_arena *a = oct_arena_create();
    oct_sensitivity s;
    oct_sim *sim;
    build_planted(w, 100, false);
    decide(w);
    GOOD(oct_conversion_sim(&w->c, (oct_sim_size){ 1 << 30, ROWS / 2, ROWS / 2 }, 0, &sim, err));
    GOOD(oct_sensitivity_measure(sim, w->c.job, 0, true, NULL, a, &s, err));
    assert_true(s.n >= 5 && s.site[0].node < 0 && s.site[0].value == w->c.job->g->input[0]);
    double values = 0, weights = 0;
    for (size_t i = 0; i < s.n; i++) {
        assert_true(i == 0 || s.site[i].noise <= s.site[i - 1].noise);
        *(s.site[i].node < 0 ? &values : &weights) += s.site[i].noise;
    }
    assert_true(s.site[0].noise > 0.8 * values);
    assert_true(fabs(to_db(values) - to_db(s.values.noise)) < 1);
    assert_true(fabs(to_db(weights) - to_db(s.weights.noise)) < 2);
    assert_true(fabs(to_db(values + weights) - to_db(s.all.noise)) < 1);
    oct_arena_destroy(a);
    free_work(w);
}

/* What causes a share of the loss, or of what is left without that, is found with the noise that it has alone. */
TEST(worst_values_are_found)
{
    const double share =
        6.5e-4; /* of all: the planted value alone; of the rest, most of which weights cause: one more */
    work *w = new_work();
    oct_arena *a = oct_arena_create();
    oct_sensitivity all, worst;
    oct_sim *sim;
    build_planted(w, 100, false);
    decide(w);
    GOOD(oct_conversion_sim(&w->c, (oct_sim_size){ 1 << 30, ROWS / 2, ROWS / 2 }, 0, &sim, err));
    GOOD(oct_sensitivity_measure(sim, w->c.job, 0, false, NULL, a, &all, err));
    GOOD(oct_sensitivity_find_worst(sim, w->c.job, share, NULL, a, &worst, err));
    assert_true(all.n == worst.n && all.n >= 3 && all.all.noise == worst.all.noise);
    double left = all.all.noise;
    size_t n = 0;
    for (; n < all.n && all.site[n].noise >= share * left; n++) {
        assert_true(worst.site[n].value == all.site[n].value && worst.site[n].noise == all.site[n].noise);
        left -= all.site[n].noise;
    }
    assert_true(n == 2 && n < all.n);
    oct_arena_destroy(a);
    free_work(w);
}

TEST(planted_cause_stays_float)
{
    for (int wide = 0; wide < 2; wide++) {
        work *plain, *mixed;
        double share;
        const double before = planted(wide ? 400 : 100, wide, false, &plain),
                     after = planted(wide ? 400 : 100, wide, true, &mixed);
        const int stem = node_named(mixed, "stem");
        assert_true(oct_scheme_of(mixed->c.job, stem) == OCT_SCHEME_FLOAT &&
                    strstr(oct_why_of(mixed->c.job, stem), "rounding 'x' alone"));
        assert_int_equal(oct_scheme_of(mixed->c.job, node_named(mixed, "body")), OCT_SCHEME_STATIC);
        assert_true(float_layers(mixed, &share) <= 4 && (wide ? share > 0.03 && before < 20 : share <= 0.03));
        assert_true(after > before + 3);
        const oct_method_result *r = method(mixed, "mixed-precision");
        assert_true(r->ran && r->after > r->before + 3 && strstr(r->choice, "stay float"));
        double spent = 0;
        for (size_t i = 0; i < mixed->c.n_promoted; i++) {
            const oct_promotion *p = &mixed->c.promoted[i];
            assert_true(strcmp(p->value, "x") == 0 && p->loss > 0.3 && p->gain > 1 && p->beyond_budget == (wide != 0));
            assert_string_equal(p->layer, "stem");
            spent += p->macs;
        }
        assert_true(mixed->c.n_promoted == 1 && fabs(spent - share) < 1e-12);
        free_work(plain);
        free_work(mixed);
    }
}

/* Two values beyond the budget. The first, the input, causes nearly all of the loss; the second, behind the stem, has a
 * channel `wide` times larger than the others. The weights of the head are rounded by a channel that is all but 0, but
 * has `large` weights. */
static work *converted_with_two_causes(float wide, float large)
{
    work *w = new_work();
    build_planted(w, 400, true);
    float *stem = weights_in(w, "sw"), *body = weights_in(w, "bw"), *head = weights_in(w, "hw");
    for (int i = 0; i < 4 * 9; i++)
        stem[i] *= wide;
    for (int i = 0; i < 32 * 9; i++)
        body[i / 9 * 72 + i % 9] /= wide;
    for (int i = 0; i < 8 * 9; i++)
        body[i] *= 1e-6f;
    for (int o = 0; o < 8; o++)
        head[o * 32] = large;
    on(w, "mixed-precision");
    decide(w);
    return w;
}

/* Each must win on its own: the second does not where the weights of the head cost more than it does. */
TEST(values_beyond_the_budget_win_alone)
{
    work *w = converted_with_two_causes(64, 80);
    const oct_method_result *r = method(w, "mixed-precision");
    assert_true(w->c.n_promoted == 1 && w->c.promoted[0].beyond_budget);
    assert_string_equal(w->c.promoted[0].value, "x");
    assert_int_equal(oct_scheme_of(w->c.job, node_named(w, "body")), OCT_SCHEME_STATIC);
    assert_true(r->ran && r->after > r->before + 6 && r->after < 20);
    free_work(w);
}

/* In the place of float 16 bits, where the target takes such activations and its costs do not say that they take
 * longer. */
TEST(planted_cause_gets_16_bits)
{
    static const struct {
        const char *text;
        bool wide;
    } each[] = { { "types u8*s8 u16*s8\nop Conv static\n", true },
                 { "types u8*s8 u16*s8\nop Conv static\n" ALL_COSTS("9"), true },
                 { "types u8*s8 u16*s8\nop Conv static\n" ALL_COSTS("11"), false },
                 { "types u8*s8\nop Conv static\n" ALL_COSTS("9"), false } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        work *w = new_work();
        char text[1000];
        snprintf(text, sizeof text, "name mine\nsummary a board\n%s", each[i].text);
        oct_target_close(w->target);
        GOOD(oct_target_parse(text, "t", &w->target, err));
        w->o.job.target = w->target;
        build_planted(w, 100, false);
        for (int o = 0; o < 8; o++) /* the large channel counts for nothing, so that rounded weights cost little */
            weights_in(w, "sw")[o * 4] = 0;
        on(w, "mixed-precision");
        decide(w);
        const oct_qjob *j = w->c.job;
        const int stem = node_named(w, "stem"), body = node_named(w, "body");
        const oct_quant *x = oct_quant_of(j, j->g->input[0]);
        const oct_method_result *r = method(w, "mixed-precision");
        assert_true(w->c.n_promoted == 1 && w->c.promoted[0].wide == each[i].wide);
        assert_string_equal(w->c.promoted[0].value, "x");
        assert_int_equal(oct_scheme_of(j, stem), each[i].wide ? OCT_SCHEME_STATIC : OCT_SCHEME_FLOAT);
        assert_non_null(strstr(oct_why_of(j, stem), each[i].wide ? "activations of 16 bits: rounding 'x' alone"
                                                                 : "left float: rounding 'x' alone"));
        assert_true(each[i].wide ? x && x->dtype == OCT_U16 : !x);
        assert_true(oct_scheme_of(j, body) == OCT_SCHEME_STATIC && oct_row_of(j, body)->activations == OCT_U8);
        assert_true(r->ran && r->after > r->before + 3 && fabs(r->after - to_db(real_noise(w, "y", 1))) < 1);
        free_work(w);
    }
}

/* The weights of the head cost so much that the value within the budget, worth a try, does not win 1 dB; nothing is
 * beyond the budget. */
TEST(what_was_not_measured_does_not_stay)
{
    work *w = new_work();
    build_planted(w, 25, false);
    float *body = weights_in(w, "bw"), *head = weights_in(w, "hw");
    for (int i = 0; i < 8 * 9; i++)
        body[i] *= 1e-6f;
    for (int o = 0; o < 8; o++)
        head[o * 32] = 80;
    on(w, "mixed-precision");
    decide(w);
    double share;
    const oct_sensitivity *s = w->c.sensitivity;
    assert_true(s->site[0].noise > 0.08 * s->all.noise && s->site[0].noise < 0.2 * s->all.noise); /* 1 dB is a fifth */
    assert_true(w->c.n_promoted == 0 && float_layers(w, &share) == 0 && !method(w, "mixed-precision")->ran);
    free_work(w);
}

/* Beside the first the second causes too little to be seen; without it, nearly all. */
TEST(hidden_cause_stays_float)
{
    work *w = converted_with_two_causes(40, 1);
    const oct_method_result *r = method(w, "mixed-precision");
    assert_int_equal(w->c.n_promoted, 2);
    assert_string_equal(w->c.promoted[0].value, "x");
    assert_string_equal(w->c.promoted[1].value, "r");
    assert_true(r->ran && r->after > 40 && fabs(r->after - to_db(real_noise(w, "y", 1))) < 1);
    free_work(w);
}

/* A Conv of 4 channels to 4 that does not mix the first one with the others. */
static int keep_first_apart(oct_graph *g, const char *name, const char *weights, const char *out, int x)
{
    const int w = net_random(g, weights, "4,4,3,3", 5);
    float *v = (float *)(uintptr_t)g->value[w].constant->data;
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 9 && (i / 4 == 0) != (i % 4 == 0); k++)
            v[i * 9 + k] = 0;
    const int y = NET_NODE(g, "Conv", name, out, x, w);
    NET_INTS(g, "pads", 1, 1, 1, 1);
    return y;
}

/* Three values in a row have the same channel, far larger than the others, beside which those are lost in each: none
 * wins alone. */
TEST(values_win_together)
{
    enum { LARGE = 400 };
    work *w = new_work();
    oct_graph *g = w->m.graph;
    set_input(w, "1,4,8,8");
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < 64; i++)
            w->x[r][i] *= LARGE;
    const int stem = net_random(g, "sw", "8,4,3,3", 11);
    for (int o = 0; o < 8; o++)
        for (int i = 0; i < 9; i++)
            ((float *)(uintptr_t)g->value[stem].constant->data)[o * 36 + i] /= LARGE;
    int y = keep_first_apart(g, "second", "w2", "v", keep_first_apart(g, "first", "w1", "u", g->input[0]));
    y = NET_NODE(g, "Conv", "stem", "s", y, stem);
    y = NET_NODE(g, "Conv", "body", "b", NET_NODE(g, "Relu", "r1", "r", y), net_random(g, "bw", "32,8,3,3", 12));
    net_output(g, y);
    on(w, "mixed-precision");
    decide(w);
    const oct_method_result *r = method(w, "mixed-precision");
    assert_int_equal(w->c.n_promoted, 3);
    for (int k = 0; k < 3; k++)
        assert_true(strcmp(w->c.promoted[k].layer, ((const char *const[]){ "first", "second", "stem" })[k]) == 0 &&
                    w->c.promoted[k].beyond_budget);
    assert_true(r->ran && r->before < 15 && r->after > 30);
    free_work(w);
}

/* A chain of 1x1 layers, between which a first channel is far larger than the others, and nothing reads it behind the
 * chain. Each value causes the same share of the loss. The layer behind the chain has most of the
 * multiply-accumulates. */
static work *converted_row(uint32_t seed, int layers, int channels, int outs, const double *budget)
{
    work *w = new_work();
    oct_graph *g = w->m.graph;
    char dims[30];
    snprintf(dims, sizeof dims, "1,%d,8,8", channels);
    set_input(w, dims);
    const float large = 40 + 10 * (float)(seed % 3);
    for (int r = 0; r < ROWS; r++) {
        net_fill(w->x[r], w->size, 100 * seed + (uint32_t)r);
        for (int i = 0; i < 64; i++)
            w->x[r][i] *= large;
    }
    int y = g->input[0];
    for (int k = 0; k < layers; k++) {
        char name[3][20];
        snprintf(dims, sizeof dims, "%d,%d,1,1", channels, channels);
        snprintf(name[0], sizeof name[0], "w%d", k);
        snprintf(name[1], sizeof name[1], "chain%d", k);
        snprintf(name[2], sizeof name[2], "c%d", k);
        const int v = net_random(g, name[0], dims, seed + (uint32_t)k);
        float *m = (float *)(uintptr_t)g->value[v].constant->data;
        for (int i = 0; i < channels * channels; i++) /* as it is, but for little of other small channels */
            m[i] = i / channels == 0 || i % channels == 0 ? i == 0 && k + 1 < layers
                   : i / channels == i % channels         ? 1
                                                          : m[i] / 8;
        y = NET_NODE(g, "Conv", name[1], name[2], y, v);
    }
    snprintf(dims, sizeof dims, "%d,%d,3,3", outs, channels);
    const int body = net_random(g, "bw", dims, seed + 50);
    net_output(g, NET_NODE(g, "Conv", "body", "y", y, body));
    w->o.budget = budget;
    on(w, "mixed-precision");
    decide(w);
    return w;
}

/* Values of which none is worth its layers, but all together are, for 6 dB for each 5 % of the multiply-accumulates
 * beyond the budget. */
TEST(sets_win_together)
{
    const double none = 0;
    for (uint32_t seed = 1; seed <= 6; seed++) {
        const int layers = 4 + (int)(seed % 3), channels = 4 + (int)(seed % 2);
        work *plain = converted_row(seed, layers, channels, 9 * channels, &none),
             *w = converted_row(seed, layers, channels, 9 * channels, NULL);
        const double before = to_db(real_noise(plain, "y", 1)), after = to_db(real_noise(w, "y", 1));
        double share = 0, none_share;
        assert_true(float_layers(plain, &none_share) == 0 && float_layers(w, &share) == layers);
        for (size_t i = 0; i < w->c.n_promoted; i++)
            assert_true(strcmp(w->c.promoted[i].layer, "body") != 0);
        assert_true(before < 20 && share > 0.08 && share < 0.12);
        assert_true(after > 20 && after - before >= 6 * (share - 0.03) / 0.05);
        assert_true(w->c.remedy.budget == 0);
        free_work(plain);
        free_work(w);
    }
}

/* What would be too dear stays on integers, and the record has a budget with which the outputs are of use. */
TEST(larger_budgets_are_tried)
{
    for (uint32_t seed = 1; seed <= 5; seed++) {
        const int layers = 6 + (int)(seed % 3), channels = 4 + (int)(seed % 2);
        work *w = converted_row(seed, layers, channels, 2, NULL);
        double share;
        assert_true(float_layers(w, &share) == 0 && to_db(real_noise(w, "y", 1)) < 20);
        const oct_remedy found = w->c.remedy;
        assert_true(found.budget > 0.28 && found.budget < 1 && found.sqnr >= 20);
        free_work(w);
        w = converted_row(seed, layers, channels, 2, &found.budget);
        assert_true(float_layers(w, &share) > 0 && fabs(share - found.budget) < 1e-9);
        assert_true(fabs(to_db(real_noise(w, "y", 1)) - found.sqnr) < 1);
        free_work(w);
    }
}

/* A layer of 64 channels reads an input of which the first channel is far larger than the others, and four that have
 * most of the multiply-accumulates follow. read: the layer reads the first channel, by weights that are as much
 * smaller. */
static work *converted_stem(uint32_t seed, bool read)
{
    work *w = new_work();
    oct_graph *g = w->m.graph;
    const float large = 200 + 50 * (float)(seed % 3);
    set_input(w, "1,64,4,4");
    for (int r = 0; r < ROWS; r++) {
        net_fill(w->x[r], w->size, 100 * seed + (uint32_t)r);
        for (int i = 0; i < 16; i++)
            w->x[r][i] *= large;
    }
    const int stem = net_random(g, "sw", "64,64,1,1", seed);
    for (int o = 0; o < 64; o++) {
        float *v = (float *)(uintptr_t)g->value[stem].constant->data + (size_t)o * 64;
        v[0] = read ? 8 * v[0] / large : 0;
    }
    int y = NET_NODE(g, "Conv", "stem", "s", g->input[0], stem);
    for (int k = 0; k < 4; k++) {
        char name[3][20];
        snprintf(name[0], sizeof name[0], "body%d", k);
        snprintf(name[1], sizeof name[1], "b%d", k);
        snprintf(name[2], sizeof name[2], "w%d", k);
        y = NET_NODE(g, "Conv", name[0], name[1], y, net_random(g, name[2], "64,64,3,3", seed + 7 + (uint32_t)k));
        NET_INTS(g, "pads", 1, 1, 1, 1);
    }
    net_output(g, y);
    on(w, "mixed-precision");
    decide(w);
    return w;
}

/* A layer that is float for the sake of what it reads has weights in 8 bits, unless these cause the loss, too. */
TEST(float_layers_have_stored_weights)
{
    for (uint32_t seed = 1; seed <= 6; seed++) {
        const bool read = seed % 2;
        work *w = converted_stem(seed, read);
        const int stem = node_named(w, "stem");
        assert_true(w->c.n_promoted == 1 && strcmp(w->c.promoted[0].layer, "stem") == 0);
        assert_non_null(strstr(oct_why_of(w->c.job, stem), "left float: rounding 'x' alone"));
        assert_int_equal(oct_scheme_of(w->c.job, stem), read ? OCT_SCHEME_FLOAT : OCT_SCHEME_STORED);
        assert_true(fabs(to_db(real_noise(w, "b3", 1)) - method(w, "mixed-precision")->after) < 1);
        free_work(w);
    }
}

/* Without a budget nothing is left float, and one that is large enough needs no exception. */
TEST(budgets)
{
    for (int k = 0; k < 2; k++) {
        const double budget = k;
        work *w = new_work();
        double share;
        build_planted(w, 400, true);
        w->o.budget = &budget;
        on(w, "mixed-precision");
        decide(w);
        assert_int_equal(float_layers(w, &share), k);
        assert_true(k ? w->c.n_promoted > 0 && !w->c.promoted[0].beyond_budget : w->c.n_promoted == 0);
        /* What may not be float is told. */
        const oct_culprits *x = &w->c.culprits;
        assert_true(k ? !x->names : x->names && strcmp(x->names, "stem") == 0 && x->n == 1);
        assert_true(k || (x->gain > 6 && fabs(x->macs * (double)oct_graph_macs(w->c.job->g) - 8 * 4 * 9 * 64) < 1));
        free_work(w);
    }
}

/* What is written as decisions is decided again, as its rules say by name what a layer is. */
TEST(layers_with_rules_of_their_own_are_left_alone)
{
    const double none = 0;
    char path[300];
    double share;
    oct_buf rows = OCT_BUF_INIT;
    work *w = new_work();
    snprintf(path, sizeof path, "%s/p.txt", folder);
    for (int again = 0; again < 2; again++) {
        build_planted(w, 400, true);
        w->o.budget = again ? NULL : &none;
        w->o.policy = again ? path : NULL;
        on(w, "mixed-precision");
        decide(w);
        assert_int_equal(float_layers(w, &share), 0);
        if (!again) {
            oct_conversion_put_policy(&w->c, &rows);
            FILE *f = fopen(path, "w");
            assert_true(f && fputs(oct_buf_str(&rows), f) >= 0 && fclose(f) == 0);
            free_work(w);
            w = new_work();
        }
    }
    assert_int_equal(w->c.n_promoted, 0);
    unlink(path);
    oct_buf_free(&rows);
    free_work(w);
}

TEST(harmless_network_stays_integer)
{
    work *w;
    double share;
    planted(1, false, true, &w);
    assert_int_equal(float_layers(w, &share), 0);
    const oct_method_result *r = method(w, "mixed-precision");
    assert_true(!r->ran && strstr(r->why, "no few values") && !r->measure && !w->c.culprits.names);
    free_work(w);
}
