/* Tables: numbers and words, missing values, unknown words, the columns in a file, and data sets that read
 * the file anew in each pass. Values are small integers, or quarters of them: all results are exact. */
#include "data/support.h"

#include "base/alloc.h"
#include <mixtape/csv.h>
#include <mixtape/layers.h>
#include <mixtape/model.h>
#include <mixtape/ops.h>

/* A file of that text; the path is valid until the fourth call from here. */
static const char *table(const char *name, const char *text) {
  static char paths[4][512];
  static int next;
  next = (next + 1) % 4;
  snprintf(paths[next], sizeof paths[next], "%s", in_folder(name));
  write_file(paths[next], text, strlen(text));
  return paths[next];
}

static void assert_values(mix_tensor *tensor, mix_dtype dtype, int count, const double *values) {
  double got[64];
  if (!tensor) fail_msg("%s", mix_error_message());
  assert_int_equal(mix_tensor_dtype(tensor), dtype);
  assert_int_equal(mix_tensor_read(tensor, MIX_FLOAT64, got, (size_t)count), MIX_OK);
  for (int i = 0; i < count; i++)
    if (got[i] != values[i]) fail_msg("value %d is %g, expected %g", i, got[i], values[i]);
}
#define VALUES(...)                                                                                          \
  (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (const double[]) { __VA_ARGS__ }

static const char flowers[] = "length,colour,kind\n"
                              "1.5,red,rose\n"
                              "2,\"blue\",\"iris, wild\"\n"
                              "-3e0,red,daisy\n"
                              "4,green,rose\n";

static void numbers_words_and_label(void **state) {
  (void)state;
  const char *path = table("t.csv", flowers);
  MIX_SCOPE {
    mix_csv_table t = mix_csv_load(path, .label = "kind");
    assert_values(t.x, MIX_FLOAT32, VALUES(1.5, 2, 2, 0, -3, 2, 4, 1));
    assert_true(mix_shape_equal(mix_tensor_shape(t.x), MIX_SHAPE(4, 2)));
    assert_values(t.y, MIX_INT64, VALUES(2, 1, 0, 2));
    assert_true(mix_shape_equal(mix_tensor_shape(t.y), MIX_SHAPE(4)));
    assert_int_equal(t.rows, 4);
    assert_null(t.dataset);
    assert_int_equal(mix_csv_columns_count(t.columns), 2);
    assert_string_equal(mix_csv_columns_name(t.columns, 1), "colour");
    assert_string_equal(mix_csv_columns_name(t.columns, -1), "kind");
    assert_int_equal(mix_csv_columns_word_count(t.columns, 0), 0);
    assert_int_equal(mix_csv_columns_word_count(t.columns, -1), 3);
    assert_string_equal(mix_csv_columns_word(t.columns, -1, 1), "iris, wild");
    t = mix_csv_load(path, "length", "kind,length"); /* the label is a feature */
    assert_failed(MIX_VALUE_ERROR, "is the label and a feature");
    t = mix_csv_load(path, "length", "kind, \"colour\"");
    assert_values(t.x, MIX_FLOAT32, VALUES(2, 2, 1, 0, 0, 2, 2, 1));
    assert_values(t.y, MIX_FLOAT32, VALUES(1.5, 2, -3, 4));
    t = mix_csv_load(path);
    assert_true(mix_shape_equal(mix_tensor_shape(t.x), MIX_SHAPE(4, 3)));
    assert_null(t.y);
    assert_null(mix_csv_columns_name(t.columns, -1));
    assert_int_equal(mix_error(), MIX_OK);
  }
}

static void other_forms_of_tables(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_csv_table t =
        mix_csv_load(table("a", "7;01067\n8;50667\n"), .no_header = true, .delimiter = ";", .words = "2");
    assert_values(t.x, MIX_FLOAT32, VALUES(7, 0, 8, 1));
    assert_string_equal(mix_csv_columns_word(t.columns, 1, 0), "01067");
    t = mix_csv_load(table("b", "\xef\xbb\xbf"
                                "n\r\n1\r\n\r\n2\r\n"));
    assert_values(t.x, MIX_FLOAT32, VALUES(1, 2));
    assert_string_equal(mix_csv_columns_name(t.columns, 0), "n");
  }
}

