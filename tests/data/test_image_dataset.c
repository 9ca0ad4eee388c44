/* image_dataset_from_directory: order of files, labels, splits, sizes, those of Keras for other aspect ratios
 * (recorded/record_aspects.py), and what is refused. */
#include "formats/image_bytes.h"

#include "support/records.h"
#include <math.h>
#include <mixtape/image_dataset.h>
#include <mixtape/ops.h>

static void make_folder(const char *name) { assert_int_equal(mkdir(in_folder(name), 0777), 0); }
/* An image of 2 x 2 pixels of one colour. */
static void write_image(const char *name, int grey, bool jpeg) {
  static bytes file;
  unsigned char pixels[12];
  memset(pixels, grey, sizeof pixels);
  file.size = 0;
  if (jpeg)
    put_jpeg(&file, 2, 2, 3, pixels, false);
  else
    put_png(&file, 2, 2, 3, pixels);
  write_file(in_folder(name), file.data, file.size);
}

/* cats: 10 11 12 (in a folder) 13, dogs: 20, empty; grey says which file it is. */
static void make_tree(void) {
  const char *const folders[] = {"t", "t/cats", "t/cats/more", "t/dogs", "t/empty", "t/.hidden"};
  for (int i = 0; i < 6; i++) make_folder(folders[i]);
  write_image("t/cats/a.png", 10, false);
  write_image("t/cats/b.JPG", 11, true);
  write_image("t/cats/c.jpeg", 12, true);
  write_image("t/cats/more/a.png", 13, false);
  write_image("t/dogs/z.png", 20, false);
  write_image("t/.hidden/x.png", 99, false);
  write_file(in_folder("t/cats/notes.txt"), "x", 1);
}
static const char *tree(void) {
  static char path[600];
  snprintf(path, sizeof path, "%s", in_folder("t"));
  return path;
}

/* The grey values of all elements, of a dataset without batches, and their labels. */
static int read_greys(mix_dataset *dataset, int *greys, double *labels, int width) {
  int count = 0;
  if (!dataset) fail_msg("%s", mix_error_message());
  mix_iterator *iterator = mix_dataset_iterate(dataset);
  mix_list *element;
  while ((element = mix_iterator_next(iterator))) {
    float image;
    mix_tensor *x = mix_list_get(element, 0);
    assert_int_equal(mix_tensor_dtype(x), MIX_FLOAT32);
    assert_int_equal(mix_tensor_read(mix_slice(mix_reshape(x, MIX_SHAPE(-1)), MIX_SHAPE(0), MIX_SHAPE(1)),
                                     MIX_FLOAT32, &image, 1),
                     MIX_OK);
    greys[count] = (int)(image + 0.5f);
    if (labels) mix_tensor_read(mix_list_get(element, 1), MIX_FLOAT64, labels + width * count, width);
    count++;
  }
  if (mix_error()) fail_msg("%s", mix_error_message());
  return count;
}

