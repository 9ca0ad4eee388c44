/* mix_image_dataset_from_directory: an index of files, shuffled and split, and a pipeline that reads them. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/philox.h"
#include "data/sources/image_index.h"
#include "formats/file.h"
#include "formats/image_file.h"
#include "nn/layers/spatial/spatial.h"
#include <mixtape/image_dataset.h>
#include <stdlib.h>

#define CALL "image_dataset_from_directory"

static const mix_field_row fields[] = {
    {MIX_FIELD(mix_image_dataset_options, label_mode), &mix_field_text, .text = "int",
     .choices = "int|categorical|binary|none"},
    {MIX_FIELD(mix_image_dataset_options, color_mode), &mix_field_text, .text = "rgb",
     .choices = "rgb|rgba|grayscale"},
    {MIX_FIELD(mix_image_dataset_options, height), &mix_field_integer, .number = 256, .range = MIX_POSITIVE},
    {MIX_FIELD(mix_image_dataset_options, width), &mix_field_integer, .number = 256, .range = MIX_POSITIVE},
    {MIX_FIELD(mix_image_dataset_options, subset), &mix_field_text, .choices = "training|validation|both"},
    {MIX_FIELD(mix_image_dataset_options, interpolation), &mix_field_interpolation, .text = "bilinear"},
    MIX_DATA_FORMAT_FIELD(mix_image_dataset_options),
    {0}};

/* ---- one file ---- */

/* The files of a dataset, and how they are read. */
typedef struct image_files {
  mix_image_dataset_options options; /* without memory of the caller */
  bool labelled;
  int64_t classes, count;
  const char **paths;
  int64_t *labels;
} image_files;

static void release_files(void *context) {
  image_files *files = context;
  mix_free(files->paths);
  mix_free(files->labels);
  mix_free(files);
}

static int channels_of(const mix_image_dataset_options *o) {
  return !strcmp(o->color_mode, "rgb") ? 3 : !strcmp(o->color_mode, "rgba") ? 4 : 1;
}

static mix_tensor *change_size(const char *name, mix_tensor *x, const mix_image_dataset_options *o) {
  const mix_interpolation interpolation = mix_interpolation_named(o->interpolation);
  const mix_shape shape = mix_tensor_shape(x);
  /* Its weights would be 1 and 0. */
  if (interpolation == MIX_BILINEAR && shape.dims[1] == o->height && shape.dims[2] == o->width) return x;
  if (o->pad_to_aspect_ratio) return mix_resize_with_pad(name, x, o->height, o->width, interpolation);
  if (o->crop_to_aspect_ratio) x = mix_crop_to_aspect(x, o->height, o->width);
  return mix_resize_images(x, o->height, o->width, interpolation, false);
}

static mix_tensor *image_of(const image_files *files, int64_t index) {
  const mix_image_dataset_options *o = &files->options;
  const char *path = files->paths[index];
  mix_tensor *bytes = mix_image_load(path, channels_of(o));
  if (!bytes) return NULL;
  mix_tensor *x = change_size(path, mix_expand_dims(mix_cast(bytes, MIX_FLOAT32), 0), o);
  x = mix_from_channels_last(x, o->data_format);
  return x ? mix_squeeze(x, MIX_AXES(0)) : NULL;
}

static mix_tensor *label_of(const image_files *files, int64_t index) {
  const char *mode = files->options.label_mode;
  mix_tensor *label = mix_scalar((double)files->labels[index], MIX_INT32);
  if (!strcmp(mode, "categorical")) return mix_one_hot(label, files->classes, MIX_FLOAT32);
  if (!strcmp(mode, "binary")) return mix_expand_dims(mix_cast(label, MIX_FLOAT32), 0);
  return label;
}

/* From the number of a file. */
static mix_list *load(void *context, mix_list *element) {
  const image_files *files = context;
  int64_t index;
  if (mix_tensor_read(mix_list_get(element, 0), MIX_INT64, &index, 1) != MIX_OK) return NULL;
  mix_tensor *image = image_of(files, index);
  if (!image) return NULL;
  return files->labelled ? mix_list_of(image, label_of(files, index)) : mix_list_of(image);
}

/* ---- the index ---- */

typedef struct image_index {
  mix_names classes, paths;
  int64_t *labels;
  int64_t label_kinds; /* of the caller's labels */
} image_index;

static void release_index(image_index *index) {
  mix_names_release(&index->classes);
  mix_names_release(&index->paths);
  mix_free(index->labels);
}

static bool has(const mix_names *names, const char *name) {
  for (int64_t i = 0; i < names->count; i++)
    if (!strcmp(names->items[i], name)) return true;
  return false;
}

