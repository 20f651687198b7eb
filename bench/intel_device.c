/* OpenVINO's plug-in for ONNX Runtime takes processors of Intel only, though OpenVINO runs on all. This plug-in hands
 * out OpenVINO's, and tells it that each device is Intel's, so that it can be measured anywhere.
 * $OCT_BENCH_OPENVINO: the path of its library. */
#include "../provider/ort_abi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The number of HardwareDevice_VendorId in OrtApi, and more functions than it has in 1.32; what follows a shorter table
 * is copied and not used. */
enum { VENDOR_ID = 308, FUNCTIONS = 440, INTEL = 0x8086 };

typedef ort_status *(*create_fn)(const char *, const ort_api_base *, const ort_logger *, ort_ep_factory **, size_t,
                                 size_t *);
typedef ort_status *(*release_fn)(ort_ep_factory *);

static void *library;
static const ort_api_base *theirs;

static uint32_t intel(const ort_device *device)
{
    (void)device;
    return INTEL;
}

static const void *get_api(uint32_t version)
{
    static const void *table[FUNCTIONS];
    const void *api = theirs->GetApi(version);
    const void *const own = (const void *)intel;
    if (!api)
        return NULL;
    memcpy(table, api, sizeof table);
    table[VENDOR_ID] = own;
    return table;
}

static const char *get_version(void)
{
    return theirs->GetVersionString();
}

ort_status *CreateEpFactories(const char *name, const ort_api_base *base, const ort_logger *logger,
                              ort_ep_factory **factories, size_t most, size_t *n)
{
    static const ort_api_base ours = { get_api, get_version };
    const char *path = getenv("OCT_BENCH_OPENVINO");
    theirs = base;
    library = path ? dlopen(path, RTLD_NOW) : NULL;
    create_fn create = library ? (create_fn)dlsym(library, "CreateEpFactories") : NULL;
    if (!create)
        abort();
    return create(name, &ours, logger, factories, most, n);
}

ort_status *ReleaseEpFactory(ort_ep_factory *factory)
{
    return ((release_fn)dlsym(library, "ReleaseEpFactory"))(factory);
}
