/* A function whose values are computed again for gradients. */
#include "base/error.h"
#include "base/float_modes.h"
#include "graph/node.h"
#include <mixtape/object.h>
#include <mixtape/remat.h>

/* Is it a list of tensors, or of none (NULL)? Otherwise false with a TypeError. */
static bool holds_tensors(mix_list *list, const char *what) {
  if (!mix_given(list, &mix_list_class, "remat", what)) return false;
  for (int i = 0; i < mix_list_count(list); i++) {
    void *item = mix_list_get(list, i);
    if (item && !mix_given(item, &mix_tensor_class, "remat", what)) return false;
  }
  return !mix_failed();
}

mix_list *mix_remat(mix_remat_function function, void *context, mix_list *inputs) {
  MIX_OWN_FLOAT_MODES;
  if (mix_failed()) return NULL;
  if (!function) return mix_fail_type("remat: got no function; expected one that returns a list of tensors");
  if (inputs && !holds_tensors(inputs, "a list of tensors as inputs, or NULL")) return NULL;
  mix_segment *segment = mix_segment_begin();
  if (!segment) return NULL;
  mix_list *results = function(context, inputs);
  mix_segment_end(segment, false);
  if (mix_failed()) return NULL;
  if (!results) return mix_fail_type("remat: the function returned NULL; expected a list of tensors");
  return holds_tensors(results, "a list of tensors from the function") ? results : NULL;
}
