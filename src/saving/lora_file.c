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

/* Of a layer with LoRA, or of one that stores integers, what trains, and a and b in any case; of another all,
 * if it trains: a normalization moves its means too. */
static bool is_learned(const mix_layer *layer, bool frozen, const mix_variable *variable) {
  const mix_lora *lora = layer->lora;
  if (lora && (variable == lora->a || variable == lora->b)) return true;
  if (frozen || variable->lora) return false;
  return variable->trainable || (!lora && !mix_layer_stores_integers(layer));
}

/* A variable of the model, or in a layer that can have LoRA the place of one, under a name that no other part
 * has. So a model without LoRA knows the names that its a and b will have. */
typedef struct part {
  mix_layer *layer;
  const mix_variable *variable; /* NULL: `name` is that of a, and the next part's that of b */
  const char *name;
  bool learned;
} part;
typedef struct parts {
  part *items;
  int count, capacity;
} parts;

static part *find_part(const parts *all, const mix_layer *layer, const mix_variable *variable) {
  for (int i = 0; i < all->count; i++)
    if (all->items[i].variable == variable && (variable || all->items[i].layer == layer))
      return &all->items[i];
  return NULL;
}

static bool add_part(parts *all, part p) {
  if (!p.name || !mix_reserve(&all->items, &all->capacity, all->count + 1, sizeof *all->items)) return false;
  all->items[all->count++] = p;
  return true;
}

static bool add_places(parts *all, mix_layer *layer) {
  char name[NAME];
  if (!layer->kind || !layer->kind->lora || !layer->built || layer->lora || find_part(all, layer, NULL))
    return true;
  mix_lora_name_a(layer, name, sizeof name);
  bool good = add_part(all, (part){.layer = layer, .name = mix_intern(name)});
  if (*name) name[strlen(name) - 1] = 'b';
  return good && add_part(all, (part){.layer = layer, .name = mix_intern(name)});
}

/* A layer that several others have learns if one of them does. A weight that an outer layer lists too is the
 * inner one's. */
static bool add_layer(parts *all, mix_layer *layer, bool frozen) {
  frozen |= !layer->trainable;
  bool good = add_places(all, layer);
  for (int i = 0; good && layer->weights && i < mix_list_count(layer->weights); i++) {
    const mix_variable *variable = mix_list_items(layer->weights)[i];
    part *known = find_part(all, layer, variable);
    if (known)
      known->layer = layer, known->learned |= is_learned(layer, frozen, variable);
    else
      good = add_part(all, (part){layer, variable, variable->name, is_learned(layer, frozen, variable)});
  }
  for (int i = 0; good && i < mix_list_count(layer->layers); i++)
    good = add_layer(all, mix_list_items(layer->layers)[i], frozen);
  return good;
}

/* In the scope. False with the error recorded. */
static bool list_parts(mix_model *model, parts *all) {
  *all = (parts){0};
  part *items = NULL;
  bool good = add_layer(all, model->layer, false);
  const char **names = good ? mix_scoped_memory(((size_t)all->count + 1) * sizeof *names) : NULL;
  if (names) items = mix_scoped_memory(((size_t)all->count + 1) * sizeof *items);
  for (int i = 0; items && i < all->count; i++) names[i] = all->items[i].name;
  good = items && mix_number_names(names, all->count);
  for (int i = 0; good && i < all->count; i++) {
    items[i] = all->items[i];
    items[i].name = names[i];
  }
  mix_free(all->items);
  all->items = items;
  return good;
}

/* "fc/lora_kernel_a.alpha", in the scope. */
static const char *alpha_name(const char *of_a) {
  const size_t size = strlen(of_a) + sizeof ".alpha";
  char *text = mix_scoped_memory(size);
  if (text) snprintf(text, size, "%s.alpha", of_a);
  return text;
}

/* The layer whose a it is; NULL: it is another. */
static mix_layer *layer_of_a(const part *p) {
  return p->layer->lora && p->layer->lora->a == p->variable ? p->layer : NULL;
}

/* ---- saving ---- */

typedef struct arrays {
  int count;
  const char **names;
  mix_tensor **values;
} arrays;

