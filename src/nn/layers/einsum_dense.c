/* EinsumDense: activation(einsum(equation, x, kernel) + bias). */
#include "base/error.h"
#include "nn/layer/decoding.h"
#include "nn/layer/remat.h"
#include "nn/layers/activation_functions.h"
#include "nn/layers/builtin.h"
#include "nn/layers/float8.h"
#include "nn/layers/lora.h"
#include "nn/layers/stored_weight.h"
#include "ops/table.h"
#include "ops/with_number.h"
#include <ctype.h>
#include <mixtape/einsum.h>
#include <stdio.h>
#include <string.h>

enum { TERM = MIX_MAX_RANK + 1 };

/* "input,kernel->result" in letters; the input and the result may begin or end with "...". */
typedef struct equation {
  char input[TERM], kernel[TERM], result[TERM];
  bool open_left, open_right;
} equation;

typedef struct einsum_dense {
  mix_einsum_dense_options options;
  equation equation;
  mix_variable *kernel, *bias; /* owned by the layer's list */
  mix_float8 float8;
  mix_stored_weight stored; /* instead of the kernel, where the policy says so */
  mix_shape kernel_shape;
} einsum_dense;

/* ---- the equation ---- */

static const char *read_ellipsis(const char *at, bool *found) {
  *found = !strncmp(at, "...", 3);
  return *found ? at + 3 : at;
}

/* NULL: it has no letters or too many. */
static const char *read_letters(const char *at, char *letters) {
  int count = 0;
  for (; isalpha((unsigned char)*at); at++) {
    if (count == MIX_MAX_RANK) return NULL;
    letters[count++] = *at;
  }
  letters[count] = 0;
  return count ? at : NULL;
}

static const char *read_text(const char *at, const char *text) {
  return at && !strncmp(at, text, strlen(text)) ? at + strlen(text) : NULL;
}

static bool read_equation(const char *text, equation *e) {
  *e = (equation){0};
  bool left = false, right = false;
  const char *at = read_letters(read_ellipsis(text, &e->open_left), e->input);
  if (at) at = read_text(read_ellipsis(at, &e->open_right), ",");
  if (at) at = read_letters(at, e->kernel);
  if (at) at = read_text(at, "->");
  if (at) at = read_letters(read_ellipsis(at, &left), e->result);
  if (at) at = read_ellipsis(at, &right);
  const bool open_in_middle = e->open_right && !e->input[1]; /* "a..." leaves the batch alone, as in Keras */
  return at && !*at && left == e->open_left && right == e->open_right && !(left && right) && !open_in_middle;
}

static bool einsum_dense_check(void *options, const mix_layer_kind *kind) {
  mix_einsum_dense_options *o = options;
  equation e;
  if (mix_semantics_or_current(o->semantics)->einsum_activity_dropped) {
    mix_release(o->activity_regularizer);
    o->activity_regularizer = NULL;
  }
  if (o->equation && read_equation(o->equation, &e)) return true;
  return mix_fail_value(
      "%s: the equation is '%.100s'; expected [X],[Y]->[Z], ...[X],[Y]->...[Z] or [X]...,[Y]->[Z]...",
      kind->call, o->equation ? o->equation : "NULL");
}

static bool einsum_dense_ready(mix_layer *layer) {
  einsum_dense *d = layer->data;
  return read_equation(d->options.equation, &d->equation);
}

/* ---- shapes ---- */

static int place_in(const char *letters, char letter) {
  const char *at = strchr(letters, letter);
  return at ? (int)(at - letters) : -1;
}

