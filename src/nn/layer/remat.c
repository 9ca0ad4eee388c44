#include "nn/layer/remat.h"

#include "base/alloc.h"
#include "base/did_you_mean.h"
#include "base/error.h"
#include "tensor/shape.h"
#include <mixtape/activation.h>
#include <mixtape/remat.h>
#include <string.h>

typedef enum remat_kind { NONE, FULL, ACTIVATIONS, LARGER_THAN, LIST_OF_LAYERS } remat_kind;
static const char *const kind_names[] = {"none", "full", "activations", "larger_than", "list_of_layers"};
enum { KINDS = sizeof kind_names / sizeof *kind_names, THRESHOLD = 1024 };

typedef struct mix_remat_mode {
  mix_object object;
  remat_kind kind;
  int64_t threshold;
  const char **names; /* interned */
  int name_count;
} mix_remat_mode;

struct mix_remat_scope {
  mix_remat_mode *mode; /* retained */
  struct mix_remat_scope *outer;
};
static _Thread_local mix_remat_scope *innermost;

static void mode_finalize(void *object) { mix_free(((mix_remat_mode *)object)->names); }
static const mix_class mode_class = {.name = "remat mode", .finalize = mode_finalize};

/* ---- scopes ---- */

static bool find_kind(const char *name, remat_kind *kind) {
  mix_did_you_mean nearest = {.word = name};
  char hint[100];
  *kind = FULL;
  if (!name) return true;
  for (int k = 0; k < KINDS; k++) {
    if (!strcmp(kind_names[k], name)) return *kind = (remat_kind)k, true;
    mix_did_you_mean_try(&nearest, kind_names[k]);
  }
  return mix_fail_value("remat_scope_begin: there is no mode '%.60s'%s; expected full, activations, "
                        "larger_than, list_of_layers or none",
                        name, mix_did_you_mean_hint(&nearest, hint, sizeof hint));
}

static bool copy_names(mix_remat_mode *mode, const char *const *names) {
  int count = 0;
  while (names && names[count]) count++;
  mode->names = mix_calloc((size_t)count + 1, sizeof *mode->names);
  if (!mode->names) return false;
  for (; mode->name_count < count; mode->name_count++)
    if (!(mode->names[mode->name_count] = mix_intern(names[mode->name_count]))) return false;
  return true;
}

mix_remat_scope *mix_remat_scope_begin_with(const mix_remat_scope_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_remat_scope_options, o, options, "remat_scope_begin");
  remat_kind kind;
  if (!find_kind(o.mode, &kind)) return NULL;
  mix_remat_mode *mode = mix_object_new(sizeof *mode, &mode_class);
  if (!mode) return NULL;
  mode->kind = kind;
  mode->threshold = o.output_size_threshold ? o.output_size_threshold : THRESHOLD;
  mix_remat_scope *scope = copy_names(mode, o.layer_names) ? mix_calloc(1, sizeof *scope) : NULL;
  if (!scope) return mix_release(mode), NULL;
  *scope = (mix_remat_scope){.mode = mode, .outer = innermost};
  return innermost = scope;
}

void mix_remat_scope_end(mix_remat_scope *scope) {
  if (!scope) return;
  innermost = scope->outer;
  mix_release(scope->mode);
  mix_free(scope);
}

mix_remat_mode *mix_remat_mode_take(void) {
  return innermost && innermost->mode->kind != NONE ? mix_retain(innermost->mode) : NULL;
}

/* ---- calls ---- */

static bool is_listed(const mix_remat_mode *mode, const char *name) {
  for (int i = 0; i < mode->name_count; i++)
    if (mode->names[i] == name) return true;
  return false;
}

mix_segment *mix_remat_begin_call(const mix_layer *layer) {
  const mix_remat_mode *mode = layer->remat;
  if (!mode || mode->kind == ACTIVATIONS) return NULL;
  if (mode->kind == LIST_OF_LAYERS && !is_listed(mode, layer->name)) return NULL;
  return mix_segment_begin();
}

static int64_t elements_of(mix_list *results) {
  int64_t count = 0;
  for (int i = 0; i < mix_list_count(results); i++) {
    const mix_tensor *tensor = mix_list_items(results)[i];
    if (mix_is(tensor, &mix_tensor_class)) count += mix_shape_size(mix_tensor_shape(tensor));
  }
  return count;
}

void mix_remat_end_call(const mix_layer *layer, mix_segment *segment, mix_list *results) {
  const int64_t elements = segment && results ? elements_of(results) : 0;
  const bool small = !elements || elements <= (layer->remat ? layer->remat->threshold : 0);
  mix_segment_end(segment, layer->remat && layer->remat->kind == LARGER_THAN && small);
}

mix_tensor *mix_layer_activate(const mix_layer *layer, const char *activation, mix_tensor *x) {
  const bool repeats = layer->remat && layer->remat->kind == ACTIVATIONS;
  mix_segment *segment = repeats ? mix_segment_begin() : NULL;
  mix_tensor *y = mix_activate(activation, x, .semantics = layer->semantics);
  mix_segment_end(segment, false);
  return y;
}
