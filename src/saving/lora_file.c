/* Adapters: what a model with LoRA has learned, without the kernels that it did not change. */
#include "base/alloc.h"
#include "base/error.h"
#include "formats/file.h"
#include "formats/npz.h"
#include "model/model.h"
#include "nn/layers/lora.h"
#include "saving/write_weights.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

#define SAVE "model_save_lora"
#define LOAD "model_load_lora"
enum { NAME = 512 };

/* ---- what an adapter holds ---- */

static bool has(mix_list *list, const void *item) {
  for (int i = 0; i < mix_list_count(list); i++)
    if (mix_list_items(list)[i] == item) return true;
  return false;
}

/* Of a layer with LoRA, or of one that stores integers, what trains, and a and b in any case; of another all,
 * if it trains: a normalization moves its means too. */
static bool is_learned(const mix_layer *layer, bool frozen, const mix_variable *variable) {
  const mix_lora *lora = layer->lora;
  if (lora && (variable == lora->a || variable == lora->b)) return true;
  if (frozen || variable->lora) return false;
  return variable->trainable || (!lora && !mix_layer_stores_integers(layer));
}

static void append_learned(mix_layer *layer, bool frozen, mix_list *learned) {
  frozen |= !layer->trainable;
  for (int i = 0; layer->weights && i < mix_list_count(layer->weights); i++) {
    mix_variable *variable = mix_list_items(layer->weights)[i];
    if (is_learned(layer, frozen, variable) && !has(learned, variable)) mix_list_append(learned, variable);
  }
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    append_learned(mix_list_items(layer->layers)[i], frozen, learned);
}

static mix_list *learned_variables(mix_model *model) {
  mix_list *learned = mix_list_new(0, NULL);
  if (learned) append_learned(model->layer, false, learned);
  return mix_failed() ? NULL : learned;
}

/* "fc/lora_kernel_a.alpha", in the scope. */
static const char *alpha_name(const char *of_a) {
  const size_t size = strlen(of_a) + sizeof ".alpha";
  char *text = mix_scoped_memory(size);
  if (text) snprintf(text, size, "%s.alpha", of_a);
  return text;
}

/* The layer whose a the variable is; NULL: it is another. */
static mix_layer *layer_of_a(mix_list *layers, const mix_variable *variable) {
  for (int i = 0; i < mix_list_count(layers); i++) {
    mix_layer *layer = mix_list_items(layers)[i];
    if (layer->lora->a == variable) return layer;
  }
  return NULL;
}

/* ---- saving ---- */

typedef struct arrays {
  int count;
  const char **names;
  mix_tensor **values;
} arrays;

static bool collect(mix_model *model, arrays *all) {
  mix_list *layers = mix_model_lora_layers(model), *learned = learned_variables(model);
  if (layers && !mix_list_count(layers))
    return mix_fail_value(SAVE ": no layer of '%s' has LoRA; enable it before, or save the model itself",
                          model->layer->name);
  const char **names = learned ? mix_array_names(learned) : NULL;
  const size_t size = names ? (size_t)(mix_list_count(learned) + mix_list_count(layers)) + 1 : 1;
  all->names = mix_scoped_memory(size * sizeof *all->names);
  all->values = mix_scoped_memory(size * sizeof *all->values);
  for (int i = 0; names && all->names && all->values && i < mix_list_count(learned); i++) {
    mix_variable *variable = mix_list_items(learned)[i];
    const mix_layer *layer = layer_of_a(layers, variable);
    all->names[all->count] = names[i];
    all->values[all->count++] = mix_variable_true_value(variable);
    if (!layer) continue;
    all->names[all->count] = alpha_name(names[i]);
    all->values[all->count++] = mix_scalar(layer->lora->alpha, MIX_FLOAT64);
  }
  return !mix_failed();
}

static void save(mix_model *model, const char *path) {
  arrays all = {0};
  if (!mix_model_weights_ready(model, SAVE) || !collect(model, &all)) return;
  char *part = mix_file_part(path, SAVE);
  if (part && mix_npz_write(SAVE, path, part, all.count, all.names, all.values, NULL))
    mix_file_commit(part, path, SAVE);
  mix_free(part);
}