/* The result's whole shape: the batch, dimensions of "..." from the input, and the option. */
static bool full_shape(const mix_layer *layer, mix_shape input, mix_shape *result) {
  const einsum_dense *d = layer->data;
  const equation *e = &d->equation;
  const int open = input.rank - (int)strlen(e->input);
  *result = (mix_shape){.rank = 0};
  if (open < 0 || (open > 0 && !e->open_left && !e->open_right))
    return mix_fail_value("%s: the input has shape %s, which does not fit '%s'", layer->name,
                          MIX_SHAPE_TEXT(input), d->options.equation);
  const int left = e->open_left && open > 1 ? open : 1, right = e->open_right ? open : 0;
  const int given = d->options.output_shape.rank;
  if (left + given + right > MIX_MAX_RANK ||
      left + given + right != (int)strlen(e->result) + (e->open_left || e->open_right ? open : 0))
    return mix_fail_value("%s: output_shape has %d sizes, which do not fit '%s'", layer->name, given,
                          d->options.equation);
  for (int i = 0; i < left; i++) result->dims[result->rank++] = input.dims[i];
  for (int i = 0; i < given; i++) result->dims[result->rank++] = d->options.output_shape.dims[i];
  for (int i = input.rank - right; i < input.rank; i++) result->dims[result->rank++] = input.dims[i];
  return true;
}

/* The size of a letter in a term of that shape, whose letters begin after the open dimensions; -2: none. */
static int64_t size_in(const char *letters, mix_shape shape, int skipped, char letter) {
  const int at = place_in(letters, letter);
  return at < 0 ? -2 : shape.dims[at + skipped];
}

static bool kernel_shape(const mix_layer *layer, mix_shape input, mix_shape result,
                         mix_weight_options *weight) {
  const einsum_dense *d = layer->data;
  const equation *e = &d->equation;
  const int open = e->open_left ? input.rank - (int)strlen(e->input) : 0;
  double in = 1, out = 1;
  for (const char *letter = e->kernel; *letter; letter++) {
    const int64_t of_input = size_in(e->input, input, open, *letter),
                  of_result = size_in(e->result, result, open, *letter);
    const int64_t size = of_input != -2 ? of_input : of_result;
    if (size < 0)
      return mix_fail_value("%s: the size of '%c' in '%s' is %s", layer->name, *letter, d->options.equation,
                            size == -2 ? "neither the input's nor the result's" : "unknown");
    weight->shape.dims[weight->shape.rank++] = size;
    *(of_result != -2 ? &out : &in) *= (double)size;
  }
  if (layer->semantics->einsum_fans_by_axes) weight->fan_in = in, weight->fan_out = out;
  return true;
}

/* Letters that the input and the result share have one size; each of the result comes from somewhere. */
static bool sizes_agree(const mix_layer *layer, mix_shape input, mix_shape result) {
  const einsum_dense *d = layer->data;
  const equation *e = &d->equation;
  const int open = e->open_left ? input.rank - (int)strlen(e->input) : 0;
  for (const char *letter = e->result; *letter; letter++) {
    const int64_t of_input = size_in(e->input, input, open, *letter),
                  of_result = size_in(e->result, result, open, *letter);
    if (of_input == -2 && place_in(e->kernel, *letter) < 0)
      return mix_fail_value("%s: '%c' of the result of '%s' is in neither the input nor the kernel",
                            layer->name, *letter, d->options.equation);
    if (of_input == -2 || of_result == MIX_UNKNOWN || of_input == of_result) continue;
    return mix_fail_value("%s: '%c' of '%s' is %lld in the input and %lld in the result", layer->name,
                          *letter, d->options.equation, (long long)of_input, (long long)of_result);
  }
  return true;
}

/* The sizes of the result from the first letter with a bias on, 1 where there is none. */
static bool bias_shape(const mix_layer *layer, mix_shape input, mix_shape result, mix_shape *shape) {
  const einsum_dense *d = layer->data;
  const equation *e = &d->equation;
  const int open = input.rank - (int)strlen(e->input), left = e->open_left ? open : 0;
  int first = MIX_MAX_RANK;
  for (const char *letter = d->options.bias_axes; *letter; letter++) {
    const int at = place_in(e->result, *letter);
    if (at < 0)
      return mix_fail_value("%s: the bias axis '%c' is not in the result of '%s'", layer->name, *letter,
                            d->options.equation);
    first = at < first ? at : first;
  }
  for (int i = first; e->result[i]; i++) {
    const int64_t size = place_in(d->options.bias_axes, e->result[i]) < 0 ? 1 : result.dims[i + left];
    if (size < 0)
      return mix_fail_value("%s: the size of the bias axis '%c' is unknown", layer->name, e->result[i]);
    shape->dims[shape->rank++] = size;
  }
  for (int i = 0; e->open_right && i < open; i++) shape->dims[shape->rank++] = 1;
  return true;
}

