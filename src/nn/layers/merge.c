/* Merging layers: the element-wise ones, Concatenate and Dot (docs/spec/keras.md, section 7). */
#include "base/alloc.h"
#include "base/error.h"
#include "nn/layer/decoding.h"
#include "nn/layers/moments.h"
#include "ops/with_number.h"

/* ---- shared checks ---- */

static bool given_a_list(const mix_layer *layer, const mix_call_args *args) {
  if (!args->inputs_are_list)
    mix_fail_value("%s: a merging layer is called with a list of tensors", layer->name);
  return args->inputs_are_list;
}

static bool one_batch_size(const mix_layer *layer, int count, const mix_shape *shapes) {
  int64_t batch = MIX_UNKNOWN;
  for (int i = 0; i < count; i++) {
    int64_t own = shapes[i].rank ? shapes[i].dims[0] : MIX_UNKNOWN;
    if (batch != MIX_UNKNOWN && own != MIX_UNKNOWN && own != batch)
      return mix_fail_value("%s: input %d has batch size %lld, others have %lld", layer->name, i,
                            (long long)own, (long long)batch);
    if (own != MIX_UNKNOWN) batch = own;
  }
  return true;
}

/* ---- element-wise ---- */

typedef struct merge_rule {
  const mix_layer_kind *kind;
  mix_tensor *(*combine)(mix_tensor *a, mix_tensor *b);
  int count; /* of inputs; 0 means any */
  bool averaged;
} merge_rule;
static const merge_rule rules[] = {
    {&mix_add_layer_kind, mix_add, 0, false},           {&mix_subtract_layer_kind, mix_subtract, 2, false},
    {&mix_multiply_layer_kind, mix_multiply, 0, false}, {&mix_average_kind, mix_add, 0, true},
    {&mix_maximum_layer_kind, mix_maximum, 0, false},   {&mix_minimum_layer_kind, mix_minimum, 0, false}};

static const merge_rule *rule_of(const mix_layer *layer) {
  const merge_rule *rule = rules;
  while (rule->kind != layer->kind) rule++;
  return rule;
}

/* (batch, ...) -> (batch, 1, ..., 1, ...) of that rank */
static mix_shape expanded(mix_shape shape, int rank) {
  mix_shape result = {.rank = rank, .dims = {shape.dims[0]}};
  int added = rank - shape.rank;
  for (int i = 1; i < rank; i++) result.dims[i] = i <= added ? 1 : shape.dims[i - added];
  return shape.rank ? result : shape;
}

static mix_shape merge_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  int rank = 0;
  for (int i = 0; i < count; i++) rank = input_shapes[i].rank > rank ? input_shapes[i].rank : rank;
  mix_shape result = expanded(input_shapes[0], rank);
  for (int i = 1; i < count; i++) {
    mix_shape next = expanded(input_shapes[i], rank);
    if (mix_shape_broadcast(result, next, &result)) continue;
    mix_fail_value("%s: inputs of shapes %s and %s cannot be merged", layer->name, MIX_SHAPE_TEXT(result),
                   MIX_SHAPE_TEXT(next));
    break;
  }
  return result;
}

/* ---- keras3: masked elements are left out ---- */

/* The mask of an input with a last axis of 1, or NULL. */
static mix_tensor *mask_against(const mix_call_args *args, int input) {
  mix_tensor *mask = args->masks ? mix_list_get(args->masks, input) : NULL;
  return mask ? mix_expand_dims(mix_cast(mask, MIX_BOOL), -1) : NULL;
}

/* The product of the unmasked elements; 0 where all inputs are masked. */
static mix_tensor *product_of_kept(const mix_call_args *args) {
  mix_tensor *result = NULL, *kept = NULL;
  bool all = true;
  for (int i = 0; i < mix_list_count(args->inputs); i++) {
    mix_tensor *x = mix_call_input(args, i), *mask = mask_against(args, i);
    all &= mask != NULL;
    if (mask) {
      x = mix_select(mask, x, mix_scalar_like(x, 1));
      kept = kept ? mix_logical_or(kept, mask) : mask;
    }
    result = result ? mix_multiply(result, x) : x;
  }
  return all ? mix_select(kept, result, mix_scalar_like(result, 0)) : result;
}

