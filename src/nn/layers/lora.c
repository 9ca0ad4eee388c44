/* LoRA of Dense, EinsumDense, Embedding and convolutions. */
#include "nn/layers/lora.h"

#include "base/error.h"
#include "nn/layers/builtin.h"
#include "nn/weights/weights.h"
#include "ops/with_number.h"
#include "tensor/shape.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void finalize(void *object) {
  mix_lora *lora = object;
  mix_release(lora->a);
  mix_release(lora->b);
}
static const mix_class lora_class = {.name = "lora", .finalize = finalize};

/* The members of the layer's options. */
static int64_t *rank_of(const mix_layer *layer) {
  return (int64_t *)((char *)layer->data + layer->kind->lora);
}
static double *alpha_of(const mix_layer *layer) { return (double *)(rank_of(layer) + 1); }

/* ---- adding ---- */

static const char *short_name(const mix_variable *variable) {
  const char *slash = strrchr(variable->name, '/');
  return slash ? slash + 1 : variable->name;
}

static void *option_at(const mix_layer *layer, size_t offset) {
  return *(void *const *)((const char *)layer->data + offset);
}

static const mix_stored_weight *stored_of(const mix_layer *layer, mix_shape *shape) {
  return layer->kind->stored ? layer->kind->stored(layer, shape) : NULL;
}

/* The weight that a and b stand for. */
static mix_variable *find_kernel(const mix_layer *layer) {
  for (int i = 0; layer->weights && i < mix_list_count(layer->weights); i++) {
    mix_variable *variable = mix_list_items(layer->weights)[i];
    const char *name = short_name(variable);
    if (!strcmp(name, "kernel") || !strcmp(name, "embeddings")) return variable;
  }
  return NULL;
}

bool mix_lora_check(const mix_layer *layer, int64_t rank, const char *call) {
  const char *mode;
  if (!layer->kind || !layer->kind->lora)
    return mix_fail_value("%s: layer '%s', of the class %s, cannot have LoRA; expected Dense, EinsumDense, "
                          "Embedding, ReversibleEmbedding, Conv1D, Conv2D or Conv3D",
                          call, layer->name, mix_layer_keras_name(layer));
  const mix_variable *kernel = find_kernel(layer);
  if (option_at(layer, layer->kind->lora_constraint))
    return mix_fail_value("%s: layer '%s' has a constraint of its %s, which LoRA cannot keep; make the layer "
                          "without it",
                          call, layer->name, kernel ? short_name(kernel) : "kernel");
  if (!layer->built || !kernel)
    return mix_fail_value("%s: layer '%s' has no weights yet; build it, or call the model, before", call,
                          layer->name);
  if (layer->lora)
    return mix_fail_value("%s: layer '%s' has LoRA already, of rank %lld; merge it before", call, layer->name,
                          (long long)layer->lora->rank);
  if (rank < 0) return mix_fail_value("%s: rank is %lld; expected 0 or more", call, (long long)rank);
  if ((mode = mix_layer_quantization_mode(layer)) && !strcmp(mode, "float8"))
    return mix_fail_unsupported("%s: layer '%s' computes in float8, which Keras does not combine with LoRA; "
                                "leave the layer out",
                                call, layer->name);
  return true;
}

/* Said where a caller asks for it, not where a file does. */
static void warn(const mix_layer *layer, mix_shape kernel, int64_t rank, double alpha) {
  const int64_t out = kernel.dims[kernel.rank - 1], in = out ? mix_shape_size(kernel) / out : 0;
  if (rank > (in < out ? in : out))
    mix_log_message(MIX_LOG_WARNING,
                    "enable_lora: layer '%s': rank %lld is above the smaller side of its kernel %s; a and b "
                    "can say no more than rank %lld",
                    layer->name, (long long)rank, MIX_SHAPE_TEXT(kernel), (long long)(in < out ? in : out));
  if (alpha == 0 && rank)
    mix_log_message(MIX_LOG_WARNING,
                    "enable_lora: layer '%s': alpha is 0, so a and b have no effect and do not train",
                    layer->name);
}