/* ---- kernels of integers ---- */

/* The places of the letters of the result in a term that has them, in the result's order, or with `missing`
 * the places in the term of letters that the result has not. */
static mix_axes places(const char *term, const char *result, bool missing) {
  mix_axes axes = {.count = 0};
  for (const char *at = missing ? term : result; *at; at++) {
    const int place = missing ? (int)(at - term) : place_in(term, *at);
    if (place >= 0 && (!missing || place_in(result, *at) < 0)) axes.axis[axes.count++] = place;
  }
  return axes;
}

/* How many letters at the end of the input and at the begin of the kernel are summed over, where the product
 * is one of matrices as they lie in memory: "abc,cde->abde". 0: it is not. */
static int summed_letters(const equation *e) {
  const int input = (int)strlen(e->input), result = (int)strlen(e->result), kernel = (int)strlen(e->kernel);
  const int summed = places(e->kernel, e->result, true).count, batch = input - summed;
  const bool fits = summed > 0 && batch > 0 && result == batch + kernel - summed &&
                    !strncmp(e->input + batch, e->kernel, (size_t)summed) &&
                    !strncmp(e->input, e->result, (size_t)batch) &&
                    !strcmp(e->kernel + summed, e->result + batch);
  return fits ? summed : 0;
}

/* int8: scales have the shape of a result that broadcasts. int4: of the kernel as a matrix, which is reshaped
 * and not transposed, as in Keras. */
static mix_stored_shape stored_shape(const einsum_dense *d, bool int4) {
  const equation *e = &d->equation;
  mix_stored_shape of = {.name = "kernel", .shape = d->kernel_shape, .packed_axis = 1};
  of.kept = places(e->kernel, e->result, false);
  for (const char *letter = e->result; *letter; letter++) {
    const int at = place_in(e->kernel, *letter);
    of.scale.dims[of.scale.rank++] = at < 0 ? 1 : d->kernel_shape.dims[at];
  }
  if (!int4 && !summed_letters(e)) return of;
  int64_t rows = 1, columns = 1;
  for (int i = 0; i < d->kernel_shape.rank; i++)
    *(place_in(e->result, e->kernel[i]) < 0 ? &rows : &columns) *= d->kernel_shape.dims[i];
  of.shape = MIX_SHAPE(rows, columns);
  of.kept = MIX_AXES(1);
  if (int4)
    of.scale = MIX_SHAPE(columns);
  else
    of.variable = d->kernel_shape;
  return of;
}

/* Keras fails there with a TypeError. */
static bool has_no_ellipsis(const mix_layer *layer) {
  const einsum_dense *d = layer->data;
  return (!d->equation.open_left && !d->equation.open_right) ||
         mix_fail_type("%s: '%s' has an ellipsis, which int8 and int4 do not take; expected letters alone",
                       layer->name, d->options.equation);
}

/* A scale over axes of the input, which it keeps with size 1, in the axes of the result. */
static mix_tensor *scale_in_result(const equation *e, mix_tensor *scale) {
  mix_axes order = places(e->input, e->result, false);
  const mix_axes reduced = places(e->input, e->result, true);
  for (int i = 0; i < order.count; i++) { /* places without the reduced axes */
    int before = 0;
    for (int k = 0; k < reduced.count; k++) before += reduced.axis[k] < order.axis[i];
    order.axis[i] -= before;
  }
  if (reduced.count) scale = mix_squeeze(scale, reduced);
  if (order.count) scale = mix_transpose(scale, order);
  for (int i = 0; e->result[i]; i++)
    if (place_in(e->input, e->result[i]) < 0) scale = mix_expand_dims(scale, i);
  return scale;
}

static mix_tensor *einsum_of(const einsum_dense *d, mix_tensor *x, mix_tensor *kernel) {
  return mix_einsum(d->options.equation, 2, (mix_tensor *[]){x, kernel});
}

