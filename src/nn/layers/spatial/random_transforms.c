/* RandomRotation, RandomTranslation and RandomZoom: a projective transform of each image. */
#include "base/error.h"
#include "nn/layers/spatial/random_images.h"
#include "ops/with_number.h"
#include <math.h>

/* ---- what they share ---- */

typedef struct transform_options {
  MIX_TRANSFORM_OPTIONS
} transform_options;

static mix_fill_mode fill_mode_named(const char *name) {
  static const char *const names[] = {"constant", "reflect", "wrap", "nearest"};
  int mode = MIX_FILL_CONSTANT;
  while (mode < MIX_FILL_NEAREST && strcmp(names[mode], name)) mode++;
  return (mix_fill_mode)mode;
}

/* (batch, 8) from columns (batch, 1); NULL is zeros. */
static mix_tensor *matrix_of(int64_t batch, mix_tensor *const columns[6]) {
  mix_tensor *all[7];
  for (int i = 0; i < 6; i++)
    all[i] = columns[i] ? columns[i] : mix_fill(MIX_SHAPE(batch, 1), 0, MIX_FLOAT32);
  all[6] = mix_fill(MIX_SHAPE(batch, 2), 0, MIX_FLOAT32);
  return mix_concat(7, all, 1);
}

/* Makes the transforms of a batch of images of that height and width. */
typedef mix_tensor *transform_function(const void *instance, mix_generator *generator, int64_t batch,
                                       double height, double width);

static mix_list *transformed(mix_layer *layer, const mix_call_args *args, const transform_options *o,
                             mix_generator *generator, transform_function *transforms) {
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0));
  mix_tensor *images = mix_image_batch(layer, x, o->data_format);
  if (!images) return NULL;
  if (!args->training || args->symbolic) return mix_one_result(x);
  const mix_shape shape = mix_tensor_shape(images);
  mix_tensor *matrix = transforms(mix_layer_data(layer), generator, shape.dims[0], (double)shape.dims[1],
                                  (double)shape.dims[2]);
  mix_tensor *y = mix_projective_transform(images, matrix,
                                           strcmp(o->interpolation, "nearest") ? MIX_BILINEAR : MIX_NEAREST,
                                           fill_mode_named(o->fill_mode), o->fill_value);
  return mix_one_result(mix_image_result(y, x, o->data_format));
}

#define TRANSFORM_FIELDS(type)                                                                               \
  {MIX_FIELD(type, fill_mode), &mix_field_text, .text = "reflect",                                           \
   .choices = "reflect|constant|wrap|nearest"},                                                              \
      {MIX_FIELD(type, interpolation), &mix_field_text, .text = "bilinear", .choices = "bilinear|nearest"},  \
      {MIX_FIELD(type, seed), &mix_field_seed}, {MIX_FIELD(type, fill_value), &mix_field_number},            \
      MIX_IMAGE_DATA_FORMAT_FIELD(type), MIX_RANDOM_TYPE_FIELD

/* The part of the options of a type that begins at fill_mode. */
#define TRANSFORM_OF(o)                                                                                      \
  (&(const transform_options){(o)->fill_mode, (o)->interpolation, (o)->seed, (o)->fill_value,                \
                              (o)->data_format})

static double low_of(const mix_factor *f) { return f->is_pair ? f->low : -fabs(f->high); }
static double high_of(const mix_factor *f) { return f->is_pair ? f->high : fabs(f->high); }

/* keras3 sorts a pair that descends; else it is a ValueError. */
static bool order(mix_layer *layer, mix_factor *factor, const char *name) {
  const double low = factor->low;
  if (!factor->is_pair || low <= factor->high) return true;
  if (!layer->semantics->random_factors_sorted)
    return mix_fail_value("%s: %s is %g to %g; expected an upper bound above the lower", layer->kind->call,
                          name, low, factor->high);
  factor->low = factor->high;
  factor->high = low;
  return true;
}

