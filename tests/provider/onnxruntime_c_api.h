/* tests/provider/onnxruntime_c_api.h -- what examples/onnxruntime/session.c uses of ONNX Runtime's header of that name,
 * which no package that pip reaches brings: our own transcription of places in a table and of signatures. */
#ifndef OCT_TESTS_ONNXRUNTIME_C_API_H
#define OCT_TESTS_ONNXRUNTIME_C_API_H

#include <stddef.h>
#include <stdint.h>

#define ORT_API_VERSION 23
enum { ORT_LOGGING_LEVEL_WARNING = 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1 };

typedef struct OrtStatus OrtStatus;
typedef struct OrtEnv OrtEnv;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtAllocator OrtAllocator;
typedef struct OrtValue OrtValue;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef struct OrtEpDevice OrtEpDevice;

/* Entries from `from` up to the next named one, at `to`. */
#define GAP(from, to) void *gap_##from[(to) - (from)];

typedef struct OrtApi {
    GAP(0, 2)
    const char *(*GetErrorMessage)(const OrtStatus *);
    OrtStatus *(*CreateEnv)(int level, const char *name, OrtEnv **);
    GAP(4, 7)
    OrtStatus *(*CreateSession)(const OrtEnv *, const char *path, const OrtSessionOptions *, OrtSession **);
    GAP(8, 9)
    OrtStatus *(*Run)(OrtSession *, const OrtRunOptions *, const char *const *input_names, const OrtValue *const *,
                      size_t n_in, const char *const *output_names, size_t n_out, OrtValue **);
    OrtStatus *(*CreateSessionOptions)(OrtSessionOptions **);
    GAP(11, 33)
    OrtStatus *(*SessionGetInputTypeInfo)(const OrtSession *, size_t i, OrtTypeInfo **);
    GAP(34, 36)
    OrtStatus *(*SessionGetInputName)(const OrtSession *, size_t i, OrtAllocator *, char **);
    OrtStatus *(*SessionGetOutputName)(const OrtSession *, size_t i, OrtAllocator *, char **);
    GAP(38, 48)
    OrtStatus *(*CreateTensorAsOrtValue)(OrtAllocator *, const int64_t *dims, size_t rank, int type, OrtValue **);
    GAP(49, 51)
    OrtStatus *(*GetTensorMutableData)(OrtValue *, void **);
    GAP(52, 55)
    OrtStatus *(*CastTypeInfoToTensorInfo)(const OrtTypeInfo *, const OrtTensorTypeAndShapeInfo **);
    GAP(56, 61)
    OrtStatus *(*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo *, size_t *);
    OrtStatus *(*GetDimensions)(const OrtTensorTypeAndShapeInfo *, int64_t *, size_t);
    GAP(63, 64)
    OrtStatus *(*GetTensorShapeElementCount)(const OrtTensorTypeAndShapeInfo *, size_t *);
    OrtStatus *(*GetTensorTypeAndShape)(const OrtValue *, OrtTensorTypeAndShapeInfo **);
    GAP(66, 76)
    OrtStatus *(*AllocatorFree)(OrtAllocator *, void *);
    GAP(77, 78)
    OrtStatus *(*GetAllocatorWithDefaultOptions)(OrtAllocator **);
    GAP(79, 92)
    void (*ReleaseEnv)(OrtEnv *);
    GAP(93, 95)
    void (*ReleaseSession)(OrtSession *);
    void (*ReleaseValue)(OrtValue *);
    GAP(97, 98)
    void (*ReleaseTypeInfo)(OrtTypeInfo *);
    void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo *);
    void (*ReleaseSessionOptions)(OrtSessionOptions *);
    GAP(101, 301)
    OrtStatus *(*RegisterExecutionProviderLibrary)(OrtEnv *, const char *name, const char *path);
    GAP(302, 303)
    OrtStatus *(*GetEpDevices)(const OrtEnv *, const OrtEpDevice *const **, size_t *);
    OrtStatus *(*SessionOptionsAppendExecutionProvider_V2)(OrtSessionOptions *, OrtEnv *, const OrtEpDevice *const *,
                                                           size_t n, const char *const *keys, const char *const *values,
                                                           size_t n_options);
    GAP(305, 312)
    const char *(*EpDevice_EpName)(const OrtEpDevice *);
} OrtApi;

typedef struct OrtApiBase {
    const OrtApi *(*GetApi)(uint32_t version);
    const char *(*GetVersionString)(void);
} OrtApiBase;

#ifdef __cplusplus
extern "C"
#endif
    const OrtApiBase *
    OrtGetApiBase(void);

#endif
