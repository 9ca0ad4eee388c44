/* Data for a model from a file: x or x_0, x_1, ..., y or y_0, y_1, ..., or both by the names of the model's
 * inputs and outputs, and sample_weight, taken as they are; or a set of images in the shape that the model
 * takes; or a table. */
#include "cli/cli.h"

#include "base/error.h"
#include "base/format.h"
#include "model/model.h"
#include "tensor/shape.h"

#include <string.h>

enum { NAME = 64, NAMES = 512 };

/* The arrays of one part: training data are x_train or x, test data x_test. */
typedef struct reader {
  mix_npz *npz;
  const char *path;
  const mix_model *model;
  const char *part; /* "train", "test" */
  int64_t batch;    /* of training; 0: another command */
} reader;

/* "x", "x_train", "x_1", "x_1_test"; index -1: without a number. */
static const char *name_array(const char *stem, int index, const char *part, char *name) {
  char number[16] = "";
  if (index >= 0) snprintf(number, sizeof number, "_%d", index);
  snprintf(name, NAME, "%s%s%s%s", stem, number, part ? "_" : "", part ? part : "");
  return name;
}

/* The array in any of its names; `name` is the one that it has. NULL without an error: none. */
static mix_tensor *find(const reader *r, const char *stem, int index, bool alone, char *name) {
  const bool training = !strcmp(r->part, "train");
  for (int numbered = !alone; numbered < 2; numbered++)
    for (int plain = 0; plain <= training; plain++) {
      name_array(stem, numbered ? index : -1, plain ? NULL : r->part, name);
      mix_tensor *array = mix_npz_get(r->npz, name);
      if (array || mix_failed()) return array;
    }
  return NULL;
}

/* The array of an input or an output by its own name, with "_train" or "_test" behind or without. */
static mix_tensor *find_named(const reader *r, bool input, int index, char *name) {
  const char *own = input ? mix_model_input_name(r->model, index) : mix_model_output_name(r->model, index);
  mix_tensor *array = NULL;
  if (!own || strlen(own) > NAME / 2) return NULL;
  name_array(own, -1, r->part, name);
  if (!(array = mix_npz_get(r->npz, name)) && !mix_failed() && !strcmp(r->part, "train"))
    array = mix_npz_get(r->npz, name_array(own, -1, NULL, name));
  return array;
}

static const char *list_arrays(const reader *r, char *text) {
  mix_text out = {.text = text, .size = NAMES};
  for (int i = 0; i < mix_npz_count(r->npz); i++)
    mix_text_put(&out, "%s%s", i ? ", " : "", mix_npz_name(r->npz, i));
  return text;
}

/* ---- what the model takes ---- */

/* "(rows, 28, 28)" */
static const char *shape_text(mix_shape shape, char *text, size_t size) {
  mix_text out = {.text = text, .size = size};
  if (shape.rank < 1) return "any shape";
  mix_text_put(&out, "(rows");
  for (int i = 1; i < shape.rank; i++)
    if (shape.dims[i] < 0)
      mix_text_put(&out, ", any");
    else
      mix_text_put(&out, ", %lld", (long long)shape.dims[i]);
  mix_text_put(&out, ")");
  return text;
}

typedef struct place {
  const char *stem, *what; /* "x", "input" */
  int index, count;
  mix_shape shape;
} place;

static place input_place(const mix_model *model, int input) {
  return (place){"x", "input", input, mix_model_input_count(model), mix_model_input_shape(model, input)};
}
static place output_place(const mix_model *model, int output) {
  return (place){"y", "output", output, mix_model_output_count(model), mix_model_output_shape(model, output)};
}

/* "input 1 of 2, 'right', (rows, 6)" */
static const char *place_text(const reader *r, const place *p, char *text, size_t size) {
  char shape[160];
  const char *name =
      *p->what == 'i' ? mix_model_input_name(r->model, p->index) : mix_model_output_name(r->model, p->index);
  snprintf(text, size, "%s %d of %d of the model, '%.60s', %s", p->what, p->index + 1, p->count,
           name ? name : "", shape_text(p->shape, shape, sizeof shape));
  return text;
}

