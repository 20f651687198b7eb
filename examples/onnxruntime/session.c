/* Runs a model in ONNX Runtime with Octet's provider, on zeros, and prints the sum of its first output.
 *
 *     cc session.c -lonnxruntime -o run
 *     ./run /usr/lib/x86_64-linux-gnu/libonnxruntime_ep_octet.so model.int8.onnx
 *
 * The model has one input and one output, float32; dimensions that it leaves open are 1. Three calls of an application
 * are new: those of add_octet. C++ has the same as methods, and this file compiles as either. */
#include <onnxruntime_c_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const OrtApi *api;

static void must(OrtStatus *status)
{
    if (!status)
        return;
    fprintf(stderr, "%s\n", api->GetErrorMessage(status));
    exit(1);
}

static void add_octet(OrtEnv *env, OrtSessionOptions *options, const char *library)
{
    const OrtEpDevice *const *devices, *octet = NULL;
    size_t n;
    must(api->RegisterExecutionProviderLibrary(env, "octet", library));
    must(api->GetEpDevices(env, &devices, &n));
    for (size_t i = 0; i < n; i++)
        if (strcmp(api->EpDevice_EpName(devices[i]), "OctetExecutionProvider") == 0)
            octet = devices[i];
    must(api->SessionOptionsAppendExecutionProvider_V2(options, env, &octet, 1, NULL, NULL, 0));
}

/* Zeros in the shape of the session's input. */
static OrtValue *make_input(const OrtSession *session, OrtAllocator *memory)
{
    const OrtTensorTypeAndShapeInfo *shape;
    OrtTypeInfo *type;
    OrtValue *x;
    int64_t dims[8];
    size_t rank, count = 1;
    void *data;
    must(api->SessionGetInputTypeInfo(session, 0, &type));
    must(api->CastTypeInfoToTensorInfo(type, &shape));
    must(api->GetDimensionsCount(shape, &rank));
    if (rank > 8)
        exit(1);
    must(api->GetDimensions(shape, dims, rank));
    for (size_t i = 0; i < rank; i++)
        count *= (size_t)(dims[i] = dims[i] < 0 ? 1 : dims[i]);
    must(api->CreateTensorAsOrtValue(memory, dims, rank, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &x));
    must(api->GetTensorMutableData(x, &data));
    memset(data, 0, count * sizeof(float));
    api->ReleaseTypeInfo(type);
    return x;
}

int main(int argc, char **argv)
{
    OrtEnv *env;
    OrtSessionOptions *options;
    OrtSession *session;
    OrtAllocator *memory;
    OrtTensorTypeAndShapeInfo *shape;
    OrtValue *y = NULL;
    char *in, *out;
    size_t count;
    void *data;
    double sum = 0;
    if (argc != 3)
        return 2;
    api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
    if (!api)
        return 1;
    must(api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "example", &env));
    must(api->CreateSessionOptions(&options));
    add_octet(env, options, argv[1]);
    must(api->CreateSession(env, argv[2], options, &session));
    must(api->GetAllocatorWithDefaultOptions(&memory));
    must(api->SessionGetInputName(session, 0, memory, &in));
    must(api->SessionGetOutputName(session, 0, memory, &out));
    OrtValue *x = make_input(session, memory);
    const OrtValue *const inputs[] = { x };
    const char *const names[] = { in, out };
    must(api->Run(session, NULL, names, inputs, 1, names + 1, 1, &y));
    must(api->GetTensorTypeAndShape(y, &shape));
    must(api->GetTensorShapeElementCount(shape, &count));
    must(api->GetTensorMutableData(y, &data));
    for (size_t i = 0; i < count; i++)
        sum += (double)((const float *)data)[i];
    printf("%.9g\n", sum);
    api->ReleaseTensorTypeAndShapeInfo(shape);
    api->ReleaseValue(y);
    api->ReleaseValue(x);
    must(api->AllocatorFree(memory, in));
    must(api->AllocatorFree(memory, out));
    api->ReleaseSession(session);
    api->ReleaseSessionOptions(options);
    api->ReleaseEnv(env);
    return 0;
}
