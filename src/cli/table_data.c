/* --data FILE.csv: tables, and the columns that a model learned from, which are kept beside its file. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "data/sources/csv_columns.h"
#include "formats/file.h"

#include <errno.h>
#include <string.h>

#define ENDING ".csv"
#define BESIDE ".columns.json"

bool cli_is_table(const char *data) {
  const size_t length = strlen(data);
  return length > strlen(ENDING) && !strcmp(data + length - strlen(ENDING), ENDING);
}

/* What an option says of the columns, so that those of a file are not meant; NULL: none. */
static const char *chosen(const cli_options *o) {
  return o->label ? "--label" : o->features ? "--features" : o->words ? "--words" : NULL;
}

static bool rules_are_known(const char *command, const cli_options *o) {
  if (mix_csv_rules_read(&(mix_csv_rules){0}, o->missing, NULL, "--missing")) return true;
  mix_error_clear();
  fprintf(stderr, "mixtape %s: --missing: '%s' given; expected error, drop, mean or a number\n", command,
          o->missing);
  return false;
}

/* "tab" is a word, for a tab is hard to type. */
static const char *delimiter_of(const cli_options *o) {
  return o->delimiter && !strcmp(o->delimiter, "tab") ? "\t" : o->delimiter;
}

static bool delimiter_is_known(const char *command, const cli_options *o) {
  const char *delimiter = delimiter_of(o);
  if (!delimiter || (strlen(delimiter) == 1 && !strchr("\"\r\n", *delimiter))) return true;
  fprintf(stderr, "mixtape %s: --delimiter: '%s' given; expected one character such as ;, or tab\n", command,
          o->delimiter);
  return false;
}

/* Tables are validated on tables, and on rows of one kind. */
static bool validation_agrees(const char *command, const cli_options *o) {
  if (!o->validation_data) return true;
  if (o->validation_split)
    fprintf(stderr,
            "mixtape %s: --validation-split and --validation-data both say what to validate on; leave "
            "one out\n",
            command);
  else if (!cli_is_table(o->validation_data))
    fprintf(stderr, "mixtape %s: --validation-data: '%s' given; expected FILE.csv\n", command,
            o->validation_data);
  else
    return true;
  return false;
}

bool cli_table_options_agree(const char *command, const cli_options *o) {
  const char *of_table = o->columns           ? "--columns"
                         : o->missing         ? "--missing"
                         : o->unknown         ? "--unknown"
                         : o->delimiter       ? "--delimiter"
                         : o->validation_data ? "--validation-data"
                                              : chosen(o);
  const bool table = o->data && cli_is_table(o->data), file = cli_is_model_file(o);
  if (of_table && !table)
    fprintf(stderr, "mixtape %s: %s belongs to --data FILE.csv, and the data are %s\n", command, of_table,
            o->data);
  else if (o->columns && chosen(o))
    fprintf(stderr, "mixtape %s: --columns %s says which columns there are; leave %s out\n", command,
            o->columns, chosen(o));
  else if (table && !file && !cli_is_guide(o))
    fprintf(stderr, "mixtape %s: --data %s: %s takes no table; --model guide and models of a file do\n",
            command, o->data, o->model);
  else if (table && !file && !o->init_weights && !o->columns && !o->label && strcmp(command, "predict"))
    fprintf(stderr, "mixtape %s: --data %s: --label COLUMN is missing, the column to learn\n", command,
            o->data);
  else
    return rules_are_known(command, o) && delimiter_is_known(command, o) && validation_agrees(command, o);
  return false;
}

/* "FILE.columns.json" of the file that a model is written to, or comes from; mix_free it. */
static char *path_beside(const char *path) {
  mix_text text = {.grows = true};
  mix_text_put(&text, "%s" BESIDE, path);
  if (!text.failed) return text.text;
  mix_free(text.text);
  return NULL;
}

static bool is_label(const mix_csv_columns *columns, const char *label) {
  const char *name = mix_csv_columns_name(columns, -1);
  return name && !strcmp(name, label);
}

/* The columns of --columns or beside the model's file; NULL without an error: there are none, or others are
 * meant. The label that they have may be named again. */