/* The product of matrices. */
static mix_tensor *matrix_product(const einsum_dense *d, mix_tensor *x, int summed) {
  const mix_shape shape = mix_tensor_shape(x);
  mix_shape rows = shape, result = shape;
  rows.rank = shape.rank - summed + 1;
  rows.dims[rows.rank - 1] = d->stored.of.shape.dims[0];
  result.rank = shape.rank - summed;
  for (int i = summed; i < d->kernel_shape.rank; i++) result.dims[result.rank++] = d->kernel_shape.dims[i];
  if (summed > 1) x = mix_layer_reshape(x, rows);
  x = mix_stored_product(&d->stored, x);
  return x && d->kernel_shape.rank - summed != 1 ? mix_layer_reshape(x, result) : x;
}

/* int8: sums of integers, divided by both scales. int4: the kernel is divided before the product. The
 * gradient is that of floating inputs times the dequantized kernel. */
static mix_tensor *stored_product(const einsum_dense *d, mix_tensor *x) {
  const mix_stored_weight *w = &d->stored;
  const mix_dtype dtype = mix_tensor_dtype(x);
  const int summed = summed_letters(&d->equation);
  if (summed && (w->bits == 8 || w->block)) return matrix_product(d, x, summed);
  mix_tensor *kernel = mix_reshape(mix_stored_value(w, dtype), d->kernel_shape);
  mix_tensor *product = einsum_of(d, x, kernel), *y, *of_inputs = NULL, *inputs = mix_stop_gradient(x);
  if (!product || w->block || (w->bits == 4 && !w->inputs.given)) return product;
  if (w->inputs.given) {
    const mix_axes reduced = places(d->equation.input, d->equation.result, true);
    inputs = mix_quantize_inputs(&w->inputs, x, reduced, &of_inputs);
    of_inputs = inputs ? scale_in_result(&d->equation, of_inputs) : NULL;
  }
  if (w->bits == 4) {
    y = mix_divide(einsum_of(d, mix_cast(inputs, dtype), kernel), of_inputs);
  } else {
    const mix_dtype as = of_inputs ? MIX_INT32 : dtype;
    mix_tensor *scale = mix_cast(mix_variable_value(w->scale), dtype);
    y = einsum_of(d, mix_cast(inputs, as), mix_cast(mix_stored_integers(w), as));
    y = mix_divide(mix_cast(y, dtype), of_inputs ? mix_multiply(of_inputs, scale) : scale);
  }
  return mix_surrogate_gradient(y, product);
}

/* ---- the layer ---- */

static bool add_kernel(mix_layer *layer, const mix_weight_options *kernel) {
  einsum_dense *d = layer->data;
  d->kernel_shape = kernel->shape;
  if (!mix_layer_stores_integers(layer)) return (d->kernel = mix_layer_add_weight_with(layer, kernel));
  const mix_stored_shape of = stored_shape(d, mix_layer_quantization_mode(layer)[3] == '4');
  return has_no_ellipsis(layer) && mix_stored_build(layer, d->options.quantization_config, &of, &d->stored);
}

static mix_status einsum_dense_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  einsum_dense *d = layer->data;
  const mix_einsum_dense_options *o = &d->options;
  mix_shape result;
  if (count != 1)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: got %d inputs; expected one", layer->name, count);
  mix_weight_options kernel = {.size = sizeof kernel,
                               .name = "kernel",
                               .initializer_object = o->kernel_initializer_object,
                               .regularizer_object = o->kernel_regularizer,
                               .constraint_object = o->kernel_constraint};
  if (!full_shape(layer, input_shapes[0], &result) || !sizes_agree(layer, input_shapes[0], result) ||
      !kernel_shape(layer, input_shapes[0], result, &kernel))
    return mix_error();
  if (!mix_float8_build(layer, &d->float8) || !add_kernel(layer, &kernel)) return mix_error();
  if (o->bias_axes) {
    mix_weight_options bias = {.size = sizeof bias,
                               .name = "bias",
                               .initializer_object = o->bias_initializer_object,
                               .regularizer_object = o->bias_regularizer,
                               .constraint_object = o->bias_constraint};
    if (!bias_shape(layer, input_shapes[0], result, &bias.shape)) return mix_error();
    d->bias = mix_layer_add_weight_with(layer, &bias);
  }
  return mix_lora_build(layer);
}

/* ---- LoRA ---- */