static void missing_values(void **state) {
  (void)state;
  const char *path = table("t.csv", "a,b,y\n,x,1\n2,NA,2\n4,z,3\n");
  MIX_SCOPE {
    mix_csv_load(path, .label = "y");
    assert_failed(MIX_VALUE_ERROR, "t.csv, line 2, column 'a': '' is a missing value");
    mix_csv_table t = mix_csv_load(path, .label = "y", .missing = "drop");
    assert_values(t.x, MIX_FLOAT32, VALUES(4, 0));
    assert_values(t.y, MIX_FLOAT32, VALUES(3));
    t = mix_csv_load(path, .label = "y", .missing = "mean");
    assert_values(t.x, MIX_FLOAT32, VALUES(3, 1, 2, 0, 4, 2));
    assert_string_equal(mix_csv_columns_word(t.columns, 1, 0), "");
    t = mix_csv_load(path, .label = "y", .missing = "-1.5");
    assert_values(t.x, MIX_FLOAT32, VALUES(-1.5, 1, 2, 0, 4, 2));
    path = table("t.csv", "a,y\n1,\n2,1\n");
    mix_csv_load(path, .label = "y", .missing = "mean");
    assert_failed(MIX_VALUE_ERROR, "line 2, column 'y': '' is a missing label");
    t = mix_csv_load(path, .label = "y", .missing = "drop");
    assert_values(t.x, MIX_FLOAT32, VALUES(2));
    mix_csv_load(table("t.csv", "a,b\nNA,1\n"), .missing = "mean");
    assert_failed(MIX_VALUE_ERROR, "column 'a' has no value");
    /* a column of words that begins without one */
    t = mix_csv_load(table("t.csv", "a,b\n,1\nw,2\n"), .missing = "0");
    assert_values(t.x, MIX_FLOAT32, VALUES(0, 1, 1, 2));
  }
}

/* Another table by the columns of the first, also from their file. */
static void columns_of_another_table(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_csv_columns *columns =
        mix_csv_load(table("a", "n,w,y\n1,b,no\n3,a,yes\n,a,no\n"), .label = "y", .missing = "mean").columns;
    assert_int_equal(mix_csv_columns_save(columns, in_folder("c.json")), MIX_OK);
    mix_csv_columns *read = mix_csv_columns_load(in_folder("c.json"));
    if (!read) fail_msg("%s", mix_error_message());
    const char *other = table("b", "w,extra,y,n\nb,?,yes,\na,?,yes,8\n");
    mix_csv_columns *const both[] = {columns, read};
    for (int i = 0; i < 2; i++) {
      mix_csv_table t = mix_csv_load(other, .columns = both[i]);
      assert_values(t.x, MIX_FLOAT32, VALUES(2, 1, 8, 0));
      assert_values(t.y, MIX_INT64, VALUES(1, 1));
      t = mix_csv_load(table("c", "n,w\n5,a\n"), .columns = both[i], .no_label = true);
      assert_values(t.x, MIX_FLOAT32, VALUES(5, 0));
      assert_null(t.y);
      mix_csv_load(table("c", "n,w\n5,new\n"), .columns = both[i], .no_label = true);
      assert_failed(MIX_VALUE_ERROR, "c, line 2, column 'w': 'new' is none of the column's words");
      t = mix_csv_load(in_folder("c"), .columns = both[i], .no_label = true, .unknown = "index");
      assert_values(t.x, MIX_FLOAT32, VALUES(5, 2));
      mix_csv_load(table("c", "n,w,y\n5,a,maybe\n"), .columns = both[i], .unknown = "index");
      assert_failed(MIX_VALUE_ERROR, "column 'y': 'maybe' is none of the label's words");
      mix_csv_load(in_folder("c"), .columns = both[i], .label = "y");
      assert_failed(MIX_VALUE_ERROR, "columns says which; leave label out");
    }
    mix_csv_columns *filled =
        mix_csv_load(table("a", "n\n1\n"), .missing = "0.1", .unknown = "index").columns;
    mix_csv_columns_save(filled, in_folder("f.json"));
    mix_csv_table t =
        mix_csv_load(table("b", "n\nnull\n"), .columns = mix_csv_columns_load(in_folder("f.json")));
    assert_values(t.x, MIX_FLOAT32, VALUES((float)0.1));
  }
}