/* The maximum or minimum of the unmasked elements, input by input. Where all inputs so far are masked, the
 * latest input. */
static mix_tensor *extreme_of_kept(const merge_rule *rule, const mix_call_args *args) {
  mix_tensor *result = mix_call_input(args, 0), *kept = mask_against(args, 0);
  for (int i = 1; i < mix_list_count(args->inputs); i++) {
    mix_tensor *x = mix_call_input(args, i), *mask = mask_against(args, i);
    if (mask) x = mix_select(mask, x, result);
    if (kept) result = mix_select(kept, result, x);
    kept = kept && mask ? mix_logical_or(kept, mask) : NULL;
    result = rule->combine(result, x);
  }
  return result;
}

/* Later calls broadcast, as in Keras: a constant may stand for each sample of any batch. */
static mix_status merge_build(mix_layer *layer, int count, const mix_shape *shapes) {
  return one_batch_size(layer, count, shapes) ? MIX_OK : mix_error();
}

static mix_list *merge_call(mix_layer *layer, const mix_call_args *args) {
  const merge_rule *rule = rule_of(layer);
  int count = mix_list_count(args->inputs), rank = 0;
  bool one_rank = true;
  if (!given_a_list(layer, args)) return NULL;
  if (rule->count && count != rule->count)
    return mix_fail_value("%s: got %d inputs; expected exactly %d", layer->name, count, rule->count);
  for (int i = 0; i < count; i++) {
    int own = mix_tensor_shape(mix_call_input(args, i)).rank;
    one_rank &= !i || own == rank;
    rank = own > rank ? own : rank;
  }
  /* In Keras, expanded inputs lose their masks. */
  if (args->masks && one_rank && layer->semantics->merge_keeps_any) {
    if (rule->combine == mix_multiply) return mix_one_result(product_of_kept(args));
    if (rule->combine == mix_maximum || rule->combine == mix_minimum)
      return mix_one_result(extreme_of_kept(rule, args));
  }
  mix_tensor *result = NULL;
  for (int i = 0; i < count; i++) {
    mix_tensor *x = mix_call_input(args, i);
    mix_tensor *next = mix_layer_reshape(x, expanded(mix_tensor_shape(x), rank));
    result = i ? rule->combine(result, next) : next;
  }
  return mix_one_result(rule->averaged ? mix_over(result, count) : result);
}

/* The AND of the masks that the inputs have. keras3: the OR, and no mask if any input has none. */
static mix_tensor *merge_mask(mix_layer *layer, const mix_call_args *args) {
  const bool any = layer->semantics->merge_keeps_any;
  mix_tensor *result = NULL;
  for (int i = 0; args->masks && i < mix_list_count(args->masks); i++) {
    mix_tensor *mask = mix_list_get(args->masks, i);
    if (!mask && any) return NULL;
    if (mask && result)
      result = any ? mix_logical_or(result, mask) : mix_logical_and(result, mask);
    else if (mask)
      result = mask;
  }
  return result;
}

#define MERGE(name, class_name)                                                                              \
  MIX_LAYER_KIND_ONLY(name, mix_merge_options, .decodes = mix_decodes,                                       \
                      MIX_LAYER_CLASS(class_name, .build = merge_build, .call = merge_call,                  \
                                      .output_shape = merge_output_shape, .supports_masking = true,          \
                                      .compute_mask = merge_mask))
MERGE(add_layer, "Add")
MERGE(subtract_layer, "Subtract")
MERGE(multiply_layer, "Multiply")
MERGE(average, "Average")
MERGE(maximum_layer, "Maximum")
MERGE(minimum_layer, "Minimum")

mix_merge_options mix_merge_defaults(void) { return (mix_merge_options){.size = sizeof(mix_merge_options)}; }