static bool collect(mix_model *model, arrays *all) {
  mix_list *layers = mix_model_lora_layers(model);
  parts own;
  if (layers && !mix_list_count(layers))
    return mix_fail_value(SAVE ": no layer of '%s' has LoRA; enable it before, or save the model itself",
                          model->layer->name);
  if (!layers || !list_parts(model, &own)) return false;
  const size_t size = 2 * (size_t)own.count + 1;
  all->names = mix_scoped_memory(size * sizeof *all->names);
  all->values = mix_scoped_memory(size * sizeof *all->values);
  for (int i = 0; all->names && all->values && i < own.count; i++) {
    const part *p = &own.items[i];
    if (!p->learned) continue;
    all->names[all->count] = p->name;
    all->values[all->count++] = mix_variable_true_value((mix_variable *)p->variable);
    if (!layer_of_a(p)) continue;
    all->names[all->count] = alpha_name(p->name);
    all->values[all->count++] = mix_scalar(p->layer->lora->alpha, MIX_FLOAT64);
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

/* The rank that the adapter has for a layer that may get a and b; -1: it has none, or an error. */
static int64_t rank_for(const reading *r, const part *a_and_b) {
  const mix_layer *layer = a_and_b->layer;
  mix_tensor *a = mix_npz_get(r->npz, a_and_b[0].name);
  if (!a) return -1;
  const mix_shape kernel = mix_lora_shape(layer), of_a = mix_tensor_shape(a);
  const int last = kernel.rank - 1;
  mix_shape expected = kernel;
  if (of_a.rank == kernel.rank) expected.dims[last] = of_a.dims[last];
  if (!mix_shape_equal(of_a, expected)) return refuse(r, layer, a_and_b[0].name, of_a), -1;
  mix_tensor *b = mix_npz_get(r->npz, a_and_b[1].name);
  if (b && !mix_shape_equal(mix_tensor_shape(b), MIX_SHAPE(of_a.dims[last], kernel.dims[last])))
    return refuse(r, layer, a_and_b[1].name, mix_tensor_shape(b)), -1;
  return mix_failed() ? -1 : of_a.dims[last];
}

/* Gives LoRA to the layers for which the adapter has it. */
static void enable(const reading *r, mix_model *model, mix_list *enabled) {
  parts own;
  if (!list_parts(model, &own)) return;
  for (int i = 0; i < own.count && !mix_failed(); i++) {
    mix_layer *layer = own.items[i].layer;
    if (own.items[i].variable) continue;
    const int64_t rank = rank_for(r, &own.items[i++]);
    if (rank >= 0 && mix_lora_check(layer, rank, LOAD) &&
        mix_lora_enable(layer, rank, 0, mix_initializer_new("zeros"), NULL))
      mix_list_append(enabled, layer);
  }
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

typedef struct contents {
  arrays all;     /* of values NULL where an alpha is */
  double *alphas; /* beside the names of a */
  parts own;      /* of the model */
} contents;

/* Everything that the adapter holds for the model. */
static bool read_all(const reading *r, mix_model *model, contents *c) {
  const size_t size = list_parts(model, &c->own) ? 2 * (size_t)c->own.count + 1 : 1;
  c->alphas = mix_scoped_memory(size * sizeof *c->alphas);
  c->all.names = mix_scoped_memory(size * sizeof *c->all.names);
  c->all.values = mix_scoped_memory(size * sizeof *c->all.values);
  for (int i = 0; i < c->own.count && !mix_failed(); i++) {
    const part *p = &c->own.items[i];
    if (!p->learned) continue;
    const mix_layer *with_a = layer_of_a(p);
    const int at = c->all.count++;
    c->all.names[at] = p->name;
    c->all.values[at] = array_for(r, p->name, p->variable, with_a);
    if (!with_a || mix_failed()) continue;
    read_alpha(r, p->name, &c->alphas[at]);
    c->all.names[c->all.count++] = alpha_name(p->name);
  }
  return !mix_failed() && check_names(r, &c->all);
}

static bool assign_all(const contents *c) {
  for (int i = 0, at = 0; i < c->own.count && !mix_failed(); i++) {
    const part *p = &c->own.items[i];
    if (!p->learned) continue;
    mix_layer *with_a = layer_of_a(p);
    mix_variable_assign((mix_variable *)p->variable, mix_cast(c->all.values[at], p->variable->dtype));
    if (with_a) mix_lora_set_alpha(with_a, c->alphas[at]);
    at += with_a ? 2 : 1;
  }
  return !mix_failed();
}

/* Everything is read and checked before the first variable changes. */
static bool take_all(const reading *r, mix_model *model) {
  mix_list *layers = mix_model_lora_layers(model);
  contents c = {0};
  if (layers && !mix_list_count(layers))
    return mix_fail_value(LOAD ": %s has nothing for a layer of '%s'; expected an adapter of this model",
                          r->path, model->layer->name);
  return layers && read_all(r, model, &c) && assign_all(&c);
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
  if (layers && enabled && !mix_list_count(layers)) enable(&r, model, enabled);
  const bool good = layers && !mix_failed() && take_all(&r, model);
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