static mix_csv_columns *known_columns(const cli_options *o) {
  const char *model = cli_is_model_file(o) ? o->model : o->init_weights;
  if (o->columns) return mix_csv_columns_load(o->columns);
  if (o->features || o->words || !model) return NULL;
  char *path = path_beside(model);
  mix_csv_columns *columns = path && mix_file_exists(path) ? mix_csv_columns_load(path) : NULL;
  mix_free(path);
  return columns && o->label && !is_label(columns, o->label) ? NULL : columns;
}

/* Numbers of words are those of the table that a model learned from. */
static bool check_words(const cli_options *o, const mix_csv_columns *columns) {
  for (int i = mix_csv_columns_name(columns, -1) ? -1 : 0; i < mix_csv_columns_count(columns); i++)
    if (mix_csv_columns_word_count(columns, i))
      return mix_fail_value(
          "%s: column '%s' holds words, whose numbers are those of the table that the model learned from; "
          "--columns FILE.json names its columns, which train --save wrote",
          o->data, mix_csv_columns_name(columns, i));
  return true;
}

static bool load_validation(const cli_options *o, cli_data *data) {
  mix_csv_table table = mix_csv_load(o->validation_data, .missing = o->missing, .unknown = o->unknown,
                                     .columns = data->columns, .delimiter = delimiter_of(o));
  if (mix_failed()) return false;
  data->validation = (cli_part){.x = table.x, .y = table.y};
  return table.rows > 0 ||
         mix_fail_value("%s: holds no examples; expected rows to validate on", o->validation_data);
}

bool cli_load_table(const cli_options *o, int command, cli_data *data) {
  const bool trains = command == CLI_TRAIN, predicts = command == CLI_PREDICT;
  mix_csv_columns *known = known_columns(o);
  if (mix_failed()) return false;
  if (!known && !o->label && !predicts)
    return mix_fail_value(
        "%s: --label COLUMN is missing, the column to learn, for no columns are kept beside "
        "the model's file",
        o->data);
  mix_csv_table table =
      mix_csv_load(o->data, .label = known ? NULL : o->label, .features = o->features, .words = o->words,
                   .missing = o->missing, .unknown = o->unknown, .columns = known,
                   .no_label = known && predicts, .delimiter = delimiter_of(o));
  if (mix_failed() || (!known && !trains && !check_words(o, table.columns))) return false;
  if (!mix_csv_columns_name(table.columns, -1) && !predicts)
    return mix_fail_value("%s: the columns that are kept have no label; name it by --label", o->data);
  const cli_part part = {.x = table.x, .y = predicts ? NULL : table.y};
  *data = (cli_data){.source = o->data, .columns = table.columns};
  *(trains ? &data->train : &data->test) = part;
  return !o->validation_data || load_validation(o, data);
}

int64_t cli_label_words(const cli_data *data) {
  return data->columns && mix_csv_columns_name(data->columns, -1)
             ? mix_csv_columns_word_count(data->columns, -1)
             : 0;
}

const char *cli_label_word(const cli_data *data, int64_t label) {
  return label < cli_label_words(data) ? mix_csv_columns_word(data->columns, -1, (int)label) : NULL;
}

/* Of a model that another has replaced. */
static mix_status remove_columns(const char *path) {
  char *beside = path_beside(path);
  const bool kept = beside && remove(beside) && errno != ENOENT && errno != ENAMETOOLONG; /* none is there */
  if (kept)
    mix_fail_io("%s: cannot be removed: %s; it has the columns of a model that was replaced", beside,
                strerror(errno));
  mix_free(beside);
  return mix_error();
}

mix_status cli_save_columns(const cli_data *data, const char *path) {
  if (!data->columns) return remove_columns(path);
  char *beside = path_beside(path);
  if (beside) mix_csv_columns_save(data->columns, beside);
  mix_free(beside);
  return mix_error();
}

mix_status cli_copy_columns(const char *from, const char *model, const char *to) {
  char *beside = path_beside(from);
  if (beside && model && !mix_file_exists(beside)) {
    mix_free(beside);
    beside = path_beside(model);
  }
  cli_data data = {0};
  if (beside && mix_file_exists(beside)) data.columns = mix_csv_columns_load(beside);
  mix_free(beside);
  return mix_failed() ? mix_error() : cli_save_columns(&data, to);
}
