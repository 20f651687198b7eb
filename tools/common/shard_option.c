/* --shard: the part of the samples for this process, as given or as the engine that started the process tells. */
#include "common/common.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool number(const char *text, int64_t *n)
{
    char *end;
    errno = 0;
    long long v = text ? strtoll(text, &end, 10) : -1;
    if (!text || errno || end == text || *end || v < 0)
        return false;
    *n = v;
    return true;
}

/* How engines tell their jobs the number of the job and of how many, innermost first. size NULL: this engine does not
 * tell how many. from, or what the variable `first` holds: the number of the first job. */
static const struct engine {
    const char *name, *rank, *size, *first;
    int64_t from;
} engines[] = {
    { "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, 0 },
    { "MPICH", "PMI_RANK", "PMI_SIZE", NULL, 0 },
    { "GNU parallel", "PARALLEL_SEQ", NULL, NULL, 1 },
    { "Slurm", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", 0 },
    { "Slurm", "SLURM_PROCID", "SLURM_NTASKS", NULL, 0 },
    { "Kubernetes", "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", NULL, 0 },
    { "AWS Batch", "AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE", NULL, 0 },
};

static const char *variable(const char *name)
{
    const char *v = name ? getenv(name) : NULL;
    return v && *v ? v : NULL;
}

static oct_status check_number(const char *name, int64_t *n, oct_err *err)
{
    const char *text = variable(name);
    return !text || number(text, n) ? OCT_OK
                                    : oct_fail(err, OCT_EUSAGE, "--shard auto: %s='%.40s' is no number", name, text);
}

/* The engine that runs this process; NULL: none is recognized. wanted: the number of parts, or 0 if the engine
 * determines it. A job with a single process divides nothing, so that another engine may apply. */
static const struct engine *find_engine(int64_t wanted)
{
    const struct engine *unknown = NULL, *other = NULL, *single = NULL;
    for (size_t i = OCT_COUNT(engines); i-- > 0;) {
        int64_t n = 0;
        if (!variable(engines[i].rank))
            continue;
        if (!variable(engines[i].size))
            unknown = &engines[i];
        else if (!number(variable(engines[i].size), &n) || n != 1)
            other = &engines[i];
        else
            single = &engines[i];
    }
    for (size_t i = 0; i < OCT_COUNT(engines) && wanted; i++) {
        int64_t n = 0;
        if (variable(engines[i].rank) && number(variable(engines[i].size), &n) && n == wanted)
            return &engines[i];
    }
    if (wanted && unknown)
        return unknown;
    return other ? other : unknown ? unknown : single;
}

static oct_status no_engine(oct_err *err)
{
    for (size_t i = 0; i < OCT_COUNT(engines); i++)
        if (variable(engines[i].size)) {
            oct_fail(err, OCT_EUSAGE, "--shard auto: %s=%.40s is set, but %s is not", engines[i].size,
                     variable(engines[i].size), engines[i].rank);
            oct_hint(err, "give the part as --shard 0/4");
            return OCT_EUSAGE;
        }
    oct_fail(err, OCT_EUSAGE, "--shard auto: no variable of the environment says which part this is");
    oct_hint(
        err,
        "it is set in tasks of Slurm, Open MPI, MPICH, GNU parallel, Kubernetes (indexed Jobs) and AWS Batch (arrays); elsewhere give the part as --shard 0/4");
    return OCT_EUSAGE;
}

static oct_status no_size(const struct engine *e, oct_err *err)
{
    if (e->size)
        oct_fail(err, OCT_EUSAGE,
                 "--shard auto: %s=%.40s says which part this is, but %s, how many there are, is not set", e->rank,
                 variable(e->rank), e->size);
    else
        oct_fail(err, OCT_EUSAGE,
                 "--shard auto: %s=%.40s says which part this is, but %s does not say how many there are", e->rank,
                 variable(e->rank), e->name);
    oct_hint(err, "say how many: --shard auto/8");
    return OCT_EUSAGE;
}

/* n: the number of parts; 0: the engine determines it. */
static oct_status shard_auto(tool_data *d, int64_t n, oct_err *err)
{
    const struct engine *e = find_engine(n);
    if (!e)
        return no_engine(err);
    int64_t first = e->from, size = 0;
    OCT_TRY(check_number(e->rank, &d->shard_i, err));
    if (e->size)
        OCT_TRY(check_number(e->size, &size, err));
    if (!n && !variable(e->size))
        return no_size(e, err);
    /* If an array repeats some of its tasks, their numbers are those of the parts. */
    if (e->first && (!n || size == n))
        OCT_TRY(check_number(e->first, &first, err));
    d->shard_i -= first;
    d->shard_n = n ? n : size;
    if (d->shard_i >= 0 && d->shard_i < d->shard_n)
        return OCT_OK;
    if (n)
        oct_fail(err, OCT_EUSAGE, "--shard auto/%lld: %s=%.40s is no part of %lld", (long long)n, e->rank,
                 variable(e->rank), (long long)n);
    else
        oct_fail(err, OCT_EUSAGE, "--shard auto: %s=%.40s is no part of %s=%.40s", e->rank, variable(e->rank), e->size,
                 variable(e->size));
    oct_hint(err, "number the %s from %lld on, each of them once", e->name[0] == 'G' ? "jobs" : "tasks",
             (long long)first);
    return OCT_EUSAGE;
}

static bool read_part(const char *text, tool_data *d)
{
    const char *slash = strchr(text, '/');
    char left[24];
    size_t n = slash ? (size_t)(slash - text) : sizeof left;
    if (n >= sizeof left)
        return false;
    memcpy(left, text, n);
    left[n] = '\0';
    return number(left, &d->shard_i) && number(slash + 1, &d->shard_n) && d->shard_i < d->shard_n &&
           d->shard_n <= INT32_MAX;
}

oct_status tool_read_shard(tool_data *d, oct_err *err)
{
    int64_t n = 0;
    if (!d->shard)
        return OCT_OK;
    if (strcmp(d->shard, "auto") == 0 ||
        (strncmp(d->shard, "auto/", 5) == 0 && number(d->shard + 5, &n) && n > 0 && n <= INT32_MAX))
        return shard_auto(d, n, err);
    if (read_part(d->shard, d))
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "--shard '%.100s' is neither auto, auto/4 nor a part like 0/4", d->shard);
    oct_hint(err, "parts are counted from 0: 0/4, 1/4, 2/4, 3/4");
    return OCT_EUSAGE;
}
