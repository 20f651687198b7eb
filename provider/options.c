/* The provider's options. ONNX Runtime keeps them among the session's, under the provider's name in small letters. */
#include "provider_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "ep.octetexecutionprovider.";
enum { MOST_THREADS = 1024 };

static ort_status *read_number(const ort_api *api, const char *name, const char *value, int most, int *number)
{
    char *end;
    errno = 0;
    const long n = strtol(value, &end, 10);
    if (!*value || *end || errno || n < 0 || n > most)
        return fail(api, "option %s: '%s' is not a number from 0 to %d", name, value, most);
    *number = (int)n;
    return NULL;
}

static ort_status *read_claim(const ort_api *api, const char *value, bool *all)
{
    *all = strcmp(value, "all") == 0;
    return *all || strcmp(value, "paying") == 0 ? NULL
                                                : fail(api, "option claim: '%s' is neither 'paying' nor 'all'", value);
}

/* Holds for the whole process, in which all sessions share packed weights. */
static ort_status *use_isa(const ort_api *api, const char *value)
{
    octet *o = octet_open();
    if (!o)
        return no_memory(api);
    ort_status *s = NULL;
    if (octet_use_isa(o, value) != OCTET_OK)
        s = fail(api, "option isa: '%s': %s; %s", value, octet_error(o), octet_hint(o));
    octet_close(o);
    return s;
}

static ort_status *open_profile(const ort_api *api, const char *path, options *o)
{
    if (o->profile)
        fclose(o->profile);
    o->profile = fopen(path, "we");
    if (!o->profile)
        return fail(api, "option profile: '%s': %s", path, strerror(errno));
    fputs("group\tnode\toperator\tscheme\talgorithm\tkernel\truns\tms\tmac\n", o->profile);
    return NULL;
}

static ort_status *read_option(const ort_api *api, const char *name, const char *value, options *o)
{
    int on = 0;
    if (strcmp(name, "threads") == 0)
        return read_number(api, name, value, MOST_THREADS, &o->threads);
    if (strcmp(name, "claim") == 0)
        return read_claim(api, value, &o->all);
    if (strcmp(name, "isa") == 0)
        return use_isa(api, value);
    if (strcmp(name, "profile") == 0)
        return open_profile(api, value, o);
    if (strcmp(name, "float") != 0)
        return fail(api, "there is no option %s='%s'; there are threads, float, claim, isa and profile", name, value);
    TRY(read_number(api, name, value, 1, &on));
    o->with_float = on;
    return NULL;
}

/* Options that ONNX Runtime defines for all providers. It has checked their values. */
static ort_status *read_context(const ort_api *api, const char *key, const char *value, options *o)
{
    const bool on = strcmp(value, "1") == 0;
    if (strcmp(key, "ep.context_enable") == 0)
        o->context = on;
    else if (strcmp(key, "ep.context_embed_mode") == 0)
        o->context_embed = on;
    else if (strcmp(key, "ep.context_file_path") == 0 && *value && !o->context_path &&
             !(o->context_path = strdup(value)))
        return no_memory(api);
    return NULL;
}

ort_status *options_read(const ort_api *api, const ort_session_options *session, options *o)
{
    const size_t skip = strlen(prefix);
    const char *const *keys, *const *values;
    ort_pairs *pairs = NULL;
    ort_status *s = NULL;
    size_t n = 0;
    *o = (options){ 0 };
    TRY(api->GetSessionOptionsConfigEntries(session, &pairs));
    api->GetKeyValuePairs(pairs, &keys, &values, &n);
    for (size_t i = 0; i < n && !s; i++)
        s = strncmp(keys[i], prefix, skip) == 0 ? read_option(api, keys[i] + skip, values[i], o)
                                                : read_context(api, keys[i], values[i], o);
    api->ReleaseKeyValuePairs(pairs);
    return s;
}

void options_free(options *o)
{
    if (o->profile)
        fclose(o->profile);
    o->profile = NULL;
    free(o->context_path);
    o->context_path = NULL;
}