/* Keras adds or removes a last axis of one. */
static bool shape_fits(mix_shape shape, mix_shape wanted) {
  if (wanted.rank < 1) return true;
  if (shape.rank == wanted.rank + 1 && shape.dims[shape.rank - 1] == 1) shape.rank--;
  if (shape.rank == wanted.rank - 1 && wanted.dims[wanted.rank - 1] == 1) shape.dims[shape.rank++] = 1;
  if (shape.rank != wanted.rank) return false;
  for (int i = 0; i < shape.rank; i++)
    if (wanted.dims[i] >= 0 && i > 0 && shape.dims[i] != wanted.dims[i]) return false;
  return true;
}

/* ---- reading ---- */

static void fail_missing(const reader *r, const place *p) {
  char name[NAME], expected[320], names[NAMES];
  const bool alone = p->count == 1;
  mix_fail_value("%s: no array %s for %s, nor one of that name; the arrays are %s", r->path,
                 name_array(p->stem, alone ? -1 : p->index, !strcmp(r->part, "test") ? "test" : NULL, name),
                 place_text(r, p, expected, sizeof expected), list_arrays(r, names));
}

/* Labels are as the loss takes them, so only inputs have a shape. */
static bool check(const reader *r, const place *p, mix_tensor *array, const char *name, int64_t *rows) {
  char expected[320];
  const mix_shape shape = mix_tensor_shape(array);
  if (shape.rank < 1 || !mix_shape_size(shape) || (*p->stem == 'x' && !shape_fits(shape, p->shape)))
    return mix_fail_value("%s: %s is %s; expected examples for %s", r->path, name, MIX_SHAPE_TEXT(shape),
                          place_text(r, p, expected, sizeof expected));
  /* targets of one batch may have another count, as results that are not by row have */
  if (*p->stem == 'y' && *rows >= 0 && *rows <= r->batch) return true;
  if (*rows >= 0 && shape.dims[0] != *rows)
    return mix_fail_value("%s: %s has %lld rows, and the arrays before it %lld; %s expects as many", r->path,
                          name, (long long)shape.dims[0], (long long)*rows,
                          place_text(r, p, expected, sizeof expected));
  *rows = shape.dims[0];
  return true;
}

/* An array beyond those that the model has places for. */
static bool no_more(const reader *r, const place *last) {
  char name[NAME], expected[320];
  if (mix_failed() || !find(r, last->stem, last->count, false, name)) return !mix_failed();
  return mix_fail_value("%s: %s has no place in the model; the last is %s", r->path, name,
                        place_text(r, last, expected, sizeof expected));
}

/* A tensor, or a list for several places. NULL without an error: none of them is there. */
static void *read_all(const reader *r, place (*place_of)(const mix_model *, int), int64_t *rows) {
  place p = place_of(r->model, 0);
  const bool alone = p.count == 1;
  mix_list *list = mix_list_new(0, NULL);
  for (int i = 0; i < p.count && !mix_failed(); i++) {
    char name[NAME];
    p = place_of(r->model, i);
    mix_tensor *array = find(r, p.stem, i, alone, name);
    if (!array && !mix_failed()) array = find_named(r, *p.what == 'i', i, name);
    if (!array && !i && !mix_failed()) return NULL;
    if (!array && !mix_failed()) fail_missing(r, &p);
    if (!array || !check(r, &p, array, name, rows) || mix_list_append(list, array)) return NULL;
  }
  if (mix_failed() || !no_more(r, &p)) return NULL;
  return alone ? mix_list_get(list, 0) : list;
}

/* One array of weights, or one for each output. */
static void *read_weights(const reader *r, int64_t rows) {
  char name[NAME];
  const int outputs = mix_model_output_count(r->model);
  mix_tensor *one = find(r, "sample_weight", -1, true, name);
  mix_list *list = one || mix_failed() ? NULL : mix_list_new(0, NULL);
  for (int i = 0; list && i < outputs && !mix_failed(); i++)
    mix_list_append(list, find(r, "sample_weight", i, false, name));
  for (int i = 0; i < (list ? outputs : 1) && !mix_failed(); i++) {
    mix_tensor *array = list ? mix_list_items(list)[i] : one;
    const mix_shape shape = mix_tensor_shape(array);
    if (array && (shape.rank < 1 || shape.dims[0] != rows))
      mix_fail_value("%s: %s has %lld rows, and the data %lld; expected a weight for each", r->path, name,
                     (long long)(shape.rank ? shape.dims[0] : 0), (long long)rows);
  }
  bool any = false;
  for (int i = 0; list && i < outputs; i++) any |= mix_list_items(list)[i] != NULL;
  return mix_failed() ? NULL : one ? (void *)one : any ? list : NULL;
}

