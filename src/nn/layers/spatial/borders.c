/* ZeroPadding1D, 2D, 3D and Cropping1D, 2D, 3D. */
#include "base/error.h"
#include "nn/layers/spatial/spatial.h"

/* ---- the field: becomes a pair for each axis ---- */

/* The row's `number` is how many axes there are, `text` the default. */
static bool resolve_borders(const mix_field *field) {
  mix_borders *b = field->value;
  const int axes = (int)field->row->number, given = b->count;
  const mix_borders old = *b;
  if (!given) b->cells[0] = field->row->text[0] - '0';
  if (given != 0 && given != 1 && given != axes && given != 2 * axes)
    return mix_fail_value("%s: %s has %d numbers; expected one, one for each of %d axes, or a pair for each",
                          field->call, field->name, given, axes);
  b->count = 2 * axes;
  for (int i = 0; i < b->count && given != 2 * axes; i++)
    b->cells[i] = given == axes && axes > 1 ? old.cells[i / 2] : b->cells[0];
  for (int i = 0; i < b->count; i++)
    if (b->cells[i] < 0)
      return mix_fail_value("%s: %s has %lld; expected numbers of 0 or more", field->call, field->name,
                            (long long)b->cells[i]);
  return true;
}

static json_t *pair_of(const int64_t *cells) {
  json_t *pair = json_array();
  mix_json_append(pair, json_integer(cells[0]));
  mix_json_append(pair, json_integer(cells[1]));
  return pair;
}
static json_t *write_borders(const mix_field *field) {
  const mix_borders *b = field->value;
  if (b->count == 2) return pair_of(b->cells);
  json_t *list = json_array();
  for (int i = 0; i < b->count; i += 2) mix_json_append(list, pair_of(b->cells + i));
  return list;
}

/* A number, pairs, or a number for each axis; one axis is one pair. */
static bool read_borders(const mix_field *field, const json_t *value) {
  mix_borders *b = field->value;
  const size_t axes = (size_t)field->row->number, entries = axes == 1 ? 2 : axes;
  if (json_is_null(value)) return true;
  if (json_is_integer(value)) return b->count = 1, mix_field_read_size(field, value, &b->cells[0]);
  if (!json_is_array(value)) return mix_field_mistyped(field, value);
  if (json_array_size(value) != entries)
    return mix_fail_value("%s: %s has %zu entries; expected %zu", field->call, field->name,
                          json_array_size(value), entries);
  for (size_t i = 0; i < entries; i++) {
    const json_t *entry = json_array_get(value, i);
    const bool pair = axes > 1 && json_array_size(entry) == 2;
    for (size_t side = 0; side < (axes > 1 ? 2u : 1u); side++) {
      const json_t *cells = pair ? json_array_get(entry, side) : entry;
      if (!mix_field_read_size(field, cells, &b->cells[b->count++])) return false;
    }
  }
  return true;
}
static const mix_value_kind borders_kind = {.expected = "an integer or pairs of integers",
                                            .size = sizeof(mix_borders),
                                            .resolve = resolve_borders,
                                            .write = write_borders,
                                            .read = read_borders};

/* ---- padding ---- */

static mix_shape padding_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  const mix_zero_padding_options *o = mix_layer_data(layer);
  mix_shape shape = input_shapes[0];
  const int begin = mix_spatial_begin(o->data_format);
  for (int i = 0; i < o->padding.count; i++)
    if (begin + i / 2 < shape.rank && shape.dims[begin + i / 2] != MIX_UNKNOWN &&
        __builtin_add_overflow(shape.dims[begin + i / 2], o->padding.cells[i], &shape.dims[begin + i / 2]))
      shape.dims[begin + i / 2] = INT64_MAX; /* which the operation refuses */
  return shape;
}

static mix_list *padding_call(mix_layer *layer, const mix_call_args *args) {
  const mix_zero_padding_options *o = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  const int begin = mix_spatial_begin(o->data_format);
  mix_shape before = {.rank = mix_tensor_shape(x).rank}, after = before;
  for (int i = 0; i < o->padding.count; i += 2) {
    before.dims[begin + i / 2] = o->padding.cells[i];
    after.dims[begin + i / 2] = o->padding.cells[i + 1];
  }
  return mix_one_result(mix_pad(x, before, after, 0));
}

static bool padding_ready(mix_layer *layer) {
  return mix_layer_spatial(layer, ((const mix_zero_padding_options *)layer->data)->padding.count / 2);
}

/* tf_keras's ZeroPadding1D has no data_format. */
#define PADDING_FIELD(axes)                                                                                  \
  {                                                                                                          \
    MIX_FIELD(mix_zero_padding_options, padding), &borders_kind,                                             \
        .number = axes, .text = "1", .one = offsetof(mix_zero_padding_options, cells)                        \
  }