/* ---- RandomRotation ---- */

static mix_tensor *rotations(const void *instance, mix_generator *generator, int64_t batch, double height,
                             double width) {
  const mix_random_rotation_options *r = instance;
  const mix_factor *f = &r->factor;
  mix_tensor *angle =
      mix_drawn_between(generator, MIX_SHAPE(batch, 1), low_of(f) * 2 * M_PI, high_of(f) * 2 * M_PI);
  if (!angle) return NULL;
  mix_tensor *c = mix_cos(angle), *s = mix_sin(angle), *x = mix_scalar_like(c, (width - 1) / 2),
             *y = mix_scalar_like(c, (height - 1) / 2);
  /* the centre stays in place */
  mix_tensor *right = mix_subtract(x, mix_subtract(mix_multiply(c, x), mix_multiply(s, y))),
             *down = mix_subtract(y, mix_add(mix_multiply(s, x), mix_multiply(c, y)));
  return matrix_of(batch, (mix_tensor *[]){c, mix_negative(s), right, s, c, down});
}

static mix_list *random_rotation_call(mix_layer *layer, const mix_call_args *args) {
  const mix_random_rotation_options *r = mix_layer_data(layer);
  return transformed(layer, args, TRANSFORM_OF(r), mix_generator_of(layer), rotations);
}

static bool random_rotation_ready(mix_layer *layer) {
  mix_random_rotation_options *r = layer->data;
  mix_factor *f = &r->factor;
  const double bound = layer->semantics->random_factors_resolved ? 1 : HUGE_VAL;
  if (!order(layer, f, "factor") || !mix_factor_resolve(f, layer->kind->call, "factor", -bound, bound))
    return false;
  if (layer->semantics->random_factors_resolved && !f->is_pair)
    *f = (mix_factor){true, true, low_of(f), high_of(f)};
  return true;
}

static const mix_field_row rotation_fields[] = {
    {MIX_FIELD(mix_random_rotation_options, factor), &mix_field_factor, .number = MIX_FACTOR_PAIR_IF_RESOLVED,
     .required = true, MIX_ONE_FACTOR(mix_random_rotation_options, number)},
    TRANSFORM_FIELDS(mix_random_rotation_options),
    {0}};
MIX_LAYER_KIND(random_rotation, mix_random_rotation_options, .fields = rotation_fields,
               .call_training = MIX_TRUE, .ready = random_rotation_ready,
               .seed = offsetof(mix_random_rotation_options, seed),
               MIX_LAYER_CLASS(.name = "RandomRotation", .call = random_rotation_call,
                               .output_shape = mix_layer_same_shape))

/* ---- RandomTranslation ---- */

static mix_tensor *translations(const void *instance, mix_generator *generator, int64_t batch, double height,
                                double width) {
  const mix_random_translation_options *r = instance;
  const mix_factor *v = &r->height_factor, *h = &r->width_factor;
  const mix_shape column = MIX_SHAPE(batch, 1);
  mix_tensor *down = mix_drawn_between(generator, column, low_of(v), high_of(v)),
             *right = mix_drawn_between(generator, column, low_of(h), high_of(h));
  if (!right) return NULL;
  down = mix_times(down, -height);
  right = mix_times(right, -width);
  mix_tensor *one = mix_fill(column, 1, MIX_FLOAT32);
  return matrix_of(batch, (mix_tensor *[]){one, NULL, right, NULL, one, down});
}

static mix_list *random_translation_call(mix_layer *layer, const mix_call_args *args) {
  const mix_random_translation_options *r = mix_layer_data(layer);
  return transformed(layer, args, TRANSFORM_OF(r), mix_generator_of(layer), translations);
}

static bool random_translation_ready(mix_layer *layer) {
  mix_random_translation_options *r = layer->data;
  mix_factor *factors[] = {&r->height_factor, &r->width_factor};
  static const char *const names[] = {"height_factor", "width_factor"};
  for (int i = 0; i < 2; i++)
    if (!order(layer, factors[i], names[i]) ||
        !mix_factor_resolve(factors[i], layer->kind->call, names[i], -1, 1))
      return false;
  return true;
}