enum { EQUATION = 3 * TERM + 16 };

/* Copies letters, with `to` in the place of `from`. */
static void replace_letter(char *copy, const char *letters, char from, char to) {
  for (; *letters; letters++) *copy++ = *letters == from ? to : *letters;
  *copy = 0;
}

/* "abc,cde->abde" as "abc,cdr->abdr" with a, and "abdr,re->abde" with b. False: the kernel's last letter is
 * not one that the kernel alone brings into the result, so that x . a has no meaning. */
static bool low_rank_equations(const equation *e, char equations[2][EQUATION]) {
  static const char letters[] = "rstuvwxyzabcdefghijklmnopqRSTUVWXYZ";
  const char last = e->kernel[strlen(e->kernel) - 1], *free_letter = letters;
  while (place_in(e->input, *free_letter) >= 0 || place_in(e->kernel, *free_letter) >= 0) free_letter++;
  if (place_in(e->input, last) >= 0 || place_in(e->result, last) < 0) return false;
  char a[TERM], between[TERM];
  replace_letter(a, e->kernel, last, *free_letter);
  replace_letter(between, e->result, last, *free_letter);
  const char *left = e->open_left ? "..." : "", *right = e->open_right ? "..." : "";
  snprintf(equations[0], EQUATION, "%s%s%s,%s->%s%s%s", left, e->input, right, a, left, between, right);
  snprintf(equations[1], EQUATION, "%s%s%s,%c%c->%s%s%s", left, between, right, *free_letter, last, left,
           e->result, right);
  return true;
}

/* As mix_lora_add does it where the kernel's last axis is the result's. */
static mix_tensor *add_low_rank(const mix_layer *layer, mix_tensor *y, mix_tensor *x,
                                char equations[2][EQUATION]) {
  const mix_lora *lora = layer->lora;
  const double scale = lora->alpha / (double)lora->rank;
  mix_tensor *xa = mix_einsum(equations[0], 2, (mix_tensor *[]){x, mix_lora_a(layer, layer->compute)});
  if (xa && scale != 1) xa = mix_times(xa, scale);
  mix_tensor *b = mix_cast(mix_variable_value(lora->b), layer->compute);
  return mix_add(y, mix_einsum(equations[1], 2, (mix_tensor *[]){xa, b}));
}

/* Of a layer that stores integers, which nothing is merged with. */
static mix_tensor *add_low_rank_or_merged(const mix_layer *layer, mix_tensor *y, mix_tensor *x) {
  const einsum_dense *d = layer->data;
  char equations[2][EQUATION];
  if (!y || !mix_lora_is_apart(layer)) return y;
  if (low_rank_equations(&d->equation, equations)) return add_low_rank(layer, y, x, equations);
  return mix_add(y, einsum_of(d, x, mix_lora_product(layer, layer->compute)));
}

static mix_tensor *einsum_dense_product(const mix_layer *layer, mix_tensor *x, bool training) {
  const einsum_dense *d = layer->data;
  char equations[2][EQUATION];
  if (d->stored.bits) return add_low_rank_or_merged(layer, stored_product(d, x), x);
  const bool apart = mix_lora_is_apart(layer) && low_rank_equations(&d->equation, equations);
  mix_tensor *kernel = apart ? mix_variable_value(d->kernel) : mix_lora_kernel(layer, d->kernel);
  x = mix_float8_operand(&d->float8, MIX_FLOAT8_INPUTS, x, training);
  kernel = mix_float8_operand(&d->float8, MIX_FLOAT8_KERNEL, kernel, training);
  mix_tensor *y = mix_float8_result(&d->float8, einsum_of(d, x, kernel));
  return apart ? add_low_rank(layer, y, x, equations) : y;
}

static mix_list *einsum_dense_call(mix_layer *layer, const mix_call_args *args) {
  const einsum_dense *d = layer->data;
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0));
  mix_tensor *y = x ? einsum_dense_product(layer, x, args->training) : NULL;
  if (!y) return NULL;
  if (d->bias) y = mix_add(y, mix_float8_bias(&d->float8, mix_variable_value(d->bias)));
  return mix_one_result(mix_layer_activate(layer, d->options.activation, y));
}