static void bad_tables_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *label, *features, *words;
    mix_status status;
    const char *message;
  } cases[] = {
      {"", NULL, NULL, NULL, MIX_FORMAT_ERROR, "t.csv: the file is empty"},
      {"a,b\n", NULL, NULL, NULL, MIX_VALUE_ERROR, "no rows in"},
      {"a,b\n1,2\n1,2,3\n", NULL, NULL, NULL, MIX_FORMAT_ERROR,
       "t.csv, line 3: 3 fields, and the first line has 2"},
      {"a,b\n1\n", NULL, NULL, NULL, MIX_FORMAT_ERROR, "line 2: 1 fields"},
      {"a,b\n1,2\n", "c", NULL, NULL, MIX_VALUE_ERROR, "t.csv: no column 'c'; the columns are a, b"},
      {"a,b\n1,2\n", NULL, "a,c", NULL, MIX_VALUE_ERROR, "no column 'c'"},
      {"a,b\n1,2\n", NULL, "a,\"b", NULL, MIX_FORMAT_ERROR, "features, line 1, field 2"},
      {"a,b\n1,2\n", NULL, "", NULL, MIX_VALUE_ERROR, "features: '' has no names"},
      {"a,b\n1,2\n", NULL, "a", "b", MIX_VALUE_ERROR, "words has 'b'"},
      {"a,b\n1,2\n", "a", "a,b", NULL, MIX_VALUE_ERROR, "is the label and a feature"},
      {"a\n1\n", "a", NULL, NULL, MIX_VALUE_ERROR, "there are no features beside 'a'"},
      {",a\n0,1\n", NULL, NULL, NULL, MIX_VALUE_ERROR, "a column has no name"},
      {"a,a\n0,1\n", NULL, NULL, NULL, MIX_VALUE_ERROR, "several columns are called 'a'"},
      {"a,b\n1,2\n3,x\n", NULL, NULL, NULL, MIX_VALUE_ERROR,
       "t.csv, line 3, column 'b': 'x' is no finite float32"},
      {"a\n1\ninf\n", NULL, NULL, NULL, MIX_VALUE_ERROR, "line 3, column 'a': 'inf'"},
      {"a\n1\n1e39\n", NULL, NULL, NULL, MIX_VALUE_ERROR, "'1e39'"},
      {"a\n1\n1 2\n", NULL, NULL, NULL, MIX_VALUE_ERROR, "'1 2'"},
      {"a,b\n1,2\n\"\n3\n4\",\"5\"\n", NULL, NULL, NULL, MIX_VALUE_ERROR, "line 3, column 'a'"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    MIX_SCOPE {
      const char *path = table("t.csv", cases[i].text);
      mix_csv_table t = mix_csv_load(path, cases[i].label, cases[i].features, .words = cases[i].words);
      assert_null(t.x);
      assert_null(t.columns);
      assert_failed(cases[i].status, cases[i].message);
    }
}

static void bad_arguments_are_refused(void **state) {
  (void)state;
  const char *path = table("t.csv", "a,b\n1,w\n");
#define REFUSED(status, message, ...)                                                                        \
  do {                                                                                                       \
    assert_null(mix_csv_dataset(__VA_ARGS__).dataset);                                                       \
    assert_failed(status, message);                                                                          \
  } while (0)
  MIX_SCOPE {
    REFUSED(MIX_TYPE_ERROR, "path is NULL", NULL, "b");
    REFUSED(MIX_IO_ERROR, "none.csv", in_folder("none.csv"));
    REFUSED(MIX_VALUE_ERROR, "missing is 'men'", path, .missing = "men");
    REFUSED(MIX_VALUE_ERROR, "missing is 'inf'", path, .missing = "inf");
    REFUSED(MIX_VALUE_ERROR, "missing is ''", path, .missing = "");
    REFUSED(MIX_VALUE_ERROR, "unknown is 'x'", path, .unknown = "x");
    REFUSED(MIX_VALUE_ERROR, "delimiter is '::'", path, .delimiter = "::");
    REFUSED(MIX_VALUE_ERROR, "delimiter is '\"'", path, .delimiter = "\"");
    REFUSED(MIX_VALUE_ERROR, "no_label goes with columns", path, .no_label = true);
    REFUSED(MIX_VALUE_ERROR, "batch_size is -1", path, .batch_size = -1);
    REFUSED(MIX_VALUE_ERROR, "shuffle_buffer is -2", path, .shuffle_buffer = -2);
    REFUSED(MIX_TYPE_ERROR, "columns of a table", path, .columns = (void *)mix_list_new(0, NULL));
    mix_csv_columns *columns = mix_csv_load(path, "b").columns;
    assert_null(mix_csv_columns_name(columns, 1));
    assert_failed(MIX_VALUE_ERROR, "column 1 of 1 features; -1 is the label");
    assert_null(mix_csv_columns_word(columns, -1, 1));
    assert_failed(MIX_VALUE_ERROR, "word 1 of 'b', which has 1");
    assert_null(mix_csv_columns_word(columns, 0, 0));
    assert_failed(MIX_VALUE_ERROR, "word 0 of 'a', which has 0");
    assert_int_not_equal(mix_csv_columns_save(NULL, path), MIX_OK);
    assert_failed(MIX_TYPE_ERROR, NULL);
    assert_int_not_equal(mix_csv_columns_save(columns, NULL), MIX_OK);
    assert_failed(MIX_TYPE_ERROR, "path is NULL");
    assert_int_not_equal(mix_csv_columns_save(columns, in_folder("no/where")), MIX_OK);
    assert_failed(MIX_IO_ERROR, "csv_columns_save");
    assert_int_equal(mix_csv_columns_count(NULL), 0);
  }
}

static void other_files_are_no_columns(void **state) {
  (void)state;
#define GOOD "\"missing\": \"error\", \"unknown\": \"error\""
  static const char *const texts[] = {
      "",
      "[]",
      "{}",
      "{\"features\": []," GOOD "}",
      "{\"features\": [1]," GOOD "}",
      "{\"features\": [{\"name\": \"a\"}]," GOOD "}",
      "{\"features\": [{\"name\": \"a\", \"mean\": 1, \"words\": []}]," GOOD "}",
      "{\"features\": [{\"name\": 1, \"mean\": 1}]," GOOD "}",
      "{\"features\": [{\"name\": \"a\", \"mean\": 1e300}]," GOOD "}",
      "{\"features\": [{\"name\": \"a\", \"words\": [1]}]," GOOD "}",
      "{\"features\": [{\"name\": \"a\", \"words\": [\"x\", \"x\"]}]," GOOD "}",
      "{\"features\": [{\"name\": \"a\", \"mean\": 1}], \"label\": {}," GOOD "}",
      "{\"features\": [{\"name\": \"a\", \"mean\": 1}]}",
      "{\"features\": [{\"name\": \"a\", \"mean\": 1}], \"missing\": \"x\", \"unknown\": \"error\"}",
      "{\"features\": [{\"name\": \"a\", \"mean\": 1}], \"missing\": 1e99, \"unknown\": \"error\"}",
      "{\"features\": [{\"name\": \"a\", \"mean\": 1}], \"missing\": \"drop\", \"unknown\": 1}"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    assert_null(mix_csv_columns_load(table("c.json", texts[i])));
    assert_failed(MIX_FORMAT_ERROR, "c.json");
  }
  write_file(in_folder("c.json"), "{}\0{}", 5);
  assert_null(mix_csv_columns_load(in_folder("c.json")));
  assert_failed(MIX_FORMAT_ERROR, "zero byte");
  assert_null(mix_csv_columns_load(in_folder("none")));
  assert_failed(MIX_IO_ERROR, "none");
  assert_null(mix_csv_columns_load(NULL));
  assert_failed(MIX_TYPE_ERROR, "path is NULL");
}

/* Rows 0, 1, 2, ... with y = row. */
static const char *write_rows(const char *name, int rows) {
  FILE *file = fopen(in_folder(name), "w");
  fputs("a,b,y\n", file);
  for (int i = 0; i < rows; i++) fprintf(file, "%d,%s,%d\n", i, i % 2 ? "odd" : "even", i);
  fclose(file);
  return in_folder(name);
}

static void batches_of_a_file(void **state) {
  (void)state;
  const char *path = write_rows("t.csv", 10);
  MIX_SCOPE {
    mix_csv_table t = mix_csv_dataset(path, .label = "y", .batch_size = 4);
    if (!t.dataset) fail_msg("%s", mix_error_message());
    assert_null(t.x);
    assert_int_equal(t.rows, 10);
    assert_int_equal(mix_dataset_cardinality(t.dataset), 3);
    for (int pass = 0; pass < 2; pass++) {
      mix_iterator *iterator = mix_dataset_iterate(t.dataset);
      assert_values(mix_list_get(mix_iterator_next(iterator), 0), MIX_FLOAT32,
                    VALUES(0, 0, 1, 1, 2, 0, 3, 1));
      assert_values(mix_list_get(mix_iterator_next(iterator), 1), MIX_FLOAT32, VALUES(4, 5, 6, 7));
      mix_list *last = mix_iterator_next(iterator);
      assert_true(mix_shape_equal(mix_tensor_shape(mix_list_get(last, 0)), MIX_SHAPE(2, 2)));
      assert_values(mix_list_get(last, 1), MIX_FLOAT32, VALUES(8, 9));
      assert_null(mix_iterator_next(iterator));
      assert_int_equal(mix_error(), MIX_OK);
    }
    t = mix_csv_dataset(path, .columns = t.columns, .no_label = true);
    mix_list *batch = mix_iterator_next(mix_dataset_iterate(t.dataset));
    assert_int_equal(mix_list_count(batch), 1);
    assert_true(mix_shape_equal(mix_tensor_shape(mix_list_get(batch, 0)), MIX_SHAPE(10, 2)));
  }
}

/* On a machine whose memory holds no array of the whole table. */
static void files_larger_than_memory(void **state) {
  (void)state;
  enum { ROWS = 20000, LIMIT = 1 << 17 };
  const char *path = write_rows("t.csv", ROWS);
  double sum = 0;
  mix_limit_allocations(LIMIT);
  MIX_SCOPE {
    mix_csv_load(path, "y");
    assert_failed(MIX_MEMORY_ERROR, NULL);
    mix_iterator *iterator =
        mix_dataset_iterate(mix_csv_dataset(path, "y", .batch_size = 1000, .shuffle_buffer = 500).dataset);
    for (mix_list *batch; (batch = mix_iterator_next(iterator));)
      sum +=
          mix_tensor_item(mix_reduce_sum(mix_cast(mix_list_get(batch, 1), MIX_FLOAT64), MIX_ALL_AXES, false));
  }
  mix_limit_allocations(0);
  assert_int_equal(mix_error(), MIX_OK);
  assert_true(sum == (double)ROWS * (ROWS - 1) / 2);
}

/* Each row once in a pass, x beside its y, in the same order for a seed, in another one in the next pass. */
static void shuffled_rows(void **state) {
  (void)state;
  enum { ROWS = 100 };
  const char *path = write_rows("t.csv", ROWS);
  double orders[3][ROWS];
  MIX_SCOPE {
    mix_dataset *first = mix_csv_dataset(path, .label = "y", .shuffle_buffer = 30, .seed = 5).dataset,
                *again = mix_csv_dataset(path, .label = "y", .shuffle_buffer = 30, .seed = 5).dataset;
    assert_int_equal(mix_dataset_cardinality(first), 4);
    for (int pass = 0; pass < 3; pass++) {
      mix_iterator *iterator = mix_dataset_iterate(pass < 2 ? first : again);
      bool seen[ROWS] = {false};
      int row = 0;
      for (mix_list *batch; (batch = mix_iterator_next(iterator));) {
        double x[64], y[32];
        const int64_t rows = mix_tensor_shape(mix_list_get(batch, 1)).dims[0];
        mix_tensor_read(mix_list_get(batch, 0), MIX_FLOAT64, x, (size_t)(2 * rows));
        mix_tensor_read(mix_list_get(batch, 1), MIX_FLOAT64, y, (size_t)rows);
        for (int i = 0; i < rows; i++, row++) {
          assert_true(x[2 * i] == y[i] && x[2 * i + 1] == (int)y[i] % 2 && !seen[(int)y[i]]);
          seen[(int)y[i]] = true;
          orders[pass][row] = y[i];
        }
      }
      assert_int_equal(mix_error(), MIX_OK);
      assert_int_equal(row, ROWS);
    }
  }
  assert_memory_equal(orders[0], orders[2], sizeof orders[0]);
  assert_memory_not_equal(orders[0], orders[1], sizeof orders[0]);
}

static void a_file_that_changes_is_an_error_of_the_pass(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_dataset *dataset = mix_csv_dataset(write_rows("t.csv", 10), .batch_size = 4).dataset;
    write_rows("t.csv", 6);
    mix_iterator *iterator = mix_dataset_iterate(dataset);
    assert_non_null(mix_iterator_next(iterator));
    assert_null(mix_iterator_next(iterator));
    assert_failed(MIX_IO_ERROR, "t.csv: it changed while it was read");
    table("t.csv", "a,b,y\n1,new,2\n");
    assert_null(mix_iterator_next(mix_dataset_iterate(dataset)));
    assert_failed(MIX_VALUE_ERROR, "'new' is none");
    forget("t.csv");
    iterator = mix_dataset_iterate(dataset);
    if (iterator) assert_null(mix_iterator_next(iterator));
    assert_failed(MIX_IO_ERROR, "t.csv");
  }
}