#define FACTOR(type, member, ...)                                                                            \
  { MIX_FIELD(type, member), &mix_field_factor, .number = MIX_FACTOR_AS_GIVEN, __VA_ARGS__ }
static const mix_field_row translation_fields[] = {
    FACTOR(mix_random_translation_options, height_factor, .required = true,
           MIX_ONE_FACTOR(mix_random_translation_options, height_number)),
    FACTOR(mix_random_translation_options, width_factor, .required = true,
           MIX_ONE_FACTOR(mix_random_translation_options, width_number)),
    TRANSFORM_FIELDS(mix_random_translation_options),
    {0}};
MIX_LAYER_KIND(random_translation, mix_random_translation_options, .fields = translation_fields,
               .call_training = MIX_TRUE, .ready = random_translation_ready,
               .seed = offsetof(mix_random_translation_options, seed),
               MIX_LAYER_CLASS(.name = "RandomTranslation", .call = random_translation_call,
                               .output_shape = mix_layer_same_shape))

/* ---- RandomZoom ---- */

/* (n - 1) / 2 (1 - zoom): the centre stays in place. */
static mix_tensor *zoom_offset(mix_tensor *zoom, double n) {
  return mix_multiply(mix_subtract(mix_scalar_like(zoom, 1), zoom), mix_scalar_like(zoom, (n - 1) / 2));
}

static mix_tensor *zooms(const void *instance, mix_generator *generator, int64_t batch, double height,
                         double width) {
  const mix_random_zoom_options *r = instance;
  const mix_factor *v = &r->height_factor, *h = &r->width_factor;
  const mix_shape column = MIX_SHAPE(batch, 1);
  mix_tensor *y = mix_drawn_between(generator, column, 1 + low_of(v), 1 + high_of(v)),
             *x = h->given ? mix_drawn_between(generator, column, 1 + low_of(h), 1 + high_of(h)) : y;
  if (!x || !y) return NULL;
  return matrix_of(batch, (mix_tensor *[]){x, NULL, zoom_offset(x, width), NULL, y, zoom_offset(y, height)});
}

static mix_list *random_zoom_call(mix_layer *layer, const mix_call_args *args) {
  const mix_random_zoom_options *r = mix_layer_data(layer);
  return transformed(layer, args, TRANSFORM_OF(r), mix_generator_of(layer), zooms);
}

static bool random_zoom_ready(mix_layer *layer) {
  mix_random_zoom_options *r = layer->data;
  mix_factor *v = &r->height_factor, *h = &r->width_factor;
  const double least = nextafter(-1, 0); /* -1 would zoom in on nothing */
  if (!order(layer, v, "height_factor") ||
      !mix_factor_resolve(v, layer->kind->call, "height_factor", least, 1))
    return false;
  if (h->given && (!order(layer, h, "width_factor") ||
                   !mix_factor_resolve(h, layer->kind->call, "width_factor", least, 1)))
    return false;
  return true;
}

static const mix_field_row zoom_fields[] = {FACTOR(mix_random_zoom_options, height_factor, .required = true,
                                                   MIX_ONE_FACTOR(mix_random_zoom_options, height_number)),
                                            FACTOR(mix_random_zoom_options, width_factor, .optional = true),
                                            TRANSFORM_FIELDS(mix_random_zoom_options),
                                            {0}};
MIX_LAYER_KIND(random_zoom, mix_random_zoom_options, .fields = zoom_fields, .call_training = MIX_TRUE,
               .ready = random_zoom_ready, .seed = offsetof(mix_random_zoom_options, seed),
               MIX_LAYER_CLASS(.name = "RandomZoom", .call = random_zoom_call,
                               .output_shape = mix_layer_same_shape))