/* The folders of the classes: those of the caller, which must exist, or all. */
static bool find_classes(const mix_image_dataset_options *o, image_index *index) {
  if (!mix_index_folders(o->directory, &index->classes) || !o->class_names) return !mix_failed();
  for (int i = 0; i < o->class_count; i++)
    if (!o->class_names[i] || !has(&index->classes, o->class_names[i]))
      return mix_fail_value(CALL ": class_names has '%.60s', which is no folder in %s",
                            o->class_names[i] ? o->class_names[i] : "NULL", o->directory);
  index->classes.count = 0;
  for (int i = 0; i < o->class_count; i++) mix_names_add(&index->classes, o->class_names[i]);
  return !mix_failed();
}

static bool find_inferred(const mix_image_dataset_options *o, image_index *index) {
  if (!find_classes(o, index)) return false;
  int64_t *ends = mix_calloc((size_t)index->classes.count + 1, sizeof *ends);
  for (int64_t c = 0; ends && c < index->classes.count && !mix_failed(); c++) {
    char *folder = mix_path_join(o->directory, index->classes.items[c]);
    if (folder) mix_index_images(folder, o->follow_links, &index->paths);
    ends[c] = index->paths.count;
    mix_free(folder);
  }
  index->labels = mix_failed() ? NULL : mix_calloc((size_t)index->paths.count + 1, sizeof *index->labels);
  for (int64_t c = 0, i = 0; index->labels && c < index->classes.count; c++)
    for (; i < ends[c]; i++) index->labels[i] = c;
  mix_free(ends);
  return index->labels;
}