static bool read_part(const reader *r, cli_part *part, bool required, bool labelled) {
  int64_t rows = -1;
  part->x = read_all(r, input_place, &rows);
  const place x = input_place(r->model, 0), y = output_place(r->model, 0);
  if (!part->x && required && !mix_failed()) fail_missing(r, &x);
  if (!part->x || !labelled) return !mix_failed();
  part->y = read_all(r, output_place, &rows);
  if (!part->y && !mix_failed()) fail_missing(r, &y);
  part->weights = mix_failed() ? NULL : read_weights(r, rows);
  return !mix_failed();
}

/* ---- images ---- */

/* Images in the shape of the model's input: bytes, if its steps scale them, else numbers from 0 to 1. */
static mix_tensor *as_input(const mix_model *model, mix_tensor *images) {
  char text[160];
  mix_shape shape = mix_tensor_shape(images), wanted = mix_model_input_shape(model, 0);
  const int64_t rows = shape.dims[0], values = mix_shape_size(shape) / rows;
  const mix_shape unknown = wanted;
  if (wanted.rank < 1) wanted = shape;
  wanted.dims[0] = rows;
  for (int i = 1; i < wanted.rank; i++) /* sides that the model leaves open */
    if (wanted.dims[i] < 0) wanted.dims[i] = i < shape.rank ? shape.dims[i] : 1;
  if (mix_model_input_count(model) != 1 || mix_shape_size(wanted) != rows * values)
    return mix_fail_value("the images have %lld values each; the model takes %s", (long long)values,
                          shape_text(unknown, text, sizeof text));
  if (!model->state || !model->state->given.preprocess)
    images = mix_divide(mix_cast(images, MIX_FLOAT32), mix_scalar(255, MIX_FLOAT32));
  return mix_reshape(images, wanted);
}

/* CIFAR-10's labels are a column. */
static mix_tensor *as_vector(mix_tensor *labels) { return mix_reshape(labels, MIX_SHAPE(-1)); }

static bool take_images(const mix_model *model, const mix_images *images, bool trains, cli_data *data) {
  *data = (cli_data){.test = {as_input(model, images->x_test), as_vector(images->y_test)},
                     .source = images->source};
  if (trains) data->train = (cli_part){as_input(model, images->x_train), as_vector(images->y_train)};
  return !mix_failed();
}

/* A table is one input. */
static bool table_fits(const mix_model *model, const cli_data *data) {
  const cli_part *part = cli_part_to_test(data);
  const reader r = {.path = data->source, .model = model};
  const place input = input_place(model, 0);
  int64_t rows = -1;
  return check(&r, &input, part->x, "the table's features", &rows) &&
         (input.count == 1 ||
          mix_fail_value("%s: a table is one input, and the model takes %d", data->source, input.count));
}

bool cli_load_model_data(const cli_options *options, int command, mix_model *model, cli_data *data) {
  const bool trains = command == CLI_TRAIN, labelled = command != CLI_PREDICT;
  *data = (cli_data){.source = options->data};
  if (!strcmp(options->data, "synthetic")) return cli_synthesize_data(options, command, model, data);
  if (cli_is_image_set(options->data)) {
    mix_images images = cli_load_image_set(options->data);
    if (mix_failed() || !take_images(model, &images, trains, data)) return false;
  } else if (cli_is_table(options->data)) {
    if (!cli_load_table(options, command, data) || !table_fits(model, data)) return false;
  } else {
    reader r = {mix_npz_open(options->data), options->data, model, "test", 0};
    if (!r.npz || !read_part(&r, &data->test, false, labelled)) return false;
    r.part = "train";
    r.batch = trains ? options->batch_size : 0;
    if ((trains || !data->test.x) && !read_part(&r, &data->train, true, labelled)) return false;
  }
  if (!mix_distribution_rank(mix_distribution_current()))
    fprintf(stderr, "data: %s\n", MIX_PRINTABLE(data->source));
  return !mix_failed();
}