mix_status mix_model_save_lora(mix_model *model, const char *path) {
  if (!mix_model_given(model, SAVE)) return mix_error();
  if (!path) return mix_fail_status(MIX_TYPE_ERROR, SAVE ": path is NULL");
  MIX_MODEL_USE(model, MIX_READS_MODEL, SAVE)
  MIX_SCOPE { save(model, path); }
  return mix_error();
}

/* ---- loading ---- */

typedef struct reading {
  mix_npz *npz;
  const char *path;
} reading;

static void refuse(const reading *r, const mix_layer *layer, const char *name, mix_shape given) {
  mix_fail_value(LOAD ": %s is the adapter of another model: its '%s' has shape %s, which does not fit the "
                      "kernel %s of layer '%s'",
                 r->path, name, MIX_SHAPE_TEXT(given), MIX_SHAPE_TEXT(mix_lora_shape(layer)), layer->name);
}

/* The rank that the adapter has for a layer; -1: it has none, or an error. */
static int64_t rank_for(const reading *r, const mix_layer *layer) {
  char name[NAME];
  mix_lora_name_a(layer, name, sizeof name);
  mix_tensor *a = mix_npz_get(r->npz, name);
  if (!a) return -1;
  const mix_shape kernel = mix_lora_shape(layer), of_a = mix_tensor_shape(a);
  const int last = kernel.rank - 1;
  mix_shape expected = kernel;
  if (of_a.rank == kernel.rank) expected.dims[last] = of_a.dims[last];
  if (!mix_shape_equal(of_a, expected)) return refuse(r, layer, name, of_a), -1;
  if (*name) name[strlen(name) - 1] = 'b';
  mix_tensor *b = mix_npz_get(r->npz, name);
  if (b && !mix_shape_equal(mix_tensor_shape(b), MIX_SHAPE(of_a.dims[last], kernel.dims[last])))
    return refuse(r, layer, name, mix_tensor_shape(b)), -1;
  return mix_failed() ? -1 : of_a.dims[last];
}

/* Gives LoRA to the layers for which the adapter has it. */
static void enable(const reading *r, mix_layer *layer, mix_list *enabled) {
  if (layer->kind && layer->kind->lora && layer->built && !layer->lora) {
    const int64_t rank = rank_for(r, layer);
    if (rank >= 0 && mix_lora_check(layer, rank, LOAD) &&
        mix_lora_enable(layer, rank, 0, mix_initializer_new("zeros"), NULL))
      mix_list_append(enabled, layer);
  }
  for (int i = 0; i < mix_list_count(layer->layers) && !mix_failed(); i++)
    enable(r, mix_list_items(layer->layers)[i], enabled);
}

static mix_tensor *array_for(const reading *r, const char *name, const mix_variable *variable,
                             const mix_layer *with_a) {
  mix_tensor *array = mix_npz_get(r->npz, name);
  if (!array && !mix_failed())
    return mix_fail_value(LOAD ": %s is the adapter of another model: it has no '%s'", r->path, name);
  if (!array || mix_shape_equal(mix_tensor_shape(array), variable->shape)) return array;
  mix_shape shape = mix_tensor_shape(array);
  const int last = variable->shape.rank - 1;
  const int64_t rank = shape.rank ? shape.dims[shape.rank - 1] : 0;
  if (shape.rank == last + 1) shape.dims[last] = variable->shape.dims[last];
  if (with_a && mix_shape_equal(shape, variable->shape))
    return mix_fail_value(LOAD ": %s has the rank %lld for layer '%s', and the model %lld; give the model no "
                               "LoRA (--lora-rank) before, or that rank",
                          r->path, (long long)rank, with_a->name, (long long)with_a->lora->rank);
  return mix_fail_value(LOAD ": %s is the adapter of another model: '%s' has shape %s there, and %s in the "
                             "model",
                        r->path, name, MIX_SHAPE_TEXT(mix_tensor_shape(array)),
                        MIX_SHAPE_TEXT(variable->shape));
}

