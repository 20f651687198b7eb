/* qconvert lint: what the target would make of each node. */
#include "qconvert/qconvert.h"

#include "cli/text_table.h"
#include "cli/textfmt.h"
#include "ops/traits.h"

/* Products of which the int32 sum could wrap: 255 * 255 * K beyond 2^31. */
enum { MOST_K = 33025 };

typedef struct linter {
    session s;
    oct_qjob *job;
    oct_layer *layers;
    size_t n;
} linter;

static oct_status lint_json(const linter *l, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    oct_json j = OCT_JSON_INIT(&b);
    oct_json_open(&j, NULL, '{');
    oct_json_str(&j, "schema", "octet-lint-1");
    oct_json_str(&j, "model", l->s.a->model);
    oct_json_str(&j, "target", oct_target_name(l->s.target));
    oct_json_rows(&j, "nodes", l->layers, l->n, sizeof *l->layers, report_decision);
    return tool_write_json(l->s.cli->json, &j, err);
}

static oct_status lint_table(const linter *l, oct_err *err)
{
    FILE *f = oct_cli_result(l->s.cli);
    const oct_layer_count c = oct_layers_count(l->layers, l->n);
    oct_table *t = oct_table_of("llll", (const char *[]){ "node", "op", "runs as", "why" });
    for (size_t i = 0; i < l->n; i++) {
        const oct_layer *x = &l->layers[i];
        oct_table_texts(t, (const char *[]){ x->name, x->d.op, x->d.integer ? "int8" : oct_scheme_name(x->d.scheme), x->d.why });
    }
    oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    oct_print(f, "\n%zu of %zu nodes would run on integers in %s.\n", c.integer_nodes, c.nodes, oct_target_name(l->s.target));
    return s;
}

static void warn_depths(const linter *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const oct_layer *x = &l->layers[i];
        char text[300];
        int64_t k = x->d.integer ? oct_node_depth(x->d.graph, x->d.node) : 0;
        if (k > MOST_K)
            oct_cli_warn(l->s.cli, "%s sums %lld products: with extreme quantized values the 32-bit sum could wrap",
                         oct_node_text(x->d.graph, x->d.node, text, sizeof text), (long long)k);
    }
}

static oct_status lint(linter *l, oct_cli *cli, const convert_args *a, oct_err *err)
{
    OCT_TRY(session_open(&l->s, cli, a, err));
    OCT_TRY_WITHIN(session_preview(&l->s, l->s.m->graph, &l->job, &l->layers, &l->n, err), err, "%s", a->model);
    if (cli->json)
        OCT_TRY(lint_json(l, err));
    if (!cli->quiet)
        OCT_TRY(lint_table(l, err));
    warn_depths(l);
    return OCT_OK;
}

oct_status qconvert_lint(oct_cli *cli, const convert_args *a, oct_err *err)
{
    linter l = { .job = NULL };
    convert_args own = *a;
    own.no_save = true;
    oct_status s = lint(&l, cli, &own, err);
    oct_qjob_destroy(l.job);
    session_close(&l.s);
    return s;
}
