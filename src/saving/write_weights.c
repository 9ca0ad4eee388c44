/* Writes weights at their paths: model.weights.h5, .weights.h5. */
#include "saving/write_weights.h"

#include "base/error.h"
#include "nn/layers/builtin.h"
#include "nn/layers/lora.h"
#include "saving/read_weights.h"
#include "saving/weight_tree.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

mix_file_kind mix_file_kind_of(const char *path) {
  static const struct {
    const char *end;
    mix_file_kind kind;
  } ends[] = {{".weights.h5", MIX_FILE_WEIGHTS},
              {".weights.json", MIX_FILE_SHARDS},
              {".keras", MIX_FILE_ARCHIVE},
              {".h5", MIX_FILE_LEGACY},
              {".hdf5", MIX_FILE_LEGACY},
              {".npz", MIX_FILE_ARRAYS},
              {".safetensors", MIX_FILE_SAFETENSORS},
              {"/", MIX_FILE_PRESET}};
  const size_t length = strlen(path);
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    const size_t end = strlen(ends[i].end);
    if (length > end && !strcmp(path + length - end, ends[i].end)) return ends[i].kind;
  }
  return MIX_FILE_UNKNOWN;
}

/* ---- a file ---- */

/* Only Keras 3 reads bfloat16 as it is, and nobody float8. */
bool mix_write_variable(mix_hdf5_writer *file, const char *path, mix_variable *variable, bool bfloat16,
                        bool merged) {
  bool good = false;
  MIX_SCOPE {
    mix_tensor *value =
        merged && variable->lora ? mix_lora_saved_value(variable) : mix_variable_true_value(variable);
    const mix_dtype dtype = value ? mix_tensor_dtype(value) : MIX_DTYPE_NONE;
    if (value && ((dtype == MIX_BFLOAT16 && !bfloat16) || mix_dtype_is_float8(dtype)))
      value = mix_cast(value, MIX_FLOAT32);
    good = mix_hdf5_write_tensor(file, path, value);
  }
  return good && !mix_failed();
}

bool mix_hdf5_save(mix_hdf5_writer *file, const char *path, const char *call) {
  mix_piece_source bytes;
  return mix_hdf5_writer_source(file, &bytes) && mix_file_replace_from(path, &bytes, call);
}

/* ---- objects at their paths ---- */

typedef struct writing {
  mix_hdf5_writer *file;
  const mix_semantics *rules;
  bool no_optimizer;
} writing;

static bool write_object(void *context, const char *path, const char *name, mix_list *variables) {
  const writing *w = context;
  if (w->no_optimizer && mix_is_optimizer_path(path)) return true;
  const char *group = mix_join_path(path, "vars");
  if (!group || !mix_hdf5_write_group(w->file, group)) return false;
  if (w->rules->saved_objects_named && !mix_hdf5_write_text(w->file, group, "name", name)) return false;
  for (int i = 0; i < mix_list_count(variables); i++) {
    char number[16];
    snprintf(number, sizeof number, "%d", i);
    const char *at = mix_join_path(group, number);
    if (!at || !mix_write_variable(w->file, at, mix_list_items(variables)[i], w->rules->bfloat16_saved, true))
      return false;
  }
  return true;
}

static bool count_added_metric(void *context, const char *path, mix_layer *layer) {
  *(int *)context += layer->kind == &mix_add_metric_kind;
  return true;
}

/* tf_keras makes the means of AddMetric with the model, and misses them in a file. They begin anew. */
static bool write_added_metrics(writing *w, mix_model *model) {
  int count = 0;
  if (!mix_visit_weight_layers(model, count_added_metric, &count)) return false;
  for (int i = 0; i < count && !mix_failed(); i++) {
    char path[40] = "metrics/mean";
    if (i) snprintf(path, sizeof path, "metrics/mean_%d", i);
    mix_variable *total = mix_variable_new(mix_scalar(0, MIX_FLOAT32), .not_trainable = true),
                 *number = mix_variable_new(mix_scalar(0, MIX_FLOAT32), .not_trainable = true);
    if (!mix_failed()) write_object(w, path, "mean", mix_list_of(total, number));
  }
  return !mix_failed();
}

mix_hdf5_writer *mix_weights_file(mix_model *model, const char *call, bool no_optimizer, bool archive) {
  const bool places = archive && model->semantics->saved_names_skip_seen;
  bool (*visit_all)(mix_model *, mix_weight_visit *, void *) =
      places ? mix_visit_weight_places : mix_visit_weight_tree;
  writing w = {mix_hdf5_writer_new(call), model->semantics, no_optimizer};
  return w.file && visit_all(model, write_object, &w) && write_added_metrics(&w, model) ? w.file : NULL;
}

mix_hdf5_writer *mix_weights_file_without(mix_model *model, mix_layer *skipped, const char *call) {
  writing w = {mix_hdf5_writer_new(call), model->semantics, true};
  return w.file && mix_visit_weight_tree_without(model, skipped, write_object, &w) ? w.file : NULL;
}
