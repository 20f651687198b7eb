/* The list of targets. What ONNX Runtime runs on integers: docs/design.md, Deployment runtime. */
#include "quant/target.h"

#include <stdio.h>
#include <string.h>

static const oct_target targets[] = {
    { .name = "onnxruntime-x86",
      .summary = "ONNX Runtime on any x86-64 CPU, with or without VNNI",
      .saturates = true,
      .conv_needs_output = true,
      .products = " Conv Gemm MatMul ",
      .integer_ops = " Add Mul Concat Sigmoid LeakyRelu GlobalAveragePool AveragePool MaxPool Reshape Transpose Flatten Squeeze "
                     "Unsqueeze Slice DepthToSpace Gather Split Resize ",
      .dynamic = " MatMul Gemm LSTM " },
    { .name = "onnxruntime-vnni",
      .summary = "ONNX Runtime on CPUs with AVX-512 VNNI or AVX-VNNI, and on ARM",
      .conv_needs_output = true,
      .products = " Conv Gemm MatMul ",
      .integer_ops = " Add Mul Concat Sigmoid LeakyRelu GlobalAveragePool AveragePool MaxPool Reshape Transpose Flatten Squeeze "
                     "Unsqueeze Slice DepthToSpace Gather Split Resize ",
      .dynamic = " MatMul Gemm LSTM " },
    { .name = "octet",
      .summary = "our own runtime on this CPU",
      .products = " Conv ConvTranspose Gemm MatMul ",
      .integer_ops = " Add Mul Concat Sigmoid LeakyRelu Tanh HardSwish HardSigmoid Elu Swish GlobalAveragePool AveragePool MaxPool "
                     "GlobalMaxPool Reshape Transpose Flatten Squeeze Unsqueeze Slice DepthToSpace SpaceToDepth Gather Split Resize ",
      .dynamic = " MatMul Gemm LSTM " },
};

const oct_target *oct_target_find(const char *name)
{
    for (size_t i = 0; i < OCT_COUNT(targets); i++)
        if (strcmp(targets[i].name, name) == 0)
            return &targets[i];
    return NULL;
}

const oct_target *oct_target_default(void)
{
    return &targets[0];
}

static bool listed(const char *list, const char *op)
{
    char word[64];
    snprintf(word, sizeof word, " %s ", op);
    return strstr(list, word) != NULL;
}

bool oct_target_integer(const oct_target *t, const char *op)
{
    return listed(t->integer_ops, op);
}

bool oct_target_product(const oct_target *t, const char *op)
{
    return listed(t->products, op);
}

bool oct_target_dynamic(const oct_target *t, const char *op)
{
    return listed(t->dynamic, op);
}