static mix_variable *add(mix_layer *layer, const mix_variable *kernel, char which, mix_shape shape,
                         mix_initializer *initializer) {
  char name[64];
  snprintf(name, sizeof name, "lora_%.40s_%c", short_name(kernel), which);
  return mix_layer_add_weight(layer, name, .shape = shape, .dtype = "float32",
                              .initializer_object = initializer,
                              .regularizer_object = option_at(layer, layer->kind->lora_regularizer));
}

/* A variable that LoRA's merging changes in files; NULL: nothing. */
static void mark(mix_variable *variable, mix_lora *lora) {
  if (!variable || variable->lora == lora) return;
  mix_release(variable->lora);
  variable->lora = mix_retain(lora);
}

/* The layer's kernel, as it is stored now, is the frozen one. */
static void join(const mix_layer *layer, mix_lora *lora) {
  mix_shape shape;
  const mix_stored_weight *stored = stored_of(layer, &shape);
  lora->kernel = find_kernel(layer);
  lora->kernel->trainable = false;
  if (stored)
    lora->stored = *stored;
  else
    lora->kernel->saved_first = true;
  mark(lora->kernel, lora);
  mark(lora->stored.scale, lora);
  mark(lora->stored.zero, lora);
}

mix_status mix_lora_follow(mix_layer *layer) {
  if (!mix_failed() && layer->lora) join(layer, layer->lora);
  return mix_error();
}

static bool add_all(mix_layer *layer, int64_t rank, double alpha, mix_initializer *a, mix_initializer *b) {
  mix_variable *kernel = find_kernel(layer);
  mix_shape of_a = mix_lora_shape(layer);
  const int last = of_a.rank - 1;
  const mix_shape of_b = MIX_SHAPE(rank, of_a.dims[last]);
  of_a.dims[last] = rank;
  mix_lora *lora = mix_object_new(sizeof *lora, &lora_class);
  if (!lora) return false;
  lora->kernel = kernel;
  lora->rank = rank;
  lora->alpha = alpha;
  lora->compute = layer->compute;
  lora->shape = mix_lora_shape(layer);
  lora->a = mix_retain(add(layer, kernel, 'a', of_a, a));
  lora->b = lora->a ? mix_retain(add(layer, kernel, 'b', of_b, b)) : NULL;
  if (mix_failed()) return mix_release(lora), false;
  layer->lora = lora;
  join(layer, lora);
  *rank_of(layer) = rank;
  *alpha_of(layer) = alpha;
  return true;
}

/* A layer keeps its weights where a or b could not be made. */
static bool add_or_undo(mix_layer *layer, int64_t rank, double alpha, mix_initializer *a,
                        mix_initializer *b) {
  mix_list *weights = layer->weights;
  layer->weights = mix_retain(mix_list_new(mix_list_count(weights), mix_list_items(weights)));
  const bool good = layer->weights && add_all(layer, rank, alpha, a, b);
  if (good) return mix_release(weights), true;
  mix_release(layer->weights);
  layer->weights = weights;
  return false;
}

bool mix_lora_enable(mix_layer *layer, int64_t rank, double alpha, mix_initializer *a, mix_initializer *b) {
  bool good = false;
  MIX_SCOPE {
    const mix_dtype former = mix_cast_dtype_set(MIX_DTYPE_NONE);
    if (!a) a = mix_initializer_new("he_uniform");
    if (!b) b = mix_initializer_new("zeros");
    if (!isfinite(alpha)) alpha = (double)rank;
    good = a && b && add_or_undo(layer, rank, alpha, a, b);
    mix_cast_dtype_set(former);
  }
  return good && !mix_failed();
}

mix_status mix_lora_build(mix_layer *layer) {
  const int64_t rank = *rank_of(layer);
  if (mix_failed() || rank <= 0) return mix_error();
  const mix_variable *kernel = find_kernel(layer);
  if (kernel && option_at(layer, layer->kind->lora_constraint))
    mix_fail_value("%s: lora_rank is %lld beside a constraint of its %s, which LoRA cannot keep; give one",
                   layer->name, (long long)rank, short_name(kernel));
  else if (kernel)
    mix_lora_enable(layer, rank, layer->kind->lora_alpha_lost ? INFINITY : *alpha_of(layer), NULL, NULL);
  return mix_error();
}

