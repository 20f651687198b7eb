/* provider/ort_abi.h -- the part of ONNX Runtime's binary interface that the provider uses: functions by their number
 * in a table, types of arguments, values of enumerations. Our own transcription: no package that is reached by pip
 * brings the headers.
 *
 * Tables only grow at their end, so a number never changes. `tests/checks/check_provider.py` runs each function with
 * the oldest and the newest release that has plug-ins and compares what it gives with the model. */
#ifndef OCT_PROVIDER_ORT_ABI_H
#define OCT_PROVIDER_ORT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of the interface that is asked for: that of ONNX Runtime 1.23, the first one that lets a plug-in compile
 * nodes. All functions below exist from there on. */
enum { ORT_API_VERSION = 23 };

enum { ORT_OK, ORT_FAIL, ORT_INVALID_ARGUMENT, ORT_NOT_IMPLEMENTED = 9, ORT_INVALID_GRAPH, ORT_EP_FAIL };
enum { ORT_LOG_VERBOSE, ORT_LOG_INFO, ORT_LOG_WARNING, ORT_LOG_ERROR };
enum { ORT_DEVICE_CPU };
/* Types of values (GetOnnxTypeFromTypeInfo), and of attributes (OpAttr_GetType). */
enum { ORT_TYPE_UNKNOWN, ORT_TYPE_TENSOR };
typedef enum ort_attr_type {
    ORT_ATTR_UNDEFINED,
    ORT_ATTR_INT,
    ORT_ATTR_INTS,
    ORT_ATTR_FLOAT,
    ORT_ATTR_FLOATS,
    ORT_ATTR_STRING,
    ORT_ATTR_STRINGS,
    ORT_ATTR_GRAPH,
    ORT_ATTR_TENSOR
} ort_attr_type;

/* ---- objects of ONNX Runtime ---- */

typedef struct ort_status ort_status; /* NULL: success */
typedef struct ort_value ort_value;
typedef struct ort_value_info ort_value_info;
typedef struct ort_type_info ort_type_info;
typedef struct ort_tensor_info ort_tensor_info; /* OrtTensorTypeAndShapeInfo */
typedef struct ort_external ort_external;       /* OrtExternalInitializerInfo */
typedef struct ort_graph ort_graph;
typedef struct ort_node ort_node;
typedef struct ort_attr ort_attr; /* OrtOpAttr */
typedef struct ort_logger ort_logger;
typedef struct ort_context ort_context; /* OrtKernelContext */
typedef struct ort_session_options ort_session_options;
typedef struct ort_run_options ort_run_options;
typedef struct ort_device ort_device;       /* OrtHardwareDevice */
typedef struct ort_ep_device ort_ep_device; /* a provider on a device */
typedef struct ort_support ort_support;     /* OrtEpGraphSupportInfo */
typedef struct ort_pairs ort_pairs;         /* OrtKeyValuePairs */
typedef struct ort_allocator ort_allocator;
typedef struct ort_memory_info ort_memory_info;

/* ---- tables of functions: number, result, name, arguments ---- */

