/* Operators on each element, and those along the last axis. */
#include "tflite/read/read_operators.h"

#include <string.h>

/* ---- two operands ---- */

static const char *binary(oct_tfl_code code)
{
    static const struct {
        oct_tfl_code code;
        const char *onnx;
    } names[] = {
        { OCT_TFL_ADD, "Add" },
        { OCT_TFL_SUB, "Sub" },
        { OCT_TFL_MUL, "Mul" },
        { OCT_TFL_DIV, "Div" },
        { OCT_TFL_POW, "Pow" },
        { OCT_TFL_MAXIMUM, "Max" },
        { OCT_TFL_MINIMUM, "Min" },
        { OCT_TFL_SQUARED_DIFFERENCE, "Sub" },
        { OCT_TFL_EQUAL, "Equal" },
        { OCT_TFL_GREATER, "Greater" },
        { OCT_TFL_LESS, "Less" },
        { OCT_TFL_GREATER_EQUAL, "GreaterOrEqual" },
        { OCT_TFL_LESS_EQUAL, "LessOrEqual" },
    };
    for (size_t i = 0; i < OCT_COUNT(names); i++)
        if (names[i].code == code)
            return names[i].onnx;
    return "Add";
}

/* The order of a result of `rank` axes: that of the first operand that has as many and is computed. */
static oct_tfl_order joint_order(const oct_tfl_reader *r, int rank)
{
    for (int k = 0; k < 2; k++)
        if (oct_tfl_in(r, k)->rank == rank && !oct_tfl_in(r, k)->data)
            return oct_tfl_shown_order(r, k);
    return oct_tfl_plain();
}

oct_status oct_tfl_read_binary(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_code code = r->op->code;
    int in[2], node, y;
    OCT_TRY(oct_tfl_need(r, 0, 0, err));
    OCT_TRY(oct_tfl_need(r, 1, 0, err));
    const int a = oct_tfl_in(r, 0)->rank, b = oct_tfl_in(r, 1)->rank, rank = a > b ? a : b;
    const oct_tfl_order order = joint_order(r, rank);
    for (int k = 0; k < 2; k++)
        OCT_TRY(oct_tfl_take_wide(r, k, rank, &order, &in[k], err));
    OCT_TRY(oct_tfl_node(r, 0, binary(code), in, 2, &node, &y, err));
    if (code == OCT_TFL_SQUARED_DIFFERENCE)
        OCT_TRY(oct_tfl_node(r, 0, "Mul", (int[]){ y, y }, 2, &node, &y, err));
    if (code == OCT_TFL_ADD || code == OCT_TFL_SUB || code == OCT_TFL_MUL || code == OCT_TFL_DIV)
        OCT_TRY(oct_tfl_activate(r, OCT_TFL_BINARY_ACTIVATION, &y, err));
    return oct_tfl_give(r, 0, &order, y, err);
}

/* ---- one operand ---- */

static const char *unary(oct_tfl_code code)
{
    static const struct {
        oct_tfl_code code;
        const char *onnx;
    } names[] = {
        { OCT_TFL_LOGISTIC, "Sigmoid" },
        { OCT_TFL_TANH, "Tanh" },
        { OCT_TFL_HARD_SWISH, "HardSwish" },
        { OCT_TFL_ELU, "Elu" },
        { OCT_TFL_EXP, "Exp" },
        { OCT_TFL_LOG, "Log" },
        { OCT_TFL_SQRT, "Sqrt" },
        { OCT_TFL_RSQRT, "Sqrt" },
        { OCT_TFL_ABS, "Abs" },
        { OCT_TFL_NEG, "Neg" },
        { OCT_TFL_FLOOR, "Floor" },
        { OCT_TFL_CEIL, "Ceil" },
        { OCT_TFL_ROUND, "Round" },
        { OCT_TFL_SIN, "Sin" },
        { OCT_TFL_COS, "Cos" },
        { OCT_TFL_GELU, "Gelu" },
        { OCT_TFL_LEAKY_RELU, "LeakyRelu" },
    };
    for (size_t i = 0; i < OCT_COUNT(names); i++)
        if (names[i].code == code)
            return names[i].onnx;
    return "Identity";
}

