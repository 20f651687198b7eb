/* Operators on integers whose scales and zero points are inputs: QLinearConv and its like of the default domain and of com.microsoft. */
#include "forms/qlinear.h"

#include <string.h>

#define MS "com.microsoft"
#define ONE { 0, -1 }, { 1, -1 }, { 2, -1 }, -1, 3, 4
#define TWO { 0, 3 }, { 1, 4 }, { 2, 5 }

static const oct_qlinear forms[] = {
    { "QLinearConv", "", "Conv", 11, 2, TWO, 8, 6, 7, false },
    { "QLinearMatMul", "", "MatMul", 13, 2, TWO, -1, 6, 7, false },
    { "QGemm", MS, "Gemm", 13, 2, TWO, 6, 7, 8, true },
    { "QLinearAdd", MS, "Add", 14, 2, TWO, -1, 6, 7, false },
    { "QLinearMul", MS, "Mul", 14, 2, TWO, -1, 6, 7, false },
    { "QLinearConcat", MS, "Concat", 13, -1, { 2, -1 }, { 3, -1 }, { 4, -1 }, -1, 0, 1, false },
    { "QLinearLeakyRelu", MS, "LeakyRelu", 16, 1, ONE, false },
    { "QLinearSigmoid", MS, "Sigmoid", 13, 1, ONE, false },
    { "QLinearSoftmax", MS, "Softmax", 13, 1, ONE, false },
    { "QLinearAveragePool", MS, "AveragePool", 13, 1, ONE, false },
    { "QLinearGlobalAveragePool", MS, "GlobalAveragePool", 13, 1, ONE, false },
};

const oct_qlinear *oct_qlinear_all(size_t *n)
{
    *n = OCT_COUNT(forms);
    return forms;
}

const oct_qlinear *oct_qlinear_of(const oct_node *n)
{
    const bool known = n->domain[0] == 0 || strcmp(n->domain, MS) == 0;
    for (size_t i = 0; i < OCT_COUNT(forms) && known; i++)
        if (strcmp(n->op, forms[i].type) == 0)
            return &forms[i];
    return NULL;
}

const oct_qlinear *oct_qlinear_for(const char *op)
{
    for (size_t i = 0; i < OCT_COUNT(forms); i++)
        if (strcmp(forms[i].op, op) == 0)
            return &forms[i];
    return NULL;
}
