/* Operators on integers whose scales and zero points are inputs: QLinearConv and similar ones, of the default domain
 * and of com.microsoft. */
#include "forms/qlinear.h"
#include "forms/read/read_int.h"

#include <string.h>

#define MS "com.microsoft"

static const oct_qlinear forms[] = {
    { "QLinearConv", "", "Conv", 11, 2, 0, 8, 6, false },
    { "QLinearMatMul", "", "MatMul", 13, 2, 0, -1, 6, false },
    { "QGemm", MS, "Gemm", 13, 2, 0, 6, 7, true },
    { "QLinearAdd", MS, "Add", 14, 2, 0, -1, 6, false },
    { "QLinearMul", MS, "Mul", 14, 2, 0, -1, 6, false },
    { "QLinearConcat", MS, "Concat", 13, -1, 2, -1, 0, false },
    { "QLinearLeakyRelu", MS, "LeakyRelu", 16, 1, 0, -1, 3, false },
    { "QLinearSigmoid", MS, "Sigmoid", 13, 1, 0, -1, 3, false },
    { "QLinearSoftmax", MS, "Softmax", 13, 1, 0, -1, 3, false },
    { "QLinearAveragePool", MS, "AveragePool", 13, 1, 0, -1, 3, false },
    { "QLinearGlobalAveragePool", MS, "GlobalAveragePool", 13, 1, 0, -1, 3, false },
};

const oct_qlinear *oct_qlinear_all(size_t *n)
{
    *n = OCT_COUNT(forms);
    return forms;
}

const oct_qlinear *oct_qlinear_of(const oct_node *n)
{
    for (size_t i = 0; i < OCT_COUNT(forms); i++)
        if (forms_is(n, forms[i].type))
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

int oct_qlinear_axis(const oct_qlinear *f, const oct_node *n, int i, int rank)
{
    const oct_weights *w = &oct_op_find("", f->op, f->opset)->weights;
    const bool transposed = w->transposed && oct_node_int(n, w->transposed, 0);
    if (!(w->slots >> i & 1))
        return 0;
    return w->kernel ? w->out : rank + (transposed ? w->in : w->out);
}