/* ---- Concatenate ---- */

static mix_shape concatenate_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  mix_shape result = input_shapes[0];
  int axis = mix_axis_normal(((const mix_concatenate_options *)mix_layer_data(layer))->axis, result.rank);
  for (int i = 1; axis >= 0 && i < count; i++) {
    int64_t next = input_shapes[i].dims[axis];
    result.dims[axis] = result.dims[axis] < 0 || next < 0 ? MIX_UNKNOWN : result.dims[axis] + next;
  }
  return result;
}

static mix_list *concatenate_call(mix_layer *layer, const mix_call_args *args) {
  if (!given_a_list(layer, args)) return NULL;
  mix_tensor *const *tensors = (mix_tensor *const *)mix_list_items(args->inputs);
  return mix_one_result(mix_concat(mix_list_count(args->inputs), tensors,
                                   ((const mix_concatenate_options *)mix_layer_data(layer))->axis));
}

/* Concatenates the masks, broadcast to the inputs' shapes; an input without a mask keeps everything. A step
 * is kept if all its elements are (keras3: if any is). */
static mix_tensor *concatenate_mask(mix_layer *layer, const mix_call_args *args) {
  bool any = false;
  int count = mix_list_count(args->inputs);
  for (int i = 0; args->masks && i < count; i++) any |= mix_list_get(args->masks, i) != NULL;
  mix_tensor **masks = any ? mix_calloc((size_t)count, sizeof *masks) : NULL;
  if (!masks) return NULL;
  for (int i = 0; i < count; i++) {
    mix_tensor *x = mix_call_input(args, i), *mask = mix_list_get(args->masks, i);
    mix_shape shape = mix_tensor_shape(x);
    if (mask && mix_tensor_dtype(mask) != MIX_BOOL) mask = mix_cast(mask, MIX_BOOL);
    while (mask && mix_tensor_shape(mask).rank < shape.rank) mask = mix_expand_dims(mask, -1);
    masks[i] = mask ? mix_broadcast_to(mask, shape) : mix_cast(mix_ones_like(x), MIX_BOOL);
  }
  mix_tensor *joined =
      mix_failed() ? NULL
                   : mix_concat(count, masks, ((const mix_concatenate_options *)mix_layer_data(layer))->axis);
  mix_free(masks);
  if (!joined) return NULL;
  return layer->semantics->merge_keeps_any ? mix_reduce_any(joined, MIX_AXES(-1), false)
                                           : mix_reduce_all(joined, MIX_AXES(-1), false);
}

static const mix_field_row concatenate_fields[] = {
    {MIX_FIELD(mix_concatenate_options, axis), &mix_field_axis}, {0}};
MIX_LAYER_KIND(concatenate, mix_concatenate_options, .fields = concatenate_fields, .decodes = mix_decodes,
               MIX_LAYER_CLASS(.name = "Concatenate", .call = concatenate_call,
                               .output_shape = concatenate_output_shape, .supports_masking = true,
                               .compute_mask = concatenate_mask))

/* ---- Dot ---- */

/* The contracted axes, counted from the front. False with a ValueError if they cannot be contracted. */
static bool dot_axes(const mix_layer *layer, const mix_shape *shapes, int *axes) {
  const mix_dot_options *d = mix_layer_data(layer);
  char a[160];
  for (int i = 0; i < 2; i++) {
    int given = d->axes.axis[d->axes.count == 2 ? i : 0];
    axes[i] = mix_axis_normal(given, shapes[i].rank);
    if (axes[i] > 0) continue;
    return mix_fail_value("%s: axis %d of input %d, which has shape %s, is outside or the batch", layer->name,
                          given, i, mix_shape_text(shapes[i], a, sizeof a));
  }
  int64_t x = shapes[0].dims[axes[0]], y = shapes[1].dims[axes[1]];
  if (x == y || x == MIX_UNKNOWN || y == MIX_UNKNOWN) return true;
  return mix_fail_value("%s: inputs of shapes %s and %s differ along the axes %d and %d", layer->name,
                        mix_shape_text(shapes[0], a, sizeof a), MIX_SHAPE_TEXT(shapes[1]), axes[0], axes[1]);
}