static bool read_alpha(const reading *r, const char *name_of_a, double *alpha) {
  const char *name = alpha_name(name_of_a);
  mix_tensor *array = name ? mix_npz_get(r->npz, name) : NULL;
  if (!array && !mix_failed())
    return mix_fail_value(LOAD ": %s has no '%s'; expected an adapter that mix_model_save_lora wrote",
                          r->path, name);
  if (!array) return false;
  if (mix_tensor_shape(array).rank || mix_tensor_dtype(array) != MIX_FLOAT64)
    return mix_fail_value(LOAD ": %s: '%s' is no number in float64", r->path, name);
  *alpha = mix_tensor_item(array);
  return !mix_failed() &&
         (isfinite(*alpha) ||
          mix_fail_value(LOAD ": %s: '%s' is %g; expected a finite number", r->path, name, *alpha));
}

/* An array that belongs to nothing in the model. */
static bool check_names(const reading *r, const arrays *all) {
  for (int i = 0; i < mix_npz_count(r->npz); i++) {
    bool known = false;
    for (int j = 0; j < all->count && !known; j++) known = !strcmp(mix_npz_name(r->npz, i), all->names[j]);
    if (!known)
      return mix_fail_value(LOAD ": %s is the adapter of another model, which has '%.200s'; this one has not",
                            r->path, mix_npz_name(r->npz, i));
  }
  return true;
}

/* Everything is read and checked before the first variable changes. */
static bool read_all(const reading *r, mix_model *model) {
  mix_list *layers = mix_model_lora_layers(model), *learned = learned_variables(model),
           *values = mix_list_new(0, NULL);
  const char **names = learned ? mix_array_names(learned) : NULL;
  arrays all = {0};
  const size_t size = names ? 2 * (size_t)mix_list_count(learned) + 1 : 1;
  double *alphas = mix_scoped_memory(size * sizeof *alphas);
  all.names = mix_scoped_memory(size * sizeof *all.names);
  if (layers && !mix_list_count(layers))
    return mix_fail_value(LOAD ": %s has nothing for a layer of '%s'; expected an adapter of this model",
                          r->path, model->layer->name);
  for (int i = 0; names && alphas && all.names && i < mix_list_count(learned) && !mix_failed(); i++) {
    const mix_variable *variable = mix_list_items(learned)[i];
    const mix_layer *layer = layer_of_a(layers, variable);
    mix_list_append(values, array_for(r, names[i], variable, layer));
    all.names[all.count++] = names[i];
    if (!layer) continue;
    if (!mix_failed()) read_alpha(r, names[i], &alphas[i]);
    all.names[all.count++] = alpha_name(names[i]);
  }
  if (mix_failed() || !check_names(r, &all)) return false;
  for (int i = 0; i < mix_list_count(learned) && !mix_failed(); i++) {
    mix_variable *variable = mix_list_items(learned)[i];
    mix_layer *layer = layer_of_a(layers, variable);
    mix_variable_assign(variable, mix_cast(mix_list_items(values)[i], variable->dtype));
    if (layer) mix_lora_set_alpha(layer, alphas[i]);
  }
  return !mix_failed();
}

/* The layers that got LoRA for an adapter that does not fit lose it. */
static void undo(mix_list *enabled) {
  mix_error_aside before;
  mix_error_set_aside(&before);
  for (int i = 0; i < mix_list_count(enabled); i++) mix_lora_remove(mix_list_items(enabled)[i]);
  mix_error_clear();
  mix_error_put_back(&before);
}

static void load(mix_model *model, const char *path) {
  if (!mix_model_weights_ready(model, LOAD)) return;
  const reading r = {.npz = mix_npz_open(path), .path = path};
  mix_list *layers = r.npz ? mix_model_lora_layers(model) : NULL, *enabled = mix_list_new(0, NULL);
  if (layers && enabled && !mix_list_count(layers)) enable(&r, model->layer, enabled);
  const bool good = layers && !mix_failed() && read_all(&r, model);
  if (!good && enabled && mix_list_count(enabled)) undo(enabled);
  mix_predictors_drop(model);
  mix_capture_epoch_move();
}

mix_status mix_model_load_lora(mix_model *model, const char *path) {
  if (!mix_model_given(model, LOAD)) return mix_error();
  if (!path) return mix_fail_status(MIX_TYPE_ERROR, LOAD ": path is NULL");
  MIX_MODEL_USE(model, MIX_CHANGES_MODEL, LOAD)
  MIX_SCOPE { load(model, path); }
  return mix_error();
}