static int by_value(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* The caller's labels; label_kinds counts different ones. */
static bool take_labels(const mix_image_dataset_options *o, image_index *index) {
  if (o->label_count != index->paths.count)
    return mix_fail_value(CALL ": %lld labels, but %lld files in %s", (long long)o->label_count,
                          (long long)index->paths.count, o->directory);
  const size_t bytes = (size_t)o->label_count * sizeof *o->labels;
  index->labels = mix_alloc(bytes + 1);
  int64_t *sorted = index->labels ? mix_alloc(bytes + 1) : NULL;
  if (!sorted) return false;
  memcpy(index->labels, o->labels, bytes);
  memcpy(sorted, o->labels, bytes);
  qsort(sorted, (size_t)o->label_count, sizeof *sorted, by_value);
  for (int64_t i = 0; i < o->label_count; i++) index->label_kinds += !i || sorted[i] != sorted[i - 1];
  mix_free(sorted);
  return true;
}

static bool find_files(const mix_image_dataset_options *o, image_index *index) {
  if (!o->labels && !o->no_labels) return find_inferred(o, index);
  return mix_index_images(o->directory, o->follow_links, &index->paths) &&
         (!o->labels || take_labels(o, index));
}

/* Over all classes, so that a split has some of each. */
static void shuffle(image_index *index, uint64_t seed) {
  uint64_t position = 0;
  for (int64_t i = index->paths.count - 1; i > 0; i--) {
    const int64_t j = (int64_t)mix_philox_below(seed, 0, &position, (uint64_t)i + 1);
    const char *path = index->paths.items[i];
    index->paths.items[i] = index->paths.items[j];
    index->paths.items[j] = path;
    if (!index->labels) continue;
    const int64_t label = index->labels[i];
    index->labels[i] = index->labels[j];
    index->labels[j] = label;
  }
}

/* ---- datasets ---- */

static image_files *files_of(const mix_image_dataset_options *o, const image_index *index, int64_t first,
                             int64_t count) {
  image_files *files = mix_calloc(1, sizeof *files);
  if (!files) return NULL;
  files->options = *o;
  files->options.labels = NULL;
  files->options.class_names = NULL;
  files->labelled = index->labels && !o->no_labels && strcmp(o->label_mode, "none");
  files->classes = index->label_kinds ? index->label_kinds : index->classes.count;
  files->count = count;
  files->paths = mix_alloc((size_t)count * sizeof *files->paths);
  files->labels = index->labels && files->paths ? mix_alloc((size_t)count * sizeof *files->labels) : NULL;
  if (mix_failed()) return release_files(files), NULL;
  memcpy(files->paths, index->paths.items + first, (size_t)count * sizeof *files->paths);
  if (files->labels) memcpy(files->labels, index->labels + first, (size_t)count * sizeof *files->labels);
  return files;
}

static mix_dataset *dataset_of(const mix_image_dataset_options *o, const image_index *index, int64_t first,
                               int64_t count, bool shuffled, uint64_t seed) {
  const int64_t batch = o->batch_size ? o->batch_size : 32;
  mix_dataset *dataset = mix_dataset_range(0, count, 1);
  if (shuffled)
    dataset = mix_dataset_shuffle(dataset, batch > 0 ? 8 * batch : 1024,
                                  .seed = (int64_t)(seed >> 1) ? (int64_t)(seed >> 1) : MIX_INT_ZERO);
  image_files *files = dataset ? files_of(o, index, first, count) : NULL;
  if (!files) return NULL;
  mix_dataset *loaded =
      mix_dataset_map(dataset, load, .context = files, .release = release_files, .num_parallel_calls = -1);
  if (!loaded) return release_files(files), NULL;
  if (batch > 0) loaded = mix_dataset_batch(loaded, batch);
  return mix_dataset_prefetch(loaded, -1);
}

static bool check(const mix_image_dataset_options *o) {
#define REFUSE(...) return mix_fail_value(CALL ": " __VA_ARGS__), false
  const double split = o->validation_split;
  if (!o->directory) return mix_fail_type(CALL ": directory is NULL");
  if (o->labels && o->no_labels) REFUSE("both labels and no_labels were given; give one");
  if (o->class_names && (o->labels || o->no_labels))
    REFUSE("class_names is only for labels that are inferred from the folders");
  if (o->class_names && o->class_count < 1)
    REFUSE("class_count is %d; expected a positive number", o->class_count);
  if (o->label_count < 0) REFUSE("label_count is %lld; expected 0 or more", (long long)o->label_count);
  if (o->batch_size < -1)
    REFUSE("batch_size is %lld; expected a positive number, or -1", (long long)o->batch_size);
  if (split != 0 && !(split > 0 && split < 1))
    REFUSE("validation_split is %g; expected a number in (0, 1)", split);
  if ((split != 0) != (o->subset != NULL)) REFUSE("validation_split and subset go together; one is missing");
  if (split != 0 && !o->no_shuffle && !o->seed)
    REFUSE("shuffling with a validation_split needs a seed, so that the two subsets do not overlap");
  if (o->crop_to_aspect_ratio && o->pad_to_aspect_ratio)
    REFUSE("both crop_to_aspect_ratio and pad_to_aspect_ratio were given; give one");
  return true;
}

/* The parts of the index: [0, training) and the rest. */
static bool split(const mix_image_dataset_options *o, const image_index *index, int64_t *training) {
  const int64_t count = index->paths.count, held = (int64_t)(o->validation_split * (double)count);
  *training = count - held;
  if (!count) REFUSE("no image in %s; looked for .bmp, .gif, .jpeg, .jpg, .png", o->directory);
  if (o->validation_split != 0 && (!held || !*training))
    REFUSE("validation_split %g of %lld files leaves no file for %s", o->validation_split, (long long)count,
           held ? "training" : "validation");
  return true;
}

/* What the result tells about the index, in memory of the scope. */
static void describe(const image_index *index, int64_t first, int64_t count, mix_image_dataset *result) {
  const size_t classes = (size_t)index->classes.count;
  const char **names = mix_scoped_memory((classes + 1) * sizeof *names),
             **paths = mix_scoped_memory((size_t)(count + 1) * sizeof *paths);
  if (!names || !paths) return;
  if (classes) memcpy(names, index->classes.items, classes * sizeof *names);
  memcpy(paths, index->paths.items + first, (size_t)count * sizeof *paths);
  result->class_count = (int)classes;
  result->class_names = names;
  result->file_count = count;
  result->file_paths = paths;
}

static bool make(const mix_image_dataset_options *o, image_index *index, mix_image_dataset *result) {
  const uint64_t seed = o->seed ? o->seed : mix_next_seed();
  const bool held = o->subset && !strcmp(o->subset, "validation"),
             both = o->subset && !strcmp(o->subset, "both");
  int64_t training;
  if (!find_files(o, index) || !split(o, index, &training)) return false;
  if (!strcmp(o->label_mode, "binary") && index->labels &&
      (index->label_kinds ? index->label_kinds : index->classes.count) != 2)
    REFUSE("label_mode 'binary' needs two classes; there are %lld",
           (long long)(index->label_kinds ? index->label_kinds : index->classes.count));
  if (!o->no_shuffle) shuffle(index, seed);
  const int64_t first = held ? training : 0, count = held ? index->paths.count - training : training;
  result->dataset = dataset_of(o, index, first, count, !o->no_shuffle, seed);
  if (both) result->validation = dataset_of(o, index, training, index->paths.count - training, false, seed);
  describe(index, first, count, result);
  return !mix_failed();
}

mix_image_dataset mix_image_dataset_from_directory_with(const mix_image_dataset_options *given) {
  mix_image_dataset result = {NULL};
  mix_image_dataset_options options;
  if (!mix_options_copy(&options, sizeof options, given, CALL)) return result;
  const mix_fields kinds = {.rows = fields, .call = CALL, .rules = &mix_semantics_tf_keras};
  image_index index = {{NULL}};
  if (!check(&options) || !mix_fields_resolve(&kinds, &options) || !make(&options, &index, &result))
    result = (mix_image_dataset){NULL};
  release_index(&index);
  return result;
}
