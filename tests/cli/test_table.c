/* Tables of the program: what train keeps of the columns and where they follow the model, what evaluate,
 * predict and validation make of other tables by it, which commands take them, and what is refused. */
#include "cli/program.h"

#include <unistd.h>

enum { ROWS = 48 };

static const char *colour_of(int row) {
  static const char *const colours[] = {"green", "blue, dark", "red"};
  return colours[row % 3];
}
static const char *side_of(int row) {
  static const char *const sides[] = {"top", "right", "left", "bottom"};
  return sides[row % 4];
}

/* The rows that `of` divides; `label` as the last column, or without it. */
static const char *write_table(const char *name, int of, bool label) {
  FILE *file = fopen(in_folder(name), "w");
  assert_non_null(file);
  fprintf(file,
          "\xef\xbb\xbf"
          "size,colour%s\r\n",
          label ? ",side" : "");
  for (int i = 0; i < ROWS; i++)
    if (i % of == 0)
      fprintf(file, "%d,\"%s\"%s%s\r\n", i % 7, colour_of(i), label ? "," : "", label ? side_of(i) : "");
  assert_int_equal(fclose(file), 0);
  return in_folder(name);
}

#define TRAIN "train", "--data", in_folder("train.csv"), "--label", "side", "--units", "4", "--verbose", "0"

static int setup(void **state) {
  if (folder_begin(state)) return -1;
  setenv("MIXTAPE_OFFLINE", "1", 1);
  write_table("train.csv", 1, true);
  write_table("other.csv", 4, true);  /* all of one side */
  write_table("plain.csv", 6, false); /* of one colour */
  return 0;
}

/* Lines of the latest run's output. */
static int lines_of_output(char lines[ROWS][32]) {
  int count = 0;
  for (const char *at = program_out; *at; at += strcspn(at, "\n") + 1) {
    assert_true(count < ROWS && strcspn(at, "\n") < 32);
    snprintf(lines[count++], 32, "%.*s", (int)strcspn(at, "\n"), at);
  }
  return count;
}

/* Other tables, by themselves, would number their words in another way. */
static void compare_predictions(const char *option, const char *file, const char *extra) {
  char all[ROWS][32], some[ROWS][32];
  assert_code(run_program("predict", option, file, extra, "4", "--data", in_folder("train.csv")), 0);
  assert_int_equal(lines_of_output(all), ROWS);
  int right = 0;
  for (int i = 0; i < ROWS; i++) right += !strcmp(all[i], side_of(i));
  assert_code(run_program("evaluate", option, file, extra, "4", "--data", in_folder("train.csv"), "--json"),
              0);
  json_t *object = printed_object();
  const double accuracy = number_in(json_object_get(json_object_get(object, "test"), "accuracy"));
  json_decref(object);
  assert_int_equal((int)lround(accuracy * ROWS), right);
  const char *const others[] = {"other.csv", "plain.csv"};
  for (int t = 0; t < 2; t++) {
    const int of = t ? 6 : 4;
    assert_code(run_program("predict", option, file, extra, "4", "--data", in_folder(others[t])), 0);
    assert_int_equal(lines_of_output(some), ROWS / of);
    for (int i = 0; i < ROWS / of; i++) assert_string_equal(some[i], all[i * of]);
  }
}

static void other_tables_have_the_words_of_the_first(void **state) {
  (void)state;
  assert_code(run_program(TRAIN, "--epochs", "30", "--save", in_folder("m.keras")), 0);
  assert_has(program_err, "data: ");
  compare_predictions("--model", in_folder("m.keras"), "--batch-size");
  assert_code(run_program(TRAIN, "--epochs", "30", "--save", in_folder("m.npz")), 0);
  compare_predictions("--init-weights", in_folder("m.npz"), "--units");
  static char text[4096];
  read_text(in_folder("m.keras.columns.json"), text, sizeof text);
  assert_has(text, "blue, dark");
  /* training goes on by the same columns; --columns names them */
  assert_code(run_program("train", "--data", in_folder("other.csv"), "--model", in_folder("m.keras"),
                          "--verbose", "0"),
              0);
  assert_code(rename(in_folder("m.keras.columns.json"), in_folder("c.json")), 0);
  assert_code(run_program("predict", "--model", in_folder("m.keras"), "--data", in_folder("plain.csv")), 1);
  assert_has(program_err, "column 'colour' holds words");
  assert_has(program_err, "--columns FILE.json");
  assert_code(run_program("evaluate", "--model", in_folder("m.keras"), "--data", in_folder("other.csv")), 1);
  assert_has(program_err, "--label COLUMN is missing");
  assert_code(run_program("predict", "--model", in_folder("m.keras"), "--data", in_folder("plain.csv"),
                          "--columns", in_folder("c.json")),
              0);
}