/* ---- the public calls ---- */

/* The value of an option where 0 means the default. */
static bool read_alpha(double given, int64_t rank, double *alpha, const char *call) {
  *alpha = given == 0 ? (double)rank : given == MIX_ZERO ? 0 : given;
  return isfinite(*alpha) || mix_fail_value("%s: alpha is %g; expected a finite number", call, given);
}

mix_status mix_layer_enable_lora_with(mix_layer *layer, const mix_layer_lora_options *given) {
  static const char call[] = "layer_enable_lora";
  mix_layer_lora_options o;
  double alpha;
  if (!mix_given(layer, &mix_layer_object_class, call, "a layer") ||
      !mix_options_copy(&o, sizeof o, given, call) || !mix_lora_check(layer, o.rank, call) ||
      !read_alpha(o.alpha, o.rank, &alpha, call))
    return mix_error();
  MIX_SCOPE {
    mix_initializer *a = mix_initializer_choose(o.a_initializer, o.a_initializer_object, call),
                    *b = mix_initializer_choose(o.b_initializer, o.b_initializer_object, call);
    if (!mix_failed() && mix_lora_enable(layer, o.rank, alpha, a, b)) {
      warn(layer, layer->lora->shape, o.rank, alpha);
      mix_capture_epoch_move();
    }
  }
  return mix_error();
}

int64_t mix_layer_lora_rank(const mix_layer *layer) {
  return mix_is(layer, &mix_layer_object_class) && layer->lora ? layer->lora->rank : -1;
}

/* ---- values ---- */

/* (alpha / rank) a . b in the kernel's shape, of a and b in that dtype. */
static mix_tensor *low_rank(const mix_lora *lora, mix_tensor *a, mix_tensor *b) {
  mix_tensor *product = mix_matmul(mix_reshape(a, MIX_SHAPE(-1, lora->rank)), b, false, false);
  const double scale = lora->alpha / (double)lora->rank;
  return mix_reshape(scale == 1 ? product : mix_times(product, scale), lora->shape);
}

bool mix_lora_is_apart(const mix_layer *layer) {
  const mix_lora *lora = layer->lora;
  return lora && lora->rank && (lora->stored.bits || lora->rank < lora->shape.dims[lora->shape.rank - 1]);
}

mix_tensor *mix_lora_kernel(const mix_layer *layer, mix_variable *kernel) {
  const mix_lora *lora = layer->lora;
  mix_tensor *value = mix_variable_value(kernel);
  if (!value || !lora || !lora->rank) return value;
  return mix_add(value, mix_lora_product(layer, mix_tensor_dtype(value)));
}

mix_tensor *mix_lora_product(const mix_layer *layer, mix_dtype dtype) {
  const mix_lora *lora = layer->lora;
  return low_rank(lora, mix_lora_a(layer, dtype), mix_cast(mix_variable_value(lora->b), dtype));
}

mix_tensor *mix_lora_a(const mix_layer *layer, mix_dtype dtype) {
  return mix_cast(mix_variable_value(layer->lora->a), dtype);
}

mix_tensor *mix_lora_add(const mix_layer *layer, mix_tensor *y, mix_tensor *xa) {
  const mix_lora *lora = layer->lora;
  if (!y || !xa) return NULL;
  const double scale = lora->alpha / (double)lora->rank;
  if (scale != 1) xa = mix_times(xa, scale); /* the smaller of the two products' results */
  mix_tensor *b = mix_cast(mix_variable_value(lora->b), mix_tensor_dtype(y));
  return mix_add(y, mix_matmul_rows(xa, b));
}

static mix_tensor *frozen_value(const mix_lora *lora) {
  if (!lora->stored.bits) return mix_variable_true_value(lora->kernel);
  const mix_dtype dtype = lora->compute == MIX_FLOAT64 ? MIX_FLOAT64 : MIX_FLOAT32;
  return mix_reshape(mix_cast(mix_stored_value(&lora->stored, lora->compute), dtype), lora->shape);
}

