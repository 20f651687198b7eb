/* qcalib pack: samples as tar shards. */
#include "qcalib/qcalib.h"

#include "base/number_text.h"
#include "cli/textfmt.h"
#include "data/arrays/shard_writer.h"

static oct_status read_size(const char *text, int64_t *size, oct_err *err)
{
    uint64_t bytes;
    double share;
    if (!oct_size_text(text, &bytes, &share) || share > 0 || bytes > INT64_MAX) {
        oct_fail(err, OCT_EUSAGE, "--shard-size %s: it is not a size", text);
        oct_hint(err, "give bytes, or as 100MB or 1GiB");
        return OCT_EUSAGE;
    }
    *size = (int64_t)bytes;
    return OCT_OK;
}

static oct_status report(oct_cli *cli, const pack_args *a, int64_t samples, int64_t shards, oct_err *err)
{
    oct_cli_note(cli, 0, "%lld samples in %lld shard%s: %s-000000.tar%s", (long long)samples, (long long)shards,
                 shards == 1 ? "" : "s", a->output, shards == 1 ? "" : " and on");
    if (!cli->json)
        return OCT_OK;
    oct_buf b = OCT_BUF_INIT;
    oct_json j = OCT_JSON_INIT(&b);
    oct_report_open(&j, "octet-shards-1");
    oct_json_str(&j, "prefix", a->output);
    oct_json_int(&j, "samples", samples);
    oct_json_int(&j, "shards", shards);
    return tool_write_json(cli->json, &j, err);
}

oct_status qcalib_pack(oct_cli *cli, const pack_args *a, oct_err *err)
{
    int64_t samples, shards;
    oct_pack_options o = { .specs = a->specs.v,
                           .n_specs = a->specs.n,
                           .prefix = a->output,
                           .count = a->count,
                           .progress = oct_progress_report,
                           .progress_arg = &cli->progress };
    OCT_TRY(oct_check_output(cli->json, a->specs.v, a->specs.n, err));
    OCT_TRY(read_size(a->size, &o.size, err));
    OCT_TRY(oct_pack(&o, &samples, &shards, err));
    return report(cli, a, samples, shards, err);
}
