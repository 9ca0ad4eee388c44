/* A function whose values are computed again for gradients. */
#include "base/error.h"
#include "base/float_modes.h"
#include "graph/segment.h"
#include <mixtape/remat.h>

mix_list *mix_remat(mix_remat_function function, void *context, mix_list *inputs) {
  MIX_OWN_FLOAT_MODES;
  if (mix_failed()) return NULL;
  if (!function) return mix_fail_type("remat: got no function; expected one that returns a list of tensors");
  if (inputs && !mix_given(inputs, &mix_list_class, "remat", "a list of tensors, or NULL")) return NULL;
  mix_segment *segment = mix_segment_begin();
  if (!segment) return NULL;
  mix_list *results = function(context, inputs);
  mix_segment_end(segment, false);
  if (mix_failed()) return NULL;
  if (!results) return mix_fail_type("remat: the function returned NULL; expected a list of tensors");
  return mix_given(results, &mix_list_class, "remat", "a list of tensors from the function") ? results : NULL;
}
