/* The plug-in's two entry points, its factory, and the providers that it makes: one for each session. */
#include "provider_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct factory {
    ort_ep_factory base; /* first member */
    ort_api api;
    bool tells_parents; /* ONNX Runtime tells a graph in a node from an outermost one: 1.24 and later */
} factory;

/* ---- errors and messages ---- */

ort_status *fail(const ort_api *api, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    char message[sizeof text + 16];
    snprintf(message, sizeof message, "octet: %s", text);
    return api->CreateStatus(ORT_EP_FAIL, message);
}

ort_status *no_memory(const ort_api *api)
{
    return fail(api, "out of memory");
}

ort_status *fail_with(const ort_api *api, const octet *o)
{
    const char *hint = octet_hint(o);
    return fail(api, "%s%s%s", octet_error(o), *hint ? "; " : "", hint);
}

void say(const provider *p, int severity, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    ort_status *s = p->api->Logger_LogMessage(p->logger, severity, text, "octet", 0, "");
    if (s)
        p->api->ReleaseStatus(s);
}

/* ---- providers ---- */

static const char *provider_name(const ort_ep *ep)
{
    return PROVIDER_NAME;
}

static ort_status *create_provider(ort_ep_factory *base, const ort_device *const *devices,
                                   const ort_pairs *const *metadata, size_t n, const ort_session_options *session,
                                   const ort_logger *logger, ort_ep **out)
{
    const ort_api *api = &((factory *)base)->api;
    options o;
    *out = NULL;
    ort_status *s = options_read(api, session, &o);
    provider *p = s ? NULL : calloc(1, sizeof *p);
    if (!p) {
        options_free(&o);
        return s ? s : no_memory(api);
    }
    *p = (provider){ .base = { .ort_version_supported = ORT_API_VERSION,
                               .GetName = provider_name,
                               .GetCapability = provider_claim,
                               .Compile = provider_compile,
                               .ReleaseNodeComputeInfos = provider_release_programs },
                     .api = api,
                     .tells_parents = ((factory *)base)->tells_parents,
                     .divides = ((factory *)base)->tells_parents,
                     .logger = logger,
                     .options = o };
    *out = &p->base;
    return NULL;
}

static void release_provider(ort_ep_factory *base, ort_ep *ep)
{
    provider *p = (provider *)ep;
    if (!p)
        return;
    provider_drop_programs(p);
    options_free(&p->options);
    free(p);
}

/* ---- the factory ---- */

static const char *factory_name(const ort_ep_factory *base)
{
    return PROVIDER_NAME;
}

static const char *factory_vendor(const ort_ep_factory *base)
{
    return "Octet";
}

static uint32_t factory_vendor_id(const ort_ep_factory *base)
{
    return 0; /* makers of PCI devices have one */
}

static const char *factory_version(const ort_ep_factory *base)
{
    return octet_version();
}

static ort_status *supported_devices(ort_ep_factory *base, const ort_device *const *devices, size_t n,
                                     ort_ep_device **out, size_t max, size_t *n_out)
{
    const ort_api *api = &((factory *)base)->api;
    *n_out = 0;
    for (size_t i = 0; i < n && *n_out < max; i++)
        if (api->HardwareDevice_Type(devices[i]) == ORT_DEVICE_CPU) {
            TRY(api->CreateEpDevice(base, devices[i], NULL, NULL, &out[*n_out]));
            ++*n_out;
        }
    return NULL;
}

/* Memory is ONNX Runtime's own for the processor: no allocators, no transfers, no streams. */
static ort_status *create_allocator(ort_ep_factory *base, const ort_memory_info *memory, const ort_pairs *with,
                                    ort_allocator **out)
{
    *out = NULL;
    return NULL;
}

static void release_allocator(ort_ep_factory *base, ort_allocator *a)
{
}

static ort_status *create_transfer(ort_ep_factory *base, void **out)
{
    *out = NULL;
    return NULL;
}

static bool is_stream_aware(const ort_ep_factory *base)
{
    return false;
}

/* ---- entry points ---- */

/* Takes the functions that are used out of the tables. */
static void take_functions(ort_api *api, const void *table)
{
    void (*const *at)(void) = (void (*const *)(void))table;
#define TAKE(number, result, name, arguments) api->name = (result(*) arguments)at[number];
    ORT_API_FUNCTIONS(TAKE)
    at = (void (*const *)(void))api->GetEpApi();
    ORT_EP_API_FUNCTIONS(TAKE)
    at = (void (*const *)(void))api->GetModelEditorApi();
    ORT_EDITOR_API_FUNCTIONS(TAKE)
#undef TAKE
}

/* Whether Graph_GetParentNode knows the node of a graph that GetCapability is asked about: from 1.24 on. (To ask for
 * the table of a version that is not there prints an error.) */
static bool tells_parents(const char *version)
{
    unsigned major = 0, minor = 0;
    return sscanf(version, "%u.%u", &major, &minor) == 2 && (major > 1 || minor >= 24);
}

EXPORT ort_status *CreateEpFactories(const char *registered_name, const ort_api_base *base, const ort_logger *logger,
                                     ort_ep_factory **factories, size_t max, size_t *n)
{
    const void *table = base->GetApi(ORT_API_VERSION);
    *n = 0;
    if (!table) { /* no status can be made: that needs the table of an older version, whose first entry has been the
                     same since ever */
        const void *old = base->GetApi(1);
        ort_status *(*create_status)(int, const char *) =
            old ? *(ort_status * (*const *)(int, const char *)) old : NULL;
        return create_status ? create_status(ORT_FAIL, "octet: needs ONNX Runtime 1.23 or newer") : NULL;
    }
    factory *f = calloc(1, sizeof *f);
    if (f)
        take_functions(&f->api, table);
    if (!f || max < 1) {
        free(f);
        return ((ort_status * (*const *)(int, const char *)) table)[0](ORT_FAIL, "octet: out of memory");
    }
    f->base = (ort_ep_factory){ .ort_version_supported = ORT_API_VERSION,
                                .GetName = factory_name,
                                .GetVendor = factory_vendor,
                                .GetSupportedDevices = supported_devices,
                                .CreateEp = create_provider,
                                .ReleaseEp = release_provider,
                                .GetVendorId = factory_vendor_id,
                                .GetVersion = factory_version,
                                .CreateAllocator = create_allocator,
                                .ReleaseAllocator = release_allocator,
                                .CreateDataTransfer = create_transfer,
                                .IsStreamAware = is_stream_aware };
    f->tells_parents = tells_parents(base->GetVersionString());
    factories[0] = &f->base;
    *n = 1;
    return NULL;
}

EXPORT ort_status *ReleaseEpFactory(ort_ep_factory *base)
{
    free((factory *)base);
    return NULL;
}