static void order_and_labels(void **state) {
  (void)state;
  make_tree();
  int greys[16];
  double labels[48];
  MIX_SCOPE {
    mix_image_dataset d = mix_image_dataset_from_directory(tree(), .no_shuffle = true, .batch_size = -1,
                                                           .height = 2, .width = 2);
    assert_int_equal(read_greys(d.dataset, greys, labels, 1), 5);
    const int wanted[] = {10, 11, 12, 13, 20};
    for (int i = 0; i < 5; i++) {
      assert_int_equal(greys[i], wanted[i]);
      assert_true(labels[i] == (i == 4));
    }
    assert_int_equal(d.class_count, 3);
    assert_string_equal(d.class_names[0], "cats");
    assert_string_equal(d.class_names[2], "empty");
    assert_int_equal(d.file_count, 5);
    assert_non_null(strstr(d.file_paths[3], "t/cats/more/a.png"));
    d = mix_image_dataset_from_directory(tree(), .no_shuffle = true, .batch_size = -1,
                                         .label_mode = "categorical");
    assert_int_equal(read_greys(d.dataset, greys, labels, 3), 5);
    assert_true(labels[0] == 1 && labels[1] == 0 && labels[12] == 0 && labels[13] == 1 && labels[14] == 0);
    const char *const two[] = {"dogs", "cats"};
    d = mix_image_dataset_from_directory(tree(), .no_shuffle = true, .batch_size = -1, .label_mode = "binary",
                                         .class_names = two, .class_count = 2);
    assert_int_equal(read_greys(d.dataset, greys, labels, 1), 5);
    assert_true(greys[0] == 20 && labels[0] == 0 && labels[1] == 1);
    /* from the top, all folders, with labels of the caller or none */
    d = mix_image_dataset_from_directory(tree(), .no_labels = true, .no_shuffle = true, .batch_size = -1);
    assert_int_equal(read_greys(d.dataset, greys, NULL, 0), 6);
    assert_int_equal(greys[0], 99);
    const int64_t own[] = {7, 6, 5, 4, 3, 2};
    d = mix_image_dataset_from_directory(tree(), .labels = own, .label_count = 6, .no_shuffle = true,
                                         .batch_size = -1);
    assert_int_equal(read_greys(d.dataset, greys, labels, 1), 6);
    assert_true(labels[0] == 7 && labels[5] == 2);
  }
}

static void sizes_and_batches(void **state) {
  (void)state;
  make_tree();
  MIX_SCOPE {
    mix_image_dataset d = mix_image_dataset_from_directory(tree(), .batch_size = 2, .height = 3, .width = 5);
    mix_iterator *iterator = mix_dataset_iterate(d.dataset);
    const int64_t rows[] = {2, 2, 1};
    for (int i = 0; i < 3; i++) {
      mix_list *batch = mix_iterator_next(iterator);
      assert_true(mix_shape_equal(mix_tensor_shape(mix_list_get(batch, 0)), MIX_SHAPE(rows[i], 3, 5, 3)));
      assert_true(mix_shape_equal(mix_tensor_shape(mix_list_get(batch, 1)), MIX_SHAPE(rows[i])));
      assert_int_equal(mix_tensor_dtype(mix_list_get(batch, 1)), MIX_INT32);
    }
    assert_null(mix_iterator_next(iterator));
    d = mix_image_dataset_from_directory(tree(), .color_mode = "grayscale", .data_format = "channels_first",
                                         .crop_to_aspect_ratio = true, .interpolation = "area",
                                         .label_mode = "none");
    mix_list *batch = mix_iterator_next(mix_dataset_iterate(d.dataset));
    assert_int_equal(mix_list_count(batch), 1);
    assert_true(mix_shape_equal(mix_tensor_shape(mix_list_get(batch, 0)), MIX_SHAPE(5, 1, 256, 256)));
  }
}

/* ---- recorded aspect ratios ---- */

enum { MAX_PIXELS = 4096 };

static int64_t number_at(const json_t *object, const char *key, size_t index) {
  return json_integer_value(json_array_get(json_object_get(object, key), index));
}

/* The image of record_aspects.py, alone in a folder. */
static void write_pattern(int height, int width) {
  static bytes file;
  unsigned char pixels[MAX_PIXELS];
  assert_true(height * width <= MAX_PIXELS);
  for (int i = 0; i < height * width; i++) {
    const int y = i / width, x = i % width;
    pixels[i] = (unsigned char)(y * 31 + x * 17 + y * x % 13);
  }
  file.size = 0;
  put_png(&file, height, width, 1, pixels);
  write_file(in_folder("t/pattern.png"), file.data, file.size);
}

/* Of values up to 255. Along each of two axes TensorFlow rounds to float32 a weight (7 times), a product and
 * the sums of the longest filter, lanczos3 (6), whose weights have magnitudes of 1.6 together. Each time it
 * rounds by a share of 2^-24: 2 * 14 * 1.6^2 of them are 36 * 2^-23. */
#define SUMS (36 * 255 * 0x1p-23)

