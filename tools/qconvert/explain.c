/* qconvert explain: prints everything that is known about one node. */
#include "qconvert/qconvert.h"

#include "api/inspect.h"
#include "cli/textfmt.h"

#include <math.h>

enum { COLUMN = 11 }; /* where texts begin */

static void print_values(FILE *f, const char *what, const oct_item *values)
{
    for (const oct_item *v = NULL; (v = oct_item_next(values, v));) {
        char head[16], range[96] = "";
        snprintf(head, sizeof head, "%s %lld", what, (long long)oct_item_whole(v, "slot"));
        if (oct_item_at(v, "values"))
            snprintf(range, sizeof range, ", %.5g to %.5g in %lld values", oct_item_number(v, "min"),
                     oct_item_number(v, "max"), (long long)oct_item_whole(v, "values"));
        oct_print_line(f, head, COLUMN, "%s: %s %s%s%s", oct_item_text(v, "name"), oct_item_text(v, "type"),
                       oct_item_text(v, "shape"),
                       oct_item_true(v, "constant")      ? ", constant"
                       : oct_item_true(v, "model_input") ? ", input of the model"
                                                         : "",
                       range);
    }
}

/* " per channel" or " in blocks of 32"; "" for 16-bit floats. */
static const char *layer_grain(const oct_item *d, char dst[32])
{
    if (!oct_item_at(d, "block"))
        return !oct_item_true(d, "integer") ? "" : oct_item_true(d, "per_channel") ? " per channel" : " per tensor";
    snprintf(dst, 32, " in blocks of %d", (int)oct_item_whole(d, "block"));
    return dst;
}

static void print_decision(FILE *f, const oct_item *report, const oct_item *d)
{
    const char *rule = oct_item_text(report, "policy.rule"), *remedy = oct_item_text(d, "remedy"),
               *observer = oct_item_text(d, "observer");
    const oct_item *constraints = oct_item_at(report, "constraints");
    char text[32], grain[32];
    oct_print_line(f, "decision", COLUMN, "%s%s", oct_item_text(d, "scheme"),
                   oct_item_true(d, "integer") ? ", runs on integers" : "");
    oct_print_line(f, "why", COLUMN, "%s", oct_item_text(d, "why"));
    oct_print_line(f, "policy", COLUMN, "%s, set by %s", oct_item_text(report, "policy.scheme"),
                   rule ? rule : "no rule");
    for (const oct_item *c = NULL; (c = oct_item_next(constraints, c));)
        oct_print_line(f, "constraint", COLUMN, "%s, by %s: %s", oct_item_text(c, "what"), oct_item_text(c, "from"),
                       oct_item_text(c, "why"));
    if (oct_item_at(d, "weights"))
        oct_print_line(f, "weights", COLUMN, "%s%s, SQNR %s%s%s", oct_item_text(d, "weights"), layer_grain(d, grain),
                       oct_fmt_db(text, oct_item_number(d, "sqnr_weights_db")), remedy ? "; " : "",
                       remedy ? remedy : "");
    if (oct_item_at(d, "scale"))
        oct_print_line(f, "output", COLUMN, "scale %.9g, zero point %d, observer %s", oct_item_number(d, "scale"),
                       (int)oct_item_whole(d, "zero_point"), observer ? observer : "-");
    if (!isnan(oct_item_number(d, "sqnr_output_db")))
        oct_print_line(f, "", COLUMN, "expected SQNR %s", oct_fmt_db(text, oct_item_number(d, "sqnr_output_db")));
    if (oct_item_at(d, "macs"))
        oct_print_line(f, "work", COLUMN, "%s multiplications in a run, of one sample where the batch is free",
                       oct_fmt_count(text, oct_item_whole(d, "macs")));
    else if (oct_item_at(d, "weight_count"))
        oct_print_line(f, "work", COLUMN,
                       "unknown: its size depends on dimensions that the model leaves open, or on values");
}

static void print(FILE *f, const oct_item *report)
{
    const oct_item *d = oct_item_at(report, "decision"), *attributes = oct_item_at(report, "attributes"),
                   *passes = oct_item_at(report, "passes");
    const char *domain = oct_item_text(report, "domain");
    oct_print_line(f, "node", COLUMN, "%s", oct_item_text(d, "name"));
    oct_print_line(f, "operator", COLUMN, "%s%s%s", domain, *domain ? "." : "", oct_item_text(d, "op"));
    print_values(f, "input", oct_item_at(report, "inputs"));
    print_values(f, "output", oct_item_at(report, "outputs"));
    for (const oct_item *a = NULL; (a = oct_item_next(attributes, a));)
        oct_print_line(f, "attribute", COLUMN, "%s =%s%s", oct_item_text(a, "name"),
                       *oct_item_text(a, "value") ? " " : "", oct_item_text(a, "value"));
    print_decision(f, report, d);
    for (const oct_item *c = NULL; (c = oct_item_next(passes, c));)
        oct_print_line(f, "changed", COLUMN, "%s: %s", oct_item_text(c, "pass"), oct_item_text(c, "change"));
    if (!oct_item_true(report, "samples"))
        oct_print_line(f, "", COLUMN, "without samples; add --data or --calib for scales");
}

oct_status qconvert_explain(oct_cli *cli, const convert_args *a, oct_err *err)
{
    const octet_convert_options x = convert_options(cli, a);
    const char *const written[] = { cli->json };
    const oct_session_host host = {
        .voice = tool_voice(cli), .written = written, .n_written = OCT_COUNT(written), .spill = true
    };
    oct_document *report = oct_document_create();
    oct_status s = report ? oct_session_explain(&x, &host, a->node, report, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = tool_write_report(cli->json, oct_json_text, oct_document_root(report), err);
    if (s == OCT_OK && !(cli->quiet && cli->json))
        print(oct_cli_result(cli), oct_document_root(report));
    oct_document_destroy(report);
    return s;
}