/* A label that is named again is the one that the model learned; another means other columns. */
static void the_same_label_keeps_the_columns(void **state) {
  (void)state;
  static char first[4096], again[4096];
  assert_code(run_program(TRAIN, "--save", in_folder("s.keras")), 0);
#define SAVED "--model", in_folder("s.keras"), "--data", in_folder("other.csv")
  assert_code(run_program("evaluate", SAVED, "--label", "side"), 0);
  assert_code(run_program("predict", SAVED, "--label", "side"), 0);
  assert_code(run_program("train", SAVED, "--label", "side", "--save", in_folder("again.keras")), 0);
  read_text(in_folder("s.keras.columns.json"), first, sizeof first);
  read_text(in_folder("again.keras.columns.json"), again, sizeof again);
  assert_has(again, "left");
  assert_string_equal(strstr(first, "\"label\""), strstr(again, "\"label\""));
  assert_code(run_program("evaluate", SAVED, "--label", "colour"), 1);
  assert_has(program_err, "column 'colour' holds words");
  assert_code(run_program("evaluate", SAVED, "--label", "side", "--features", "size,colour"), 1);
  assert_has(program_err, "holds words");
}

static void every_command_of_data_takes_tables(void **state) {
  (void)state;
  static const char *const commands[] = {"train", "numerics", "tune-precision"};
  for (int i = 0; i < 3; i++)
    assert_code(run_program(commands[i], "--data", in_folder("train.csv"), "--label", "side", "--units", "4",
                            "--steps", "2"),
                0);
  assert_code(run_program(TRAIN, "--loop", "custom", "--policy", "mixed_bfloat16"), 0);
  assert_code(run_program("compile", "--data", in_folder("train.csv"), "--target", "h100"), 2);
  assert_has(program_err, "--label COLUMN is missing");
  for (int i = 0; i < 2; i++) {
    assert_code(run_program(i ? "summary" : "bench", "--data", in_folder("train.csv")), 2);
    assert_has(program_err, "unknown option '--data'");
  }
}

/* A label of numbers, for a model of a file that is not a classifier. */
static void numbers_are_learned(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model = mix_sequential(mix_list_of(mix_dense(1)));
    mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, 1));
    mix_model_compile(model, .loss = "mse");
    mix_model_save(model, in_folder("line.keras"));
    if (mix_error()) fail_msg("%s", mix_error_message());
  }
  write_in_folder("/line.csv", "x,y,id\n1,2.5,a\n2,NA,b\n,3,c\n4,5,d\n");
#define LINE "--model", in_folder("line.keras"), "--data", in_folder("line.csv")
  assert_code(run_program("train", LINE, "--label", "y", "--features", "x"), 1);
  assert_has(program_err, "line.csv, line 3, column 'y': 'NA' is a missing value");
  assert_code(run_program("train", LINE, "--label", "y", "--features", "x", "--missing", "drop", "--save",
                          in_folder("line2.keras"), "--json", "--verbose", "0"),
              0);
  json_t *object = printed_object();
  assert_true(
      isfinite(number_in(json_array_get(json_object_get(json_object_get(object, "history"), "loss"), 0))));
  json_decref(object);
  /* what is kept says which column is x, and that rows are dropped, unless an option says otherwise */
  static const struct {
    const char *missing;
    int rows;
  } cases[] = {{"drop", 3}, {"mean", 4}, {"7", 4}};
  for (int i = 0; i < 3; i++)
    MIX_SCOPE {
      assert_code(run_program("predict", "--model", in_folder("line2.keras"), "--data", in_folder("line.csv"),
                              "--output", in_folder("y.npy"), "--missing", cases[i].missing),
                  0);
      mix_tensor *y = mix_npy_load(in_folder("y.npy"));
      assert_true(mix_shape_equal(mix_tensor_shape(y), MIX_SHAPE(cases[i].rows, 1)));
    }
  assert_code(run_program("train", LINE, "--label", "y", "--missing", "drop"), 1);
  assert_has(program_err, "the table's features is (2, 2); expected examples for input 1 of 1");
}