static void expect_values(mix_tensor *image, mix_shape shape, const json_t *values, double bound,
                          const char *what) {
  static float got[MAX_PIXELS];
  const int count = (int)mix_shape_size(shape);
  assert_true(mix_shape_equal(mix_tensor_shape(image), shape));
  assert_int_equal(json_array_size(values), count);
  assert_int_equal(mix_tensor_read(image, MIX_FLOAT32, got, count), MIX_OK);
  for (int i = 0; i < count; i++) {
    const double wanted = json_number_value(json_array_get(values, (size_t)i));
    if (!(fabs(got[i] - wanted) <= bound))
      fail_msg("%s: pixel %d is %.9g, expected %.9g", what, i, got[i], wanted);
  }
}

static void compare_aspect(const json_t *record) {
  const char *interpolation = json_string_value(json_object_get(record, "interpolation")),
             *option = json_string_value(json_object_get(record, "option"));
  const json_t *values = json_object_get(record, "values");
  const int64_t height = number_at(record, "size", 0), width = number_at(record, "size", 1);
  char what[100];
  write_pattern((int)number_at(record, "image", 0), (int)number_at(record, "image", 1));
  snprintf(what, sizeof what, "%s from %d x %d to %d x %d", option, (int)number_at(record, "image", 0),
           (int)number_at(record, "image", 1), (int)height, (int)width);
  mix_image_dataset d = mix_image_dataset_from_directory(
      tree(), .no_labels = true, .no_shuffle = true, .batch_size = -1, .color_mode = "grayscale",
      .height = height, .width = width, .interpolation = interpolation,
      .pad_to_aspect_ratio = !strcmp(option, "pad"), .crop_to_aspect_ratio = !strcmp(option, "crop"));
  mix_list *element = mix_iterator_next(mix_dataset_iterate(d.dataset));
  if (json_is_null(values)) {
    assert_null(element);
    assert_failed(MIX_VALUE_ERROR, "t/pattern.png: 2 x 1 pixels, padded to the aspect ratio, leave none");
    return;
  }
  if (!element) fail_msg("%s: %s", what, mix_error_message());
  const double bound = strcmp(interpolation, "nearest") ? SUMS : 0; /* copies */
  expect_values(mix_list_get(element, 0), MIX_SHAPE(height, width, 1), values, bound, what);
}

static void aspect_ratios_are_those_of_keras(void **state) {
  (void)state;
  make_folder("t");
  json_t *records = load_records("data/recorded/aspects.json", 15);
  for (size_t i = 0; i < json_array_size(records); i++)
    MIX_SCOPE { compare_aspect(json_array_get(records, i)); }
  json_decref(records);
}

static void shuffling_and_splits(void **state) {
  (void)state;
  make_folder("t");
  make_folder("t/one");
  for (int i = 0; i < 20; i++) {
    char name[40];
    snprintf(name, sizeof name, "t/one/%02d.png", i);
    write_image(name, i, false);
  }
  int a[32], b[32], c[32];
  MIX_SCOPE {
#define SPLIT(part)                                                                                          \
  mix_image_dataset_from_directory(tree(), .batch_size = -1, .height = 2, .width = 2, .seed = 3,             \
                                   .validation_split = 0.3, .subset = part)
    mix_image_dataset training = SPLIT("training"), held = SPLIT("validation"), both = SPLIT("both");
    assert_int_equal(read_greys(training.dataset, a, NULL, 0), 14);
    assert_int_equal(read_greys(held.dataset, b, NULL, 0), 6);
    int seen[20] = {0};
    for (int i = 0; i < 14; i++) seen[a[i]]++;
    for (int i = 0; i < 6; i++) seen[b[i]]++;
    for (int i = 0; i < 20; i++) assert_int_equal(seen[i], 1);
    assert_int_equal(read_greys(both.dataset, c, NULL, 0), 14);
    assert_memory_equal(a, c, 14 * sizeof *a);
    assert_int_equal(read_greys(both.validation, c, NULL, 0), 6);
    int sum = 0;
    for (int i = 0; i < 6; i++) sum += b[i] - c[i];
    assert_int_equal(sum, 0);
    /* another order in the second pass, of the same files */
    assert_int_equal(read_greys(training.dataset, c, NULL, 0), 14);
    assert_true(memcmp(a, c, 14 * sizeof *a) != 0);
    /* without shuffling the last files are for validation */
    mix_image_dataset last =
        mix_image_dataset_from_directory(tree(), .batch_size = -1, .height = 2, .width = 2,
                                         .no_shuffle = true, .validation_split = 0.1, .subset = "validation");
    assert_int_equal(read_greys(last.dataset, a, NULL, 0), 2);
    assert_true(a[0] == 18 && a[1] == 19);
  }
}