static const mix_stored_weight *einsum_dense_stored(const mix_layer *layer, mix_shape *shape) {
  const einsum_dense *d = layer->data;
  if (!d->stored.bits) return NULL;
  *shape = d->kernel_shape;
  return &d->stored;
}

static mix_status einsum_dense_quantize(mix_layer *layer, const mix_quantization *quantization) {
  einsum_dense *d = layer->data;
  if (!strcmp(quantization->mode, "float8")) {
    mix_float8_add_weights(layer, &d->float8, quantization->amax_history_length);
    return mix_error();
  }
  const mix_stored_shape of = stored_shape(d, quantization->mode[3] == '4');
  d->options.quantization_config = mix_quantization_config_text(&quantization->config);
  if (d->options.quantization_config &&
      mix_stored_replace(layer, d->kernel, &quantization->config, &of, &d->stored))
    d->kernel = NULL;
  return mix_lora_follow(layer);
}

static bool einsum_dense_check_quantization(const mix_layer *layer, const mix_quantization *quantization) {
  return !strcmp(quantization->mode, "float8") || has_no_ellipsis(layer);
}

static mix_shape einsum_dense_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  const equation *e = &((const einsum_dense *)layer->data)->equation;
  const mix_shape input = input_shapes[0];
  mix_shape result;
  if (!full_shape(layer, input, &result)) return (mix_shape){.rank = 0};
  const int open = e->open_left ? input.rank - (int)strlen(e->input) : 0;
  for (const char *letter = e->input; *letter; letter++) { /* sizes that the option leaves open */
    const int at = place_in(e->result, *letter);
    if (at >= 0) result.dims[at + open] = size_in(e->input, input, open, *letter);
  }
  return result;
}

/* Axis 1 of the input is axis 1 of the result, and no sum is over it. */
static bool einsum_dense_decodes(const mix_layer *layer, const mix_call_args *args) {
  const equation *e = &((const einsum_dense *)layer->data)->equation;
  const int open = e->open_left ? mix_tensor_shape(mix_call_input(args, 0)).rank - (int)strlen(e->input) : 0;
  if (open > 1) return true;
  const int at = 1 - open;
  if (at >= (int)strlen(e->input)) return false;
  return place_in(e->kernel, e->input[at]) < 0 && place_in(e->result, e->input[at]) == at;
}

#define FIELD(member) MIX_FIELD(mix_einsum_dense_options, member)
static const mix_field_row fields[] = {
    {FIELD(output_shape), &mix_field_size_or_shape, .required = true},
    {FIELD(equation), &mix_field_text, .required = true},
    {FIELD(activation), &mix_field_activation},
    {FIELD(bias_axes), &mix_field_text, .optional = true},
    MIX_INITIALIZER_FIELD(mix_einsum_dense_options, kernel_initializer, "glorot_uniform"),
    MIX_INITIALIZER_FIELD(mix_einsum_dense_options, bias_initializer, "zeros"),
    {FIELD(kernel_regularizer), &mix_field_regularizer},
    {FIELD(bias_regularizer), &mix_field_regularizer},
    {FIELD(activity_regularizer), &mix_field_regularizer},
    {FIELD(kernel_constraint), &mix_field_constraint},
    {FIELD(bias_constraint), &mix_field_constraint},
    MIX_QUANTIZATION_CONFIG_FIELD(mix_einsum_dense_options),
    MIX_LORA_FIELDS(mix_einsum_dense_options),
    {0}};
/* It drops masks, as in Keras. */
MIX_LAYER_KIND(einsum_dense, mix_einsum_dense_options, .fields = fields, .check = einsum_dense_check,
               .ready = einsum_dense_ready, .quantize = einsum_dense_quantize,
               .check_quantization = einsum_dense_check_quantization,
               MIX_LORA_OF(mix_einsum_dense_options, kernel), .stored = einsum_dense_stored,
               .decodes = einsum_dense_decodes,
               MIX_LAYER_CLASS(.name = "EinsumDense", .instance_size = sizeof(einsum_dense),
                               .build = einsum_dense_build, .call = einsum_dense_call,
                               .output_shape = einsum_dense_output_shape))