static void unknown_words(void **state) {
  (void)state;
  assert_code(run_program(TRAIN, "--save", in_folder("u.keras")), 0);
  write_in_folder("/new.csv", "colour,size\nred,1\nviolet,2\n");
  assert_code(run_program("predict", "--model", in_folder("u.keras"), "--data", in_folder("new.csv")), 1);
  assert_has(program_err, "new.csv, line 3, column 'colour': 'violet' is none of the column's words");
  assert_code(run_program("predict", "--model", in_folder("u.keras"), "--data", in_folder("new.csv"),
                          "--unknown", "index"),
              0);
}

/* ---- validation ---- */

static void a_table_to_validate_on(void **state) {
  (void)state;
  static const char *const loops[] = {"fit", "custom"};
  for (int i = 0; i < 2; i++) {
    double losses[2][2];
    /* the same rows as a part of the training data, which are split before they are shuffled */
    for (int own = 0; own < 2; own++) {
      FILE *file = fopen(in_folder("both.csv"), "w");
      fputs("size,colour,side\n", file);
      for (int r = 0; r < (own ? 32 : ROWS); r++)
        fprintf(file, "%d,\"%s\",%s\n", r % 7, colour_of(r), side_of(r));
      assert_int_equal(fclose(file), 0);
      file = fopen(in_folder("last.csv"), "w");
      fputs("colour,side,size,unused\n", file);
      for (int r = 32; r < ROWS; r++) fprintf(file, "\"%s\",%s,%d,x\n", colour_of(r), side_of(r), r % 7);
      assert_int_equal(fclose(file), 0);
      assert_code(run_program("train", "--data", in_folder("both.csv"), "--label", "side", "--units", "4",
                              "--epochs", "2", "--seed", "3", "--json", "--verbose", "0", "--loop", loops[i],
                              own ? "--validation-data" : "--validation-split",
                              own ? in_folder("last.csv") : "0.33"),
                  0);
      json_t *object = printed_object(), *history = json_object_get(object, "history");
      for (int e = 0; e < 2; e++)
        losses[own][e] = number_in(json_array_get(json_object_get(history, "val_loss"), (size_t)e));
      json_decref(object);
    }
    assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
  }
  write_in_folder("/new.csv", "colour,size,side\nred,1,top\nviolet,2,top\n");
  assert_code(run_program(TRAIN, "--validation-data", in_folder("new.csv")), 1);
  assert_has(program_err, "new.csv, line 3, column 'colour': 'violet' is none of the column's words");
  assert_code(run_program(TRAIN, "--validation-data", in_folder("new.csv"), "--unknown", "index"), 0);
  write_in_folder("/new.csv", "colour,size,side\nred,1,inside\n");
  assert_code(run_program(TRAIN, "--validation-data", in_folder("new.csv"), "--unknown", "index"), 1);
  assert_has(program_err, "'inside' is none of the label's words");
  write_in_folder("/new.csv", "colour,size,side\n");
  assert_code(run_program(TRAIN, "--validation-data", in_folder("new.csv")), 1);
}

static void delimiters(void **state) {
  (void)state;
  static const char *const names[] = {";", "tab"};
  for (int i = 0; i < 2; i++) {
    write_in_folder("/d.csv", i ? "x\ty\n1\ta,b\n2\tc\n" : "x;y\n1;a,b\n2;c\n");
    assert_code(run_program("train", "--data", in_folder("d.csv"), "--label", "y", "--units", "4",
                            "--delimiter", names[i], "--validation-data", in_folder("d.csv"), "--save",
                            in_folder("d.keras")),
                0);
    assert_code(run_program("predict", "--data", in_folder("d.csv"), "--model", in_folder("d.keras"),
                            "--delimiter", names[i]),
                0);
    static char text[4096];
    read_text(in_folder("d.keras.columns.json"), text, sizeof text);
    assert_has(text, "\"a,b\"");
  }
}

/* ---- what other files of the model have beside them ---- */

static bool has_columns(const char *name) {
  char path[64];
  snprintf(path, sizeof path, "%s.columns.json", name);
  return access(in_folder(path), F_OK) == 0;
}