/* fit takes both, and in the order of the file both give the same bits; the labels are words. */
static void a_model_learns_from_a_table(void **state) {
  (void)state;
  FILE *file = fopen(in_folder("t.csv"), "w");
  fputs("a,b,side\n", file);
  for (int i = 0; i < 64; i++) fprintf(file, "%d,%d,%s\n", i % 8 - 4, i % 3, i % 8 < 4 ? "left" : "right");
  fclose(file);
  double losses[2];
  for (int i = 0; i < 2; i++)
    MIX_SCOPE {
      mix_csv_table t = i ? mix_csv_dataset(in_folder("t.csv"), "side", .batch_size = 16)
                          : mix_csv_load(in_folder("t.csv"), "side");
      mix_set_seed(1);
      mix_model *model = mix_sequential(mix_list_of(mix_dense(2, "softmax")));
      mix_model_compile(model, .loss = "sparse_categorical_crossentropy");
      mix_history *history = mix_model_fit(model, i ? (void *)t.dataset : t.x, t.y, .batch_size = i ? 0 : 16,
                                           .epochs = 4, .no_shuffle = true, .quiet = true);
      if (!history) fail_msg("%s", mix_error_message());
      assert_int_equal(mix_history_steps(history), 16);
      losses[i] = mix_logs_get(mix_history_epoch(history, 3), "loss");
      assert_true(losses[i] < mix_logs_get(mix_history_epoch(history, 0), "loss"));
    }
  assert_true(losses[0] == losses[1]);
}

