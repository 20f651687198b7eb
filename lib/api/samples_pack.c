/* Samples as tar shards. */
#include "api/samples_int.h"

#include "api/files.h"
#include "base/number_text.h"
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

oct_status oct_samples_pack(octet_texts specs, const char *prefix, int64_t count, const char *size, oct_voice v,
                            oct_document *to, oct_err *err)
{
    int64_t samples, shards;
    oct_pack_options o = { .specs = specs.v,
                           .n_specs = specs.n,
                           .prefix = prefix,
                           .count = count,
                           .progress = v.progress,
                           .progress_arg = v.arg };
    OCT_TRY(read_size(size, &o.size, err));
    OCT_TRY(oct_pack(&o, &samples, &shards, err));
    oct_say(v, 0, "%lld samples in %lld shard%s: %s-000000.tar%s", (long long)samples, (long long)shards,
            shards == 1 ? "" : "s", prefix, shards == 1 ? "" : " and on");
    oct_json j = { .to = to };
    oct_report_open(&j, "octet-shards-1");
    oct_json_str(&j, "prefix", prefix);
    oct_json_int(&j, "samples", samples);
    oct_json_int(&j, "shards", shards);
    oct_json_close(&j);
    return OCT_OK;
}
