/* The provider's options. ONNX Runtime keeps them among the session's, under the provider's name in small letters. */
#include "provider_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEY(name) "ep.octetexecutionprovider." name
enum { LONGEST = 256, MOST_THREADS = 1024 };

/* The value of an option; *given: it is there. */
static ort_status *read_option(const ort_api *api, const ort_session_options *session, const char *key, char *value,
                               bool *given)
{
    int has = 0;
    size_t size = LONGEST;
    TRY(api->HasSessionConfigEntry(session, key, &has));
    *given = has != 0;
    return has ? api->GetSessionConfigEntry(session, key, value, &size) : NULL;
}

static ort_status *read_number(const ort_api *api, const ort_session_options *session, const char *key, int most,
                               int *number)
{
    char value[LONGEST] = "", *end;
    bool given;
    TRY(read_option(api, session, key, value, &given));
    if (!given)
        return NULL;
    errno = 0;
    const long n = strtol(value, &end, 10);
    if (!*value || *end || errno || n < 0 || n > most)
        return fail(api, "option %s: '%s' is not a number from 0 to %d", strrchr(key, '.') + 1, value, most);
    *number = (int)n;
    return NULL;
}

ort_status *options_read(const ort_api *api, const ort_session_options *session, options *o)
{
    int with_float = 0;
    *o = (options){ 0 };
    TRY(read_number(api, session, KEY("threads"), MOST_THREADS, &o->threads));
    TRY(read_number(api, session, KEY("float"), 1, &with_float));
    o->with_float = with_float;
    return NULL;
}