/* Adds the node in the order of its operand. */
static oct_status one(oct_tfl_reader *r, int *node, int *y, oct_tfl_order *order, oct_err *err)
{
    int x;
    OCT_TRY(oct_tfl_need(r, 0, 0, err));
    *order = oct_tfl_shown_order(r, 0);
    OCT_TRY(oct_tfl_take(r, 0, order, &x, err));
    return oct_tfl_node(r, 0, unary(r->op->code), &x, 1, node, y, err);
}

oct_status oct_tfl_read_unary(oct_tfl_reader *r, oct_err *err)
{
    oct_tfl_order order;
    int node, y;
    OCT_TRY(one(r, &node, &y, &order, err));
    if (r->op->code == OCT_TFL_RSQRT)
        OCT_TRY(oct_tfl_node(r, 0, "Reciprocal", (int[]){ y }, 1, &node, &y, err));
    return oct_tfl_give(r, 0, &order, y, err);
}

oct_status oct_tfl_read_leaky_relu(oct_tfl_reader *r, oct_err *err)
{
    oct_tfl_order order;
    int node, y;
    OCT_TRY(one(r, &node, &y, &order, err));
    OCT_TRY(oct_node_set_float(r->g, node, "alpha", oct_tfl_option_real(r->op, OCT_TFL_LEAKY_RELU_ALPHA, 0), err));
    return oct_tfl_give(r, 0, &order, y, err);
}

oct_status oct_tfl_read_gelu(oct_tfl_reader *r, oct_err *err)
{
    oct_tfl_order order;
    int node, y;
    OCT_TRY(one(r, &node, &y, &order, err));
    if (oct_tfl_option(r->op, OCT_TFL_GELU_APPROXIMATE, 0))
        OCT_TRY(oct_node_set_str(r->g, node, "approximate", "tanh", err));
    return oct_tfl_give(r, 0, &order, y, err);
}

oct_status oct_tfl_read_square(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_order order = oct_tfl_shown_order(r, 0);
    int x, node, y;
    OCT_TRY(oct_tfl_take(r, 0, &order, &x, err));
    OCT_TRY(oct_tfl_node(r, 0, "Mul", (int[]){ x, x }, 2, &node, &y, err));
    return oct_tfl_give(r, 0, &order, y, err);
}

oct_status oct_tfl_read_clamp(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_order order = oct_tfl_shown_order(r, 0);
    const oct_tfl_code code = r->op->code;
    int in[3], node, y;
    OCT_TRY(oct_tfl_take(r, 0, &order, &in[0], err));
    if (code != OCT_TFL_RELU) {
        OCT_TRY(oct_tfl_const_real(r, "least", code == OCT_TFL_RELU_N1_TO_1 ? -1 : 0, &in[1], err));
        OCT_TRY(oct_tfl_const_real(r, "most", code == OCT_TFL_RELU6 ? 6 : 1, &in[2], err));
    }
    OCT_TRY(
        oct_tfl_node(r, 0, code == OCT_TFL_RELU ? "Relu" : "Clip", in, code == OCT_TFL_RELU ? 1 : 3, &node, &y, err));
    return oct_tfl_give(r, 0, &order, y, err);
}

oct_status oct_tfl_read_prelu(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_order order = oct_tfl_shown_order(r, 0);
    int in[2], node, y;
    OCT_TRY(oct_tfl_take(r, 0, &order, &in[0], err));
    OCT_TRY(oct_tfl_take_wide(r, 1, oct_tfl_in(r, 0)->rank, &order, &in[1], err));
    OCT_TRY(oct_tfl_node(r, 0, "PRelu", in, 2, &node, &y, err));
    return oct_tfl_give(r, 0, &order, y, err);
}