static void the_columns_follow_the_model(void **state) {
  (void)state;
  char callback[512];
  snprintf(callback, sizeof callback, "model_checkpoint:filepath=%s", in_folder("epoch-{epoch}.keras"));
  assert_code(run_program(TRAIN, "--epochs", "2", "--save", in_folder("f.keras"), "--callback", callback), 0);
  assert_true(has_columns("f.keras") && has_columns("epoch-1.keras") && has_columns("epoch-2.keras"));
  assert_code(run_program("convert", in_folder("f.keras"), in_folder("f.h5")), 0);
  assert_code(run_program("convert", in_folder("f.keras"), in_folder("f.npz")), 0);
  assert_code(
      run_program("convert", in_folder("f.npz"), in_folder("g.keras"), "--model", in_folder("f.keras")), 0);
  static const char *const followers[] = {"f.h5", "f.npz", "g.keras", "epoch-2.keras"};
  for (int i = 0; i < 4; i++) assert_true(has_columns(followers[i]));
  for (int i = 0; i < 4; i++)
    if (i != 1)
      assert_code(
          run_program("predict", "--model", in_folder(followers[i]), "--data", in_folder("plain.csv")), 0);
  assert_code(run_program(TRAIN, "--semantics", "keras3", "--save", in_folder("k3.keras")), 0);
  assert_code(run_program("quantize", in_folder("k3.keras"), in_folder("q.keras"), "--mode", "int8"), 0);
  assert_true(has_columns("q.keras"));
  /* a model of other data, in the same place */
  assert_code(run_program("train", "--data", "digits", "--units", "4", "--steps", "1", "--save",
                          in_folder("f.keras")),
              0);
  assert_false(has_columns("f.keras"));
  assert_code(run_program("convert", in_folder("f.keras"), in_folder("f.h5")), 0);
  assert_false(has_columns("f.h5"));
}

static void options_that_do_not_belong_together(void **state) {
  (void)state;
  static const char *const rows[][5] = {
      {"--data", "digits", "--label", "side", "--label belongs to --data FILE.csv, and the data are digits"},
      {"--data", "x.npz", "--columns", "c.json", "--columns belongs to --data FILE.csv"},
      {"--data", "x.csv", "--missing", "drop", "--label COLUMN is missing"},
      {"--data", "x.csv", "--missing", "some", "--label COLUMN is missing"},
      {"--data", "x.csv", "--unknown", "some", "--unknown: 'some' given"},
      {"--data", "x.csv", "--model", "resnet56", "resnet56 takes no table"},
      {"--data", "x.csv", "--label", "", "--label: '' given"},
      {"--data", "x.npz", "--delimiter", ";", "--delimiter belongs to --data FILE.csv"},
      {"--data", "x.npz", "--validation-data", "y.csv", "--validation-data belongs to --data FILE.csv"},
      {"--data", ".csv", "--label", "y", "--data: '.csv' given"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_code(run_program("train", rows[i][0], rows[i][1], rows[i][2], rows[i][3]), 2);
    assert_has(program_err, rows[i][4]);
  }
  assert_code(run_program(TRAIN, "--columns", "c.json"), 2);
  assert_has(program_err, "--columns c.json says which columns there are; leave --label out");
  assert_code(run_program(TRAIN, "--missing", "some"), 2);
  assert_has(program_err, "--missing: 'some' given; expected error, drop, mean or a number");
  assert_code(run_program(TRAIN, "--delimiter", "semicolon"), 2);
  assert_has(program_err, "--delimiter: 'semicolon' given; expected one character such as ;, or tab");
  assert_code(run_program(TRAIN, "--validation-data", "x.npz"), 2);
  assert_has(program_err, "--validation-data: 'x.npz' given; expected FILE.csv");
  assert_code(run_program(TRAIN, "--validation-data", "x.csv", "--validation-split", "0.5"), 2);
  assert_has(program_err, "leave one out");
  assert_code(run_program("train", "--data", in_folder("none.csv"), "--label", "y"), 1);
  assert_has(program_err, "none.csv: cannot be opened");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(other_tables_have_the_words_of_the_first),
      cmocka_unit_test(the_same_label_keeps_the_columns),
      cmocka_unit_test(every_command_of_data_takes_tables),
      cmocka_unit_test(numbers_are_learned),
      cmocka_unit_test(unknown_words),
      cmocka_unit_test(a_table_to_validate_on),
      cmocka_unit_test(delimiters),
      cmocka_unit_test(the_columns_follow_the_model),
      cmocka_unit_test(options_that_do_not_belong_together),
  };
  return cmocka_run_group_tests(tests, setup, folder_end);
}