/* In the wider of the dtypes of kernel, a and b. */
static mix_tensor *merged_value(const mix_lora *lora) {
  mix_tensor *value = frozen_value(lora);
  if (!value || !lora->rank) return value;
  const mix_dtype dtype = mix_tensor_dtype(value) == MIX_FLOAT64 ? MIX_FLOAT64 : MIX_FLOAT32;
  mix_tensor *a = mix_cast(mix_variable_true_value(lora->a), dtype),
             *b = mix_cast(mix_variable_true_value(lora->b), dtype);
  return mix_add(mix_cast(value, dtype), low_rank(lora, a, b));
}

mix_tensor *mix_lora_saved_value(const mix_variable *variable) {
  const mix_lora *lora = variable->lora;
  const mix_stored_weight *stored = &lora->stored;
  mix_tensor *value = merged_value(lora);
  mix_quantized made;
  if (!stored->bits)
    return value ? mix_cast(value, lora->compute == MIX_DTYPE_NONE ? variable->dtype : lora->compute) : NULL;
  if (!value || !mix_stored_quantize(stored, value, &made)) return NULL;
  return variable == stored->stored ? made.stored : variable == stored->scale ? made.scale : made.zero;
}

/* ---- the end ---- */

bool mix_lora_reset(const mix_lora *lora) {
  MIX_SCOPE {
    mix_variable_assign(lora->a, mix_fill(lora->a->shape, 0, MIX_FLOAT32));
    mix_variable_assign(lora->b, mix_fill(lora->b->shape, 0, MIX_FLOAT32));
  }
  return !mix_failed();
}

/* The variable is one of a layer without LoRA. */
static void unmark(mix_variable *variable) {
  if (!variable) return;
  mix_release(variable->lora);
  variable->lora = NULL;
}

/* The list without a and b, which only merging makes shorter. */
static mix_list *without(const mix_layer *layer) {
  mix_list *rest = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(layer->weights); i++) {
    void *item = mix_list_items(layer->weights)[i];
    if (item != layer->lora->a && item != layer->lora->b) mix_list_append(rest, item);
  }
  return mix_failed() ? NULL : rest;
}

bool mix_lora_remove(mix_layer *layer) {
  mix_lora *lora = layer->lora;
  MIX_SCOPE {
    mix_list *rest = without(layer);
    if (rest) {
      mix_release(layer->weights);
      layer->weights = mix_retain(rest);
      if (!lora->stored.bits) lora->kernel->trainable = true, lora->kernel->saved_first = false;
      layer->lora = NULL;
      *rank_of(layer) = 0;
      *alpha_of(layer) = INFINITY;
      unmark(lora->stored.scale);
      unmark(lora->stored.zero);
      unmark(lora->kernel);
      mix_release(lora);
      mix_capture_epoch_move();
    }
  }
  return !mix_failed();
}

bool mix_lora_merge(mix_layer *layer) {
  const mix_lora *lora = layer->lora;
  MIX_SCOPE {
    mix_tensor *merged = merged_value(lora);
    if (merged && lora->stored.bits)
      mix_stored_assign(&lora->stored, merged);
    else if (merged)
      mix_variable_assign(lora->kernel, mix_cast(merged, lora->kernel->dtype));
  }
  return !mix_failed() && mix_lora_remove(layer);
}

void mix_lora_name_a(const mix_layer *layer, char *text, size_t size) {
  const mix_variable *kernel = find_kernel(layer);
  const char *name = kernel ? short_name(kernel) : "";
  snprintf(text, size, "%.*slora_%s_a", kernel ? (int)(name - kernel->name) : 0, kernel ? kernel->name : "",
           name);
}

mix_shape mix_lora_shape(const mix_layer *layer) {
  mix_shape shape = {.rank = 0};
  const mix_variable *kernel = find_kernel(layer);
  return stored_of(layer, &shape) ? shape : kernel ? kernel->shape : shape;
}

void mix_lora_set_alpha(mix_layer *layer, double alpha) {
  layer->lora->alpha = *alpha_of(layer) = alpha;
  mix_capture_epoch_move();
}