oct_status oct_tfl_read_cast(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_order order = oct_tfl_shown_order(r, 0);
    const oct_tfl_tensor *to = oct_tfl_out(r, 0);
    int x, node, y;
    OCT_TRY(oct_tfl_take(r, 0, &order, &x, err));
    if (oct_tfl_type_dtype(to->type) == OCT_UNDEFINED || to->quant || oct_tfl_in(r, 0)->quant)
        return oct_tfl_unread(r, err, NULL, "it makes %s%s", oct_tfl_type_name(to->type),
                              to->quant || oct_tfl_in(r, 0)->quant ? " of quantized integers" : "");
    OCT_TRY(oct_tfl_node(r, 0, "Cast", &x, 1, &node, &y, err));
    OCT_TRY(oct_node_set_int(r->g, node, "to", oct_tfl_type_dtype(to->type), err));
    return oct_tfl_give(r, 0, &order, y, err);
}

/* ---- along the last axis ---- */

oct_status oct_tfl_read_softmax(oct_tfl_reader *r, oct_err *err)
{
    const bool logs = r->op->code == OCT_TFL_LOG_SOFTMAX;
    const float beta = logs ? 1 : oct_tfl_option_real(r->op, OCT_TFL_SOFTMAX_BETA, 0);
    const oct_tfl_order order = oct_tfl_shown_order(r, 0);
    int in[2], node, y;
    OCT_TRY(oct_tfl_need(r, 0, 1, err));
    const int rank = oct_tfl_in(r, 0)->rank;
    OCT_TRY(oct_tfl_take(r, 0, &order, &in[0], err));
    if (beta != 1) {
        OCT_TRY(oct_tfl_const_real(r, "beta", beta, &in[1], err));
        OCT_TRY(oct_tfl_node(r, 0, "Mul", in, 2, &node, &in[0], err));
    }
    OCT_TRY(oct_tfl_node(r, 0, logs ? "LogSoftmax" : "Softmax", in, 1, &node, &y, err));
    const int axis = oct_tfl_axis(&order, rank, rank - 1);
    OCT_TRY(oct_node_set_int(r->g, node, "axis", axis == rank - 1 ? -1 : axis, err));
    return oct_tfl_give(r, 0, &order, y, err);
}

oct_status oct_tfl_read_l2(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_order order = oct_tfl_shown_order(r, 0);
    int x, node, y;
    OCT_TRY(oct_tfl_need(r, 0, 1, err));
    const int rank = oct_tfl_in(r, 0)->rank;
    OCT_TRY(oct_tfl_take(r, 0, &order, &x, err));
    OCT_TRY(oct_tfl_node(r, 0, "LpNormalization", &x, 1, &node, &y, err));
    OCT_TRY(oct_node_set_int(r->g, node, "axis", oct_tfl_axis(&order, rank, rank - 1), err));
    OCT_TRY(oct_tfl_activate(r, OCT_TFL_L2_ACTIVATION, &y, err));
    return oct_tfl_give(r, 0, &order, y, err);
}

/* ---- borders ---- */

oct_status oct_tfl_read_quantize(oct_tfl_reader *r, oct_err *err)
{
    OCT_TRY(oct_tfl_need(r, 0, 0, err));
    if (!oct_tfl_out(r, 0)->quant)
        return oct_tfl_unread(r, err, NULL, "its result has no scale");
    return oct_tfl_give_same(r, 0, 0, NULL, err);
}

/* The real numbers are what stands for the integers already. */
oct_status oct_tfl_read_dequantize(oct_tfl_reader *r, oct_err *err)
{
    OCT_TRY(oct_tfl_need(r, 0, 0, err));
    const oct_tfl_tensor *x = oct_tfl_in(r, 0);
    if (oct_tfl_out(r, 0)->type != OCT_TFL_FLOAT32 || (!x->quant && !(x->data && x->type == OCT_TFL_FLOAT16)))
        return oct_tfl_unread(r, err, NULL, "it makes %s of %s without a scale",
                              oct_tfl_type_name(oct_tfl_out(r, 0)->type), oct_tfl_type_name(x->type));
    return oct_tfl_give_same(r, 0, 0, NULL, err);
}
