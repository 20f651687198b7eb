/* lib/kernels/conv/qdw.h -- 8-bit depthwise convolution, for qconv.c. Internal. */
#ifndef OCT_KERNELS_CONV_QDW_H
#define OCT_KERNELS_CONV_QDW_H

#include "kernels/conv/conv.h"
#include "kernels/rows.h"

/* Sets padded, lanes and joined. */
void oct_qdw_join(oct_qconv *p);
/* Sets block and packed_size, and the scratch of a thread; false when sizes overflow. */
bool oct_qdw_sizes(oct_qconv *p, size_t *thread);
void oct_qdw_pack(const oct_qconv *p, const void *w, const int32_t *zw, size_t zw_step, void *packed);
/* rows: of lanes. flip, za: of the input as the kernels take it. scratch: oct_qtiles_shared of the channels, then
 * oct_qdw_sizes' for each thread, rounded up to 64. */
void oct_qdw_run(const oct_qconv *p, oct_pool *pool, const oct_rows *rows, uint8_t flip, int32_t za, const void *packed,
                 const int32_t *bias, const oct_qout *out, void *y, void *scratch);

#endif