/* OrtApi */
#define ORT_API_FUNCTIONS(F)                                                                                          \
    F(0, ort_status *, CreateStatus, (int code, const char *message))                                                 \
    F(2, const char *, GetErrorMessage, (const ort_status *))                                                         \
    F(51, ort_status *, GetTensorMutableData, (ort_value *, void **data))                                             \
    F(53, ort_status *, GetStringTensorDataLength, (const ort_value *, size_t *length))                               \
    F(54, ort_status *, GetStringTensorContent,                                                                       \
      (const ort_value *, void *bytes, size_t length, size_t *offsets, size_t n_offsets))                             \
    F(55, ort_status *, CastTypeInfoToTensorInfo, (const ort_type_info *, const ort_tensor_info **))                  \
    F(56, ort_status *, GetOnnxTypeFromTypeInfo, (const ort_type_info *, int *type))                                  \
    F(60, ort_status *, GetTensorElementType, (const ort_tensor_info *, int *type))                                   \
    F(61, ort_status *, GetDimensionsCount, (const ort_tensor_info *, size_t *rank))                                  \
    F(62, ort_status *, GetDimensions, (const ort_tensor_info *, int64_t *dims, size_t rank))                         \
    F(63, ort_status *, GetSymbolicDimensions, (const ort_tensor_info *, const char **names, size_t rank))            \
    F(65, ort_status *, GetTensorTypeAndShape, (const ort_value *, ort_tensor_info **))                               \
    F(90, ort_status *, KernelContext_GetInput, (const ort_context *, size_t i, const ort_value **))                  \
    F(91, ort_status *, KernelContext_GetOutput,                                                                      \
      (ort_context *, size_t i, const int64_t *dims, size_t rank, ort_value **))                                      \
    F(93, void, ReleaseStatus, (ort_status *))                                                                        \
    F(96, void, ReleaseValue, (ort_value *))                                                                          \
    F(99, void, ReleaseTensorTypeAndShapeInfo, (ort_tensor_info *))                                                   \
    F(211, ort_status *, CreateOpAttr, (const char *name, const void *data, int n, int type, ort_attr **))            \
    F(212, void, ReleaseOpAttr, (ort_attr *))                                                                         \
    F(247, ort_status *, Logger_LogMessage,                                                                           \
      (const ort_logger *, int severity, const char *message, const char *file, int line, const char *function))      \
    F(272, ort_status *, ReadOpAttr, (const ort_attr *, int type, void *data, size_t size, size_t *needed))           \
    F(274, ort_status *, KernelContext_ParallelFor,                                                                   \
      (const ort_context *, void (*fn)(void *arg, size_t i), size_t n, size_t batches, void *arg))                    \
    F(286, void, ReleaseNode, (ort_node *))                                                                           \
    F(287, void, ReleaseGraph, (ort_graph *))                                                                         \
    F(289, ort_status *, GetValueInfoName, (const ort_value_info *, const char **))                                   \
    F(290, ort_status *, GetValueInfoTypeInfo, (const ort_value_info *, const ort_type_info **))                      \
    F(291, const void *, GetModelEditorApi, (void))                                                                   \
    F(298, void, GetKeyValuePairs,                                                                                    \
      (const ort_pairs *, const char *const **keys, const char *const **values, size_t *n))                           \
    F(300, void, ReleaseKeyValuePairs, (ort_pairs *))                                                                 \
    F(307, int, HardwareDevice_Type, (const ort_device *))                                                            \
    F(317, const void *, GetEpApi, (void))                                                                            \
    F(326, ort_status *, ValueInfo_GetInitializerValue, (const ort_value_info *, const ort_value **))                 \
    F(327, ort_status *, ValueInfo_GetExternalInitializerInfo, (const ort_value_info *, ort_external **))             \
    F(331, ort_status *, ValueInfo_IsConstantInitializer, (const ort_value_info *, bool *))                           \
    F(334, ort_status *, Graph_GetModelPath, (const ort_graph *, const char **))                                      \
    F(336, ort_status *, Graph_GetNumOperatorSets, (const ort_graph *, size_t *))                                     \
    F(337, ort_status *, Graph_GetOperatorSets,                                                                       \
      (const ort_graph *, const char **domains, int64_t *versions, size_t n))                                         \
    F(338, ort_status *, Graph_GetNumInputs, (const ort_graph *, size_t *))                                           \
    F(339, ort_status *, Graph_GetInputs, (const ort_graph *, const ort_value_info **, size_t n))                     \
    F(340, ort_status *, Graph_GetNumOutputs, (const ort_graph *, size_t *))                                          \
    F(341, ort_status *, Graph_GetOutputs, (const ort_graph *, const ort_value_info **, size_t n))                    \
    F(342, ort_status *, Graph_GetNumInitializers, (const ort_graph *, size_t *))                                     \
    F(343, ort_status *, Graph_GetInitializers, (const ort_graph *, const ort_value_info **, size_t n))               \
    F(344, ort_status *, Graph_GetNumNodes, (const ort_graph *, size_t *))                                            \
    F(345, ort_status *, Graph_GetNodes, (const ort_graph *, const ort_node **, size_t n))                            \
    F(346, ort_status *, Graph_GetParentNode, (const ort_graph *, const ort_node **))                                 \
    F(347, ort_status *, Graph_GetGraphView, (const ort_graph *, const ort_node **nodes, size_t n, ort_graph **view)) \
    F(349, ort_status *, Node_GetName, (const ort_node *, const char **))                                             \
    F(350, ort_status *, Node_GetOperatorType, (const ort_node *, const char **))                                     \
    F(351, ort_status *, Node_GetDomain, (const ort_node *, const char **))                                           \
    F(353, ort_status *, Node_GetNumInputs, (const ort_node *, size_t *))                                             \
    F(354, ort_status *, Node_GetInputs, (const ort_node *, const ort_value_info **, size_t n))                       \
    F(355, ort_status *, Node_GetNumOutputs, (const ort_node *, size_t *))                                            \
    F(356, ort_status *, Node_GetOutputs, (const ort_node *, const ort_value_info **, size_t n))                      \
    F(359, ort_status *, Node_GetNumAttributes, (const ort_node *, size_t *))                                         \
    F(360, ort_status *, Node_GetAttributes, (const ort_node *, const ort_attr **, size_t n))                         \
    F(362, ort_status *, OpAttr_GetTensorAttributeAsOrtValue, (const ort_attr *, ort_value **))                       \
    F(363, ort_status *, OpAttr_GetType, (const ort_attr *, int *type))                                               \
    F(364, ort_status *, OpAttr_GetName, (const ort_attr *, const char **))                                           \
    F(365, ort_status *, Node_GetNumSubgraphs, (const ort_node *, size_t *))                                          \
    F(366, ort_status *, Node_GetSubgraphs, (const ort_node *, const ort_graph **, size_t n, const char **names))     \
    F(369, void, ReleaseExternalInitializerInfo, (ort_external *))                                                    \
    F(370, const char *, ExternalInitializerInfo_GetFilePath, (const ort_external *))                                 \
    F(371, int64_t, ExternalInitializerInfo_GetFileOffset, (const ort_external *))                                    \
    F(372, size_t, ExternalInitializerInfo_GetByteSize, (const ort_external *))                                       \
    F(379, ort_status *, GetSessionOptionsConfigEntries, (const ort_session_options *, ort_pairs **))