/* (batch, other axes of x, other axes of y); (batch, 1) if there are no other axes. */
static mix_shape dot_result(const mix_shape *shapes, const int *axes) {
  mix_shape result = {.rank = 1,
                      .dims = {shapes[0].dims[0] == MIX_UNKNOWN ? shapes[1].dims[0] : shapes[0].dims[0]}};
  for (int i = 0; i < 2; i++)
    for (int axis = 1; axis < shapes[i].rank; axis++)
      if (axis != axes[i] && result.rank < MIX_MAX_RANK) result.dims[result.rank++] = shapes[i].dims[axis];
  if (result.rank == 1) result.dims[result.rank++] = 1;
  return result;
}

static mix_shape dot_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  int axes[2];
  if (count != 2 || !dot_axes(layer, input_shapes, axes)) return (mix_shape){.rank = 0};
  return dot_result(input_shapes, axes);
}

/* (batch, ..., n, ...) -> (batch, rest, n) */
static mix_tensor *contracted_last(mix_tensor *x, int axis) {
  mix_shape shape = mix_tensor_shape(x), flat = {.rank = 3, .dims = {shape.dims[0], 1, shape.dims[axis]}};
  mix_axes order = {.count = shape.rank};
  for (int i = 0, at = 0; i < shape.rank; i++) {
    if (i == axis) continue;
    order.axis[at++] = i;
    if (i) flat.dims[1] = flat.dims[1] < 0 || shape.dims[i] < 0 ? MIX_UNKNOWN : flat.dims[1] * shape.dims[i];
  }
  order.axis[shape.rank - 1] = axis;
  return mix_layer_reshape(mix_transpose(x, order), flat);
}

static mix_list *dot_call(mix_layer *layer, const mix_call_args *args) {
  const mix_dot_options *d = mix_layer_data(layer);
  if (!given_a_list(layer, args)) return NULL;
  if (mix_list_count(args->inputs) != 2)
    return mix_fail_value("%s: got %d inputs; expected exactly 2", layer->name, mix_list_count(args->inputs));
  mix_tensor *x = mix_call_input(args, 0), *y = mix_call_input(args, 1);
  mix_shape shapes[2] = {mix_tensor_shape(x), mix_tensor_shape(y)};
  if (!one_batch_size(layer, 2, shapes)) return NULL;
  int axes[2];
  if (!dot_axes(layer, shapes, axes)) return NULL;
  if (d->normalize) {
    x = mix_l2_normalize(x, MIX_AXES(axes[0]), layer->semantics);
    y = mix_l2_normalize(y, MIX_AXES(axes[1]), layer->semantics);
  }
  if (mix_failed()) return NULL;
  mix_tensor *product = mix_matmul(contracted_last(x, axes[0]), contracted_last(y, axes[1]), false, true);
  return mix_one_result(product ? mix_layer_reshape(product, dot_result(shapes, axes)) : NULL);
}

static bool dot_check(void *options, const mix_layer_kind *kind) {
  int count = ((const mix_dot_options *)options)->axes.count;
  if (count == 1 || count == 2) return true;
  return mix_fail_value("%s: got %d axes; expected one, or one for each of the two inputs", kind->call,
                        count);
}

static const mix_field_row dot_fields[] = {{MIX_FIELD(mix_dot_options, axes), &mix_field_axes},
                                           {MIX_FIELD(mix_dot_options, normalize), &mix_field_boolean},
                                           {0}};
MIX_LAYER_KIND(dot, mix_dot_options, .fields = dot_fields, .check = dot_check,
               MIX_LAYER_CLASS(.name = "Dot", .call = dot_call, .output_shape = dot_output_shape,
                               .supports_masking = true, .compute_mask = mix_no_mask))
