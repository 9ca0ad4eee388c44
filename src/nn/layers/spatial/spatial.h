/* What layers over spatial axes share: sizes for each axis, padding names, channels first. */
#ifndef MIX_NN_LAYERS_SPATIAL_SPATIAL_H
#define MIX_NN_LAYERS_SPATIAL_SPATIAL_H

#include "nn/layers/builtin.h"
#include <string.h>

/* mix_shape: one positive number for all axes, or one for each; a list in configs. The row's `number` is how
 * many axes there are, `text` the default, or `other` the offset of the value that it has then. */
extern const mix_value_kind mix_field_per_axis;
/* "valid" or "same", in any case. */
extern const mix_value_kind mix_field_padding;
#define MIX_DATA_FORMAT_FIELD(type)                                                                          \
  {                                                                                                          \
    MIX_FIELD(type, data_format), &mix_field_text, .text = "channels_last",                                  \
                                                   .choices = "channels_last|channels_first"                 \
  }

static inline bool mix_is_channels_first(const char *data_format) {
  return data_format && !strcmp(data_format, "channels_first");
}
/* x with its channels last, and back. */
mix_tensor *mix_to_channels_last(mix_tensor *x, const char *data_format);
mix_tensor *mix_from_channels_last(mix_tensor *x, const char *data_format);
/* The first spatial axis. */
static inline int mix_spatial_begin(const char *data_format) {
  return mix_is_channels_first(data_format) ? 2 : 1;
}
/* The input has that many axes between batch and channels. */
bool mix_layer_spatial(mix_layer *layer, int axes);
/* The output of a window along an axis of n elements with "same" padding, and how much precedes them. */
int64_t mix_same_length(int64_t n, int64_t stride);
int64_t mix_same_padding(int64_t n, int64_t window, int64_t stride, int64_t *before);

#endif