static const mix_field_row padding_1d[] = {
    PADDING_FIELD(1),
    {MIX_FIELD(mix_zero_padding_options, data_format), &mix_field_text, .text = "channels_last",
     .choices = "channels_last|channels_first", .only = MIX_RULE(config_image_data_format)},
    {0}};
static const mix_field_row padding_2d[] = {
    PADDING_FIELD(2), MIX_DATA_FORMAT_FIELD(mix_zero_padding_options), {0}};
static const mix_field_row padding_3d[] = {
    PADDING_FIELD(3), MIX_DATA_FORMAT_FIELD(mix_zero_padding_options), {0}};
#define PADDING(axes)                                                                                        \
  MIX_LAYER_KIND_ONLY(zero_padding##axes##d, mix_zero_padding_options, .fields = padding_##axes##d,          \
                      .ready = padding_ready,                                                                \
                      MIX_LAYER_CLASS(.name = "ZeroPadding" #axes "D", .call = padding_call,                 \
                                      .output_shape = padding_output_shape))
PADDING(1)
PADDING(2)
PADDING(3)

mix_zero_padding_options mix_zero_padding_defaults(void) {
  return (mix_zero_padding_options){.size = sizeof(mix_zero_padding_options)};
}

/* ---- cropping ---- */

static mix_shape cropping_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  const mix_cropping_options *o = mix_layer_data(layer);
  mix_shape shape = input_shapes[0];
  const int begin = mix_spatial_begin(o->data_format);
  for (int i = 0; i < o->cropping.count; i += 2) {
    int64_t *n = &shape.dims[begin + i / 2];
    if (begin + i / 2 >= shape.rank || *n == MIX_UNKNOWN) continue;
    *n = *n <= o->cropping.cells[i] || *n - o->cropping.cells[i] <= o->cropping.cells[i + 1]
             ? 0
             : *n - o->cropping.cells[i] - o->cropping.cells[i + 1];
  }
  return shape;
}

static mix_list *cropping_call(mix_layer *layer, const mix_call_args *args) {
  const mix_cropping_options *o = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  const mix_shape in = mix_tensor_shape(x), out = cropping_output_shape(layer, 1, &in);
  const int begin = mix_spatial_begin(o->data_format), axes = o->cropping.count / 2;
  mix_shape from = {.rank = in.rank}, size = out;
  for (int d = 0; d < axes; d++) {
    from.dims[begin + d] = o->cropping.cells[2 * d];
    if (out.dims[begin + d] == 0)
      return mix_fail_value(
          "%s: cropping %lld and %lld cells leaves nothing of spatial axis %d of the input %s", layer->name,
          (long long)o->cropping.cells[2 * d], (long long)o->cropping.cells[2 * d + 1], d,
          MIX_SHAPE_TEXT(in));
  }
  if (mix_is_open(x, begin, axes)) return mix_one_result(mix_open_result(x, out));
  for (int d = 0; d < size.rank; d++)
    if (d < begin || d >= begin + axes) size.dims[d] = -1;
  return mix_one_result(mix_slice(x, from, size));
}

static bool cropping_ready(mix_layer *layer) {
  return mix_layer_spatial(layer, ((const mix_cropping_options *)layer->data)->cropping.count / 2);
}

static bool cropping_1d_check(void *options, const mix_layer_kind *kind) {
  const char *format = ((const mix_cropping_options *)options)->data_format;
  if (!mix_is_channels_first(format)) return true;
  return mix_fail_value("%s: data_format '%.60s' is not known; expected none", kind->call, format);
}

#define CROPPING_FIELD(axes, given)                                                                          \
  {                                                                                                          \
    MIX_FIELD(mix_cropping_options, cropping), &borders_kind, .number = axes, .text = given,                 \
                                                              .one = offsetof(mix_cropping_options, cells)   \
  }
static const mix_field_row cropping_1d[] = {CROPPING_FIELD(1, "1"), {0}};
static const mix_field_row cropping_2d[] = {
    CROPPING_FIELD(2, "0"), MIX_DATA_FORMAT_FIELD(mix_cropping_options), {0}};
static const mix_field_row cropping_3d[] = {
    CROPPING_FIELD(3, "1"), MIX_DATA_FORMAT_FIELD(mix_cropping_options), {0}};
#define CROPPING(axes, ...)                                                                                  \
  MIX_LAYER_KIND_ONLY(cropping##axes##d, mix_cropping_options, .fields = cropping_##axes##d,                 \
                      .ready = cropping_ready, __VA_ARGS__,                                                  \
                      MIX_LAYER_CLASS(.name = "Cropping" #axes "D", .call = cropping_call,                   \
                                      .output_shape = cropping_output_shape))
CROPPING(1, .check = cropping_1d_check)
CROPPING(2, .check = NULL)
CROPPING(3, .check = NULL)

mix_cropping_options mix_cropping_defaults(void) {
  return (mix_cropping_options){.size = sizeof(mix_cropping_options)};
}
