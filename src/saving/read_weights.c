/* Weights at their paths: model.weights.h5, .weights.h5. */
#include "saving/read_weights.h"

#include "base/error.h"
#include "nn/layers/lora.h"
#include "saving/weight_tree.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

/* TensorFlow 2.13 wrote another name for `layers`. */
static const char *old_path(const char *path) {
  static const char new_name[] = "layers", old_name[] = "_layer_checkpoint_dependencies";
  char *text = mix_scoped_memory(strlen(path) * sizeof old_name + 1), *to = text;
  while (text && *path) {
    if (!strncmp(path, new_name, sizeof new_name - 1)) {
      memcpy(to, old_name, sizeof old_name);
      to += sizeof old_name - 1;
      path += sizeof new_name - 1;
    } else {
      *to++ = *path++;
    }
  }
  return text;
}

/* The group of an object's variables. */
static const char *group_of(mix_weights_reader *reader, const char *path) {
  const char *group = mix_join_path(path, "vars");
  if (!group || reader->file->shards || mix_hdf5_has(&reader->file->hdf5, group) || mix_failed() ||
      !mix_hdf5_has(&reader->file->hdf5, "_layer_checkpoint_dependencies"))
    return group;
  return mix_join_path(old_path(path), "vars");
}

/* "(4, 3), (3)": the shapes of data sets 0, 1, ... */
static const char *stored_shapes(mix_weights_reader *reader, const char *group, int count, char *text,
                                 size_t size) {
  char number[16];
  size_t used = 0;
  text[0] = 0;
  for (int i = 0; i < count && used + 1 < size; i++) {
    mix_dtype dtype;
    mix_shape shape;
    snprintf(number, sizeof number, "%d", i);
    const char *path = mix_join_path(group, number);
    mix_hdf5 *hdf5 = path ? mix_keras_file_with(reader->file, path) : NULL;
    if (!hdf5 || !mix_hdf5_describe(hdf5, path, &dtype, &shape)) break;
    used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", MIX_SHAPE_TEXT(shape));
  }
  return text;
}

static bool counts_differ(mix_weights_reader *reader, const char *group, const char *name,
                          mix_list *variables, int count) {
  char ours[300], theirs[300] = "";
  stored_shapes(reader, group, count, theirs, sizeof theirs);
  if (mix_failed()) return false;
  return mix_fail_value(
      "%s: %s: '%s' has %d variables (%s), but '%s' in the file has %d (%s); expected the weights "
      "of a model of the same layers",
      reader->call, reader->file->name, name, mix_list_count(variables),
      mix_variables_text(variables, ours, sizeof ours), group, count, theirs);
}

static bool read_variables(mix_weights_reader *reader, const char *group, mix_list *variables) {
  char number[16];
  for (int i = 0; i < mix_list_count(variables); i++) {
    snprintf(number, sizeof number, "%d", i);
    const char *path = mix_join_path(group, number);
    const mix_variable *variable = mix_list_items(variables)[i];
    if (!path || !mix_read_variable(reader, path, mix_list_items(variables)[i])) return false;
    if (reader->assign && variable->lora && !mix_lora_reset(variable->lora)) return false;
  }
  return true;
}

/* Those that the file of a float model has; the others begin as in a new layer. */
static mix_list *without_scales(const mix_weights_reader *reader, mix_list *variables) {
  mix_list *rest = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(variables); i++) {
    mix_variable *variable = mix_list_items(variables)[i];
    if (!variable->overwrite_with_gradient)
      mix_list_append(rest, variable);
    else if (reader->assign)
      mix_variable_assign(variable, mix_fill(variable->shape, !variable->shape.rank, variable->dtype));
  }
  return mix_failed() ? NULL : rest;
}

static int count_scales(mix_list *variables) {
  int count = 0;
  for (int i = 0; i < mix_list_count(variables); i++)
    count += ((mix_variable *)mix_list_items(variables)[i])->overwrite_with_gradient;
  return count;
}

static bool read_object(void *context, const char *path, const char *name, mix_list *variables) {
  mix_weights_reader *reader = context;
  if (mix_is_optimizer_path(path)) return true;
  const char *group = group_of(reader, path);
  const int count = group ? mix_count_links(reader->file, group) : -1;
  if (count < 0) return false;
  if (reader->begins_scales && count == mix_list_count(variables) - count_scales(variables) &&
      !(variables = without_scales(reader, variables)))
    return false;
  const bool good = count == mix_list_count(variables) ? read_variables(reader, group, variables)
                                                       : counts_differ(reader, group, name, variables, count);
  return good || mix_skip_mismatch(reader);
}

/* ---- layers at several places ---- */

static bool is_there(void *context, const char *path, const char *name, mix_list *variables) {
  mix_weights_reader *reader = context;
  if (mix_is_optimizer_path(path)) return true;
  const char *group = group_of(reader, path);
  return group && mix_count_links(reader->file, group) == mix_list_count(variables);
}

/* Archives that this library writes for tf_keras have the weights at each place of a layer, and the groups
 * are numbered so. */
static bool read_objects(mix_weights_reader *reader) {
  mix_model *model = reader->model;
  if (reader->skipped) return mix_visit_weight_tree_without(model, reader->skipped, read_object, reader);
  const bool may_have = model->semantics->saved_names_skip_seen && mix_weight_tree_repeats(model);
  const bool places = may_have && mix_visit_weight_places(model, is_there, reader);
  if (mix_failed()) return false;
  return places ? mix_visit_weight_places(model, read_object, reader)
                : mix_visit_weight_tree(model, read_object, reader);
}

