/* The axes of weights that hold channels, and the distances of elements along them. */
#include "ops/weight_axes.h"

static bool is_set(const oct_node *n, const char *attr)
{
    return attr && oct_node_int(n, attr, 0) != 0;
}

static bool kernel_layout(const oct_weights *w, const oct_node *n, int rank, const int64_t *dims, oct_weight_layout *l)
{
    const int64_t groups = oct_node_int(n, "group", 1);
    if (rank < 2 || groups < 1 || dims[0] % groups)
        return false;
    const int64_t taps = oct_times_all(dims + 2, rank - 2), row = oct_times(dims[1], taps);
    *l = (oct_weight_layout){ .out_axis = w->out, .in_axis = w->in, .matrices = 1, .groups = groups, .taps = taps };
    l->group_step = oct_times(dims[0] / groups, row);
    l->outs = w->out == 0 ? dims[0] : oct_times(dims[1], groups);
    l->ins = w->in == 0 ? dims[0] : oct_times(dims[1], groups);
    l->out_step = w->out == 0 ? row : taps;
    l->in_step = w->in == 0 ? row : taps;
    return true;
}

static bool matrix_layout(const oct_weights *w, const oct_node *n, int rank, const int64_t *dims, oct_weight_layout *l)
{
    const bool transposed = is_set(n, w->transposed);
    *l = (oct_weight_layout){
        .out_axis = -1, .matrices = 1, .groups = 1, .outs = 1, .taps = 1, .out_step = 1, .in_step = 1
    };
    if (rank < 1)
        return false;
    if (rank == 1) {
        l->ins = l->out_step = l->group_step = dims[0];
        return true;
    }
    l->out_axis = rank + (transposed ? w->in : w->out);
    l->in_axis = rank + (transposed ? w->out : w->in);
    l->matrices = oct_times_all(dims, rank - 2);
    l->outs = dims[l->out_axis];
    l->ins = dims[l->in_axis];
    l->group_step = oct_times(l->outs, l->ins);
    l->out_step = l->out_axis == rank - 1 ? 1 : l->ins;
    l->in_step = l->in_axis == rank - 1 ? 1 : l->outs;
    return true;
}

bool oct_weight_layout_of(const oct_op *op, const oct_node *n, int slot, int rank, const int64_t *dims,
                          oct_weight_layout *l)
{
    if (!op || slot < 0 || slot > 31 || !(op->weights.slots >> slot & 1))
        return false;
    return op->weights.kernel ? kernel_layout(&op->weights, n, rank, dims, l)
                              : matrix_layout(&op->weights, n, rank, dims, l);
}

/* Of the two dimensions of channels, the one in front counts over all groups, and the one behind it within a group. */
static int64_t channel_at(const oct_weight_layout *l, bool front, int64_t e)
{
    const int64_t row = l->out_axis < l->in_axis ? l->out_step : l->in_step, columns = row / l->taps;
    return front ? e / row : e / l->group_step * columns + e / l->taps % columns;
}

int64_t oct_output_channel(const oct_weight_layout *l, int64_t e)
{
    return channel_at(l, l->out_axis < l->in_axis, e);
}

int64_t oct_input_channel(const oct_weight_layout *l, int64_t e)
{
    return channel_at(l, l->in_axis < l->out_axis, e);
}

bool oct_is_depthwise(const oct_weight_layout *l)
{
    return l->groups > 1 && l->ins == l->groups;
}

int oct_channel_axis(const oct_op *op, const oct_node *n)
{
    return is_set(n, op->weights.data_transposed) ? -3 - op->weights.data : op->weights.data;
}