/* OrtEpApi */
typedef struct ort_fusion_options {
    uint32_t ort_version_supported;
    bool drop_constant_initializers; /* the fused node has no inputs for constants, and ONNX Runtime may release them */
} ort_fusion_options;

struct ort_ep_factory;
#define ORT_EP_API_FUNCTIONS(F)                                                                          \
    F(0, ort_status *, CreateEpDevice,                                                                   \
      (struct ort_ep_factory *, const ort_device *, const ort_pairs *metadata, const ort_pairs *options, \
       ort_ep_device **))                                                                                \
    F(2, ort_status *, EpGraphSupportInfo_AddNodesToFuse,                                                \
      (ort_support *, const ort_node *const *, size_t n, const ort_fusion_options *))

/* OrtModelEditorApi */
#define ORT_EDITOR_API_FUNCTIONS(F)                                                              \
    F(6, ort_status *, CreateNode,                                                               \
      (const char *op, const char *domain, const char *name, const char *const *in, size_t n_in, \
       const char *const *out, size_t n_out, ort_attr **, size_t n_attrs, ort_node **)) /* copies attributes */

/* The functions that are used, taken out of the tables (ort_api_take). */
#define ORT_FIELD(number, result, name, arguments) result(*name) arguments;
typedef struct ort_api {
    ORT_API_FUNCTIONS(ORT_FIELD)
    ORT_EP_API_FUNCTIONS(ORT_FIELD)
    ORT_EDITOR_API_FUNCTIONS(ORT_FIELD)
} ort_api;
#undef ORT_FIELD

typedef struct ort_api_base {
    const void *(*GetApi)(uint32_t version); /* NULL: this ONNX Runtime is older */
    const char *(*GetVersionString)(void);
} ort_api_base;

/* ---- what a plug-in implements. Each struct begins with the version of the interface that it was made for, and ONNX
 * Runtime reads no member that is newer. ---- */

typedef struct ort_compute_info { /* OrtNodeComputeInfo */
    uint32_t ort_version_supported;
    ort_status *(*CreateState)(struct ort_compute_info *, void *context, void **state);
    ort_status *(*Compute)(struct ort_compute_info *, void *state, ort_context *);
    void (*ReleaseState)(struct ort_compute_info *, void *state);
} ort_compute_info;

typedef struct ort_ep { /* OrtEp */
    uint32_t ort_version_supported;
    const char *(*GetName)(const struct ort_ep *);
    ort_status *(*GetCapability)(struct ort_ep *, const ort_graph *, ort_support *);
    ort_status *(*Compile)(struct ort_ep *, const ort_graph **, const ort_node **fused, size_t n, ort_compute_info **,
                           ort_node **contexts);
    void (*ReleaseNodeComputeInfos)(struct ort_ep *, ort_compute_info **, size_t n);
    void *unused[8]; /* GetPreferredDataLayout to GetCompiledModelCompatibilityInfo: optional */
} ort_ep;

typedef struct ort_ep_factory { /* OrtEpFactory */
    uint32_t ort_version_supported;
    const char *(*GetName)(const struct ort_ep_factory *);
    const char *(*GetVendor)(const struct ort_ep_factory *);
    ort_status *(*GetSupportedDevices)(struct ort_ep_factory *, const ort_device *const *, size_t n, ort_ep_device **,
                                       size_t max, size_t *n_out);
    ort_status *(*CreateEp)(struct ort_ep_factory *, const ort_device *const *, const ort_pairs *const *metadata,
                            size_t n, const ort_session_options *, const ort_logger *, ort_ep **);
    void (*ReleaseEp)(struct ort_ep_factory *, ort_ep *);
    uint32_t (*GetVendorId)(const struct ort_ep_factory *);
    const char *(*GetVersion)(const struct ort_ep_factory *);
    void *ValidateCompiledModelCompatibilityInfo; /* optional */
    ort_status *(*CreateAllocator)(struct ort_ep_factory *, const ort_memory_info *, const ort_pairs *,
                                   ort_allocator **);
    void (*ReleaseAllocator)(struct ort_ep_factory *, ort_allocator *);
    ort_status *(*CreateDataTransfer)(struct ort_ep_factory *, void **transfer);
    bool (*IsStreamAware)(const struct ort_ep_factory *);
    void *CreateSyncStreamForDevice; /* optional */
} ort_ep_factory;

#endif