/* ---- layers that the config does not say to be quantized ---- */

/* The length of the histories, if the data sets from `first` on are three scales, each before its history;
 * else 0. */
static int64_t history_length(mix_weights_reader *reader, const char *group, int first) {
  int64_t length = 0;
  for (int i = 0; i < 6; i++) {
    char number[16];
    mix_dtype dtype;
    mix_shape shape;
    snprintf(number, sizeof number, "%d", first + i);
    const char *path = mix_join_path(group, number);
    if (!path || !mix_hdf5_describe(&reader->file->hdf5, path, &dtype, &shape)) return 0;
    if (shape.rank != i % 2) return 0;
    if (i == 1) length = shape.dims[0];
    if (i % 2 && shape.dims[0] != length) return 0;
  }
  return length <= INT32_MAX ? length : 0;
}

/* The block size of a group index 0, 0, ..., 1, 1, ...; of one group alone, a size that has one. */
static int64_t block_of(mix_weights_reader *reader, const char *path) {
  const int64_t usual = 128;
  int64_t block = 0, rows = 0;
  MIX_SCOPE {
    mix_hdf5 *hdf5 = mix_keras_file_with(reader->file, path);
    mix_tensor *index = hdf5 ? mix_cast(mix_hdf5_tensor(hdf5, path), MIX_FLOAT32) : NULL;
    const float *data = index ? mix_tensor_data(index) : NULL;
    rows = data && mix_tensor_shape(index).rank == 1 ? mix_tensor_shape(index).dims[0] : 0;
    while (block < rows && data[block] == 0) block++;
  }
  return block < rows ? block : rows < usual ? usual : rows;
}

/* The mode that the group of a layer has, which has `own` weights there without one, for a and b of LoRA are
 * merged: its first data set is a kernel of integers, of the kernel's shape in int8. False: it has none. */
static bool mode_of_group(mix_weights_reader *reader, const char *group, const mix_layer *layer, int count,
                          mix_quantization *to) {
  const int own = mix_list_count(layer->weights) - (layer->lora ? 2 : 0);
  const mix_variable *kernel = mix_list_get(layer->weights, 0);
  mix_dtype dtype;
  mix_shape shape;
  const char *first = mix_join_path(group, "0");
  mix_hdf5 *hdf5 = first && count > own ? mix_keras_file_with(reader->file, first) : NULL;
  if (!hdf5 || !mix_hdf5_has(hdf5, first) || !mix_hdf5_describe(hdf5, first, &dtype, &shape)) return false;
  if (dtype != MIX_INT8) {
    const int64_t length = count == own + 6 && !layer->lora ? history_length(reader, group, own) : 0;
    *to = (mix_quantization){.mode = "float8", .amax_history_length = length, .config = {.mode = "float8"}};
    return length > 0;
  }
  const bool int8 = count == own + 1 && mix_shape_equal(shape, kernel->shape);
  if (!int8 && count != own + 1 && count != own + 3) return false;
  *to = (mix_quantization){.mode = "int8", .amax_history_length = 1};
  mix_quantization_config_default(int8 ? "int8" : "int4", &to->config);
  if (int8) return true;
  char last[16];
  snprintf(last, sizeof last, "%d", count - 1);
  const char *index = mix_join_path(group, last);
  to->config.block_size = count == own + 3 && index ? block_of(reader, index) : -1;
  snprintf(to->text, sizeof to->text, "int4/%lld", (long long)to->config.block_size);
  to->mode = to->text;
  return true;
}

static bool quantize_as_group(void *context, const char *path, mix_layer *layer) {
  mix_weights_reader *reader = context;
  mix_quantization to;
  if (!layer->kind || !layer->kind->quantize || !layer->built || mix_layer_quantization_mode(layer))
    return true;
  const char *group = group_of(reader, path);
  const int count = group ? mix_count_links(reader->file, group) : -1;
  const bool found = count >= 0 && mode_of_group(reader, group, layer, count, &to);
  if (mix_failed() || count < 0) return false;
  if (found && layer->kind->check_quantization && !layer->kind->check_quantization(layer, &to)) return false;
  return !found || mix_layer_quantize(layer, &to) == MIX_OK;
}

bool mix_quantize_as_file(mix_weights_reader *reader) {
  bool good = !reader->file->by_path || !reader->model->semantics->policy_quantized;
  const bool former = mix_zero_weights_set(true); /* each is read */
  if (!good)
    MIX_SCOPE {
      good = mix_visit_weight_layers_without(reader->model, reader->skipped, quantize_as_group, reader);
    }
  mix_zero_weights_set(former);
  return good && !mix_failed();
}

/* ---- the call ---- */

static bool read_all(mix_weights_reader *reader) {
  bool good = false;
  MIX_SCOPE {
    good = reader->file->by_path ? read_objects(reader) : mix_read_legacy_weights(reader);
    good = good && mix_read_optimizer(reader);
  }
  return good && !mix_failed();
}

bool mix_check_weights(mix_weights_reader *reader) {
  mix_weights_reader weights = *reader;
  weights.assign = false;
  weights.no_optimizer = true;
  return read_all(&weights);
}

bool mix_read_weights(mix_weights_reader *reader) {
  reader->assign = false;
  if (!read_all(reader)) return false;
  reader->assign = true;
  return read_all(reader);
}
