/* What calls of a layer add for the training step around them: the values of metrics, and penalties. */
#include "base/error.h"
#include "base/alloc.h"
#include "nn/layer/layer.h"
#include "tensor/shape.h"

static void finalize(void *object) { mix_release(((mix_added_metric *)object)->value); }
static const mix_class added_class = {.name = "added metric", .finalize = finalize};

mix_status mix_layer_add_metric(mix_layer *layer, mix_tensor *value, const char *name) {
  static const char call[] = "layer_add_metric";
  if (!mix_given(layer, &mix_layer_object_class, call, "a layer") ||
      !mix_given(value, &mix_tensor_class, call, "the metric's value"))
    return mix_error();
  if (!name || !name[0])
    return mix_fail_status(MIX_VALUE_ERROR, "%s: '%s' gave no name; expected the one that logs show", call,
                           layer->name);
  if (!mix_dtype_is_floating(mix_tensor_dtype(value)))
    return mix_fail_status(MIX_TYPE_ERROR, "%s: '%s' of '%s' is %s; expected a floating dtype: use mix_cast",
                           call, name, layer->name, mix_dtype_name(mix_tensor_dtype(value)));
  if (!layer->metrics) layer->metrics = mix_retain(mix_list_new(0, NULL));
  mix_added_metric *added = layer->metrics ? mix_object_new(sizeof *added, &added_class) : NULL;
  if (!added) return mix_error();
  added->name = mix_intern(name);
  added->value = mix_retain(value);
  if (added->name) mix_list_append(layer->metrics, added);
  mix_release(added);
  return mix_error();
}

static bool has(mix_list *list, const void *item) {
  for (int i = 0; i < mix_list_count(list); i++)
    if (mix_list_items(list)[i] == item) return true;
  return false;
}

/* A layer inside several others has its values once. */
static void append(mix_layer *layer, mix_list *seen, mix_list *all) {
  if (has(seen, layer) || mix_list_append(seen, layer) != MIX_OK) return;
  for (int i = 0; layer->metrics && i < mix_list_count(layer->metrics); i++)
    mix_list_append(all, mix_list_items(layer->metrics)[i]);
  for (int i = 0; i < mix_list_count(layer->layers); i++) append(mix_list_items(layer->layers)[i], seen, all);
}

mix_list *mix_layer_added_metrics(mix_layer *layer) {
  mix_list *all = mix_list_new(0, NULL);
  if (all) append(layer, mix_list_new(0, NULL), all);
  return mix_failed() ? NULL : all;
}

void mix_layer_clear_added(mix_layer *layer) {
  mix_list *none = mix_list_count(layer->losses) ? mix_list_new(0, NULL) : NULL;
  if (none) { /* else they stay, so that the layer has a list after an error too */
    mix_release(layer->losses);
    layer->losses = mix_retain(none);
  }
  mix_release(layer->metrics);
  layer->metrics = NULL;
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    mix_layer_clear_added(mix_list_items(layer->layers)[i]);
}