static void a_damaged_file_is_named(void **state) {
  (void)state;
  make_tree();
  write_file(in_folder("t/dogs/broken.png"), "\x89PNG\r\n\x1a\n", 8);
  MIX_SCOPE {
    mix_image_dataset d = mix_image_dataset_from_directory(tree(), .no_shuffle = true, .batch_size = -1);
    mix_iterator *iterator = mix_dataset_iterate(d.dataset);
    for (int i = 0; i < 4; i++) assert_non_null(mix_iterator_next(iterator));
    assert_null(mix_iterator_next(iterator));
    assert_non_null(strstr(mix_error_message(), " (element 4 of dataset_map)"));
    assert_failed(MIX_FORMAT_ERROR, "t/dogs/broken.png");
  }
}

static void bad_options(void **state) {
  (void)state;
  make_tree();
#define BAD(mentions, ...)                                                                                   \
  MIX_SCOPE {                                                                                                \
    assert_null(mix_image_dataset_from_directory(tree(), __VA_ARGS__).dataset);                              \
    assert_failed(MIX_VALUE_ERROR, mentions);                                                                \
  }
  const char *const unknown[] = {"birds"};
  const int64_t labels[] = {1, 2};
  BAD("label_mode 'multi'", .label_mode = "multi")
  BAD("color_mode 'hsv'", .color_mode = "hsv")
  BAD("interpolation 'cubic'", .interpolation = "cubic")
  BAD("subset 'test'", .subset = "test", .validation_split = 0.5, .seed = 1)
  BAD("validation_split is 1.5", .validation_split = 1.5, .subset = "training", .seed = 1)
  BAD("go together", .validation_split = 0.5)
  BAD("go together", .subset = "training")
  BAD("needs a seed", .validation_split = 0.5, .subset = "training")
  BAD("leaves no file", .validation_split = 0.01, .subset = "training", .seed = 1)
  BAD("'birds'", .class_names = unknown, .class_count = 1)
  BAD("two classes", .label_mode = "binary")
  BAD("2 labels, but 6 files", .labels = labels, .label_count = 2)
  BAD("class_names", .class_names = unknown, .class_count = 1, .no_labels = true)
  BAD("batch_size", .batch_size = -2)
  BAD("height", .height = -1)
  BAD("aspect_ratio", .crop_to_aspect_ratio = true, .pad_to_aspect_ratio = true)
  MIX_SCOPE { assert_null(mix_image_dataset_from_directory(in_folder("t/empty")).dataset); }
  assert_failed(MIX_VALUE_ERROR, "no image in");
  MIX_SCOPE { assert_null(mix_image_dataset_from_directory(in_folder("none")).dataset); }
  assert_failed(MIX_IO_ERROR, "cannot read the folder");
  MIX_SCOPE { assert_null(mix_image_dataset_from_directory(NULL).dataset); }
  assert_failed(MIX_TYPE_ERROR, "directory");
}

int main(void) {
  const struct CMUnitTest tests[] = {FOLDER_TEST(order_and_labels),
                                     FOLDER_TEST(sizes_and_batches),
                                     FOLDER_TEST(aspect_ratios_are_those_of_keras),
                                     FOLDER_TEST(shuffling_and_splits),
                                     FOLDER_TEST(a_damaged_file_is_named),
                                     FOLDER_TEST(bad_options)};
  return cmocka_run_group_tests_name("data/image_dataset", tests, NULL, NULL);
}
