/* Measures the cost of quantizing each value and each layer of a model, whichever tool made the model. */
#include "qeval.h"

#include "cli/textfmt.h"
#include "common/print_causes.h"

static void print_found(const oct_item *r, FILE *f)
{
    const long long values = oct_item_whole(r, "values_without_counterpart"),
                    layers = oct_item_whole(r, "layers_without_counterpart");
    oct_print(f, "float %s\n", oct_item_text(r, "float"));
    oct_print(f, "quant %s\n", oct_item_text(r, "quant"));
    oct_print(f, "%lld quantized values and %lld layers with quantized weights are measured\n",
              (long long)oct_item_whole(r, "values"), (long long)oct_item_whole(r, "layers"));
    if (values + layers)
        oct_print(
            f,
            "%lld values and %lld layers are not: the float model has none of their names, or their scales are found when the model runs\n",
            values, layers);
}

static oct_status print(oct_cli *cli, const oct_item *report, oct_err *err)
{
    FILE *f = oct_cli_result(cli);
    oct_progress_clear(&cli->progress);
    if (!report)
        return oct_nomem(err);
    if (!cli->quiet || (f == cli->out && !cli->json)) {
        print_found(report, f);
        OCT_TRY(tool_print_causes(oct_item_at(report, "sensitivity"), cli->verbose, f, err));
        if (oct_item_at(report, "text"))
            oct_print(f, "%s\n", oct_item_text(report, "text"));
    }
    return tool_write_report(cli->json, oct_json_text, report, err);
}

oct_status qeval_sensitivity(const octet_evaluate_options *x, const char *file, const oct_evaluation_host *h,
                             oct_cli *cli, oct_err *err)
{
    oct_document *d = oct_document_create();
    oct_status s = d ? oct_evaluation_sensitivity(x, file, h, d, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = print(cli, oct_document_root(d), err);
    oct_document_destroy(d);
    return s;
}