static bool read_all(const char *path) {
  bool good = false;
  MIX_SCOPE {
    mix_csv_table t = mix_csv_load(path, "kind", .words = "colour", .missing = "mean");
    if (t.columns && mix_csv_columns_save(t.columns, in_folder("c.json")) == MIX_OK) {
      mix_csv_columns *columns = mix_csv_columns_load(in_folder("c.json"));
      mix_dataset *dataset =
          columns ? mix_csv_dataset(path, .columns = columns, .shuffle_buffer = 2).dataset : NULL;
      mix_iterator *iterator = dataset ? mix_dataset_iterate(dataset) : NULL;
      good = iterator && mix_iterator_next(iterator);
    }
  }
  return good;
}

static void memory_may_run_out(void **state) {
  (void)state;
  const char *path = table("t.csv", flowers);
  bool good = false;
  for (int count = 0; !good; count++) {
    mix_inject_allocation_failure(count);
    good = read_all(path);
    mix_inject_allocation_failure(-1);
    if (!good) assert_failed(MIX_MEMORY_ERROR, NULL);
    assert_true(count < 2000);
  }
  assert_int_equal(mix_error(), MIX_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FOLDER_TEST(numbers_words_and_label),
      FOLDER_TEST(other_forms_of_tables),
      FOLDER_TEST(missing_values),
      FOLDER_TEST(columns_of_another_table),
      FOLDER_TEST(bad_tables_are_refused),
      FOLDER_TEST(bad_arguments_are_refused),
      FOLDER_TEST(other_files_are_no_columns),
      FOLDER_TEST(batches_of_a_file),
      FOLDER_TEST(files_larger_than_memory),
      FOLDER_TEST(shuffled_rows),
      FOLDER_TEST(a_file_that_changes_is_an_error_of_the_pass),
      FOLDER_TEST(a_model_learns_from_a_table),
      FOLDER_TEST(memory_may_run_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
