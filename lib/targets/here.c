/* The target that stands for this machine. */
#include "targets/target.h"

#include "kernels/cpu.h"

const char *oct_target_here(void)
{
#if defined(__aarch64__)
    return "onnxruntime-arm64";
#else
    return oct_isa_detect() & (OCT_ISA_AVXVNNI | OCT_ISA_AVX512VNNI) ? "onnxruntime-vnni" : "onnxruntime-x86";
#endif
}
