/* Rows of options: for each kind the default, what callers, JSON and text give, what is kept, what is written
 * and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/json.h"
#include <math.h>
#include <mixtape/object.h>
#include <stdio.h>
#include <string.h>

/* A generation, of which fields read rules by their offsets. */
typedef struct rules {
  const char *name;
  bool old, plain;
} rules;

typedef struct options {
  size_t size;
  double rate, limit, decay, clip;
  int64_t units, top, every, label;
  uint64_t seed;
  bool flag, no_bias, has_label;
  const char *mode, *title;
} options;

#define FIELD(member) MIX_FIELD(options, member)
static const mix_field_row common[] = {{FIELD(title), &mix_field_text, .omit_none = MIX_ALWAYS}, {0}};
static const mix_field_row rows[] = {
    {FIELD(rate), &mix_field_number, .number = 0.5, .range = MIX_UNIT_INTERVAL, .alias = "alpha",
     .renamed = offsetof(rules, old)},
    {FIELD(limit), &mix_field_number, .number = INFINITY},
    {FIELD(decay), &mix_field_number, .number = 0.25, .optional = true, .omit_none = offsetof(rules, old)},
    {FIELD(units), &mix_field_integer, .number = 3, .range = MIX_POSITIVE},
    {FIELD(top), &mix_field_integer, .optional = true, .range = MIX_POSITIVE},
    {FIELD(every), &mix_field_frequency, .range = MIX_NOT_NEGATIVE},
    {FIELD(label), &mix_field_flagged, .optional = true, .other = offsetof(options, has_label)},
    {FIELD(seed), &mix_field_seed},
    {FIELD(flag), &mix_field_boolean, .only = offsetof(rules, plain)},
    {"use_bias", offsetof(options, no_bias), &mix_field_negated, .except = offsetof(rules, plain)},
    {FIELD(mode), &mix_field_text, .text = "sum", .choices = "sum|mean|none", .optional = true},
    {0}};
static const rules today = {"today", false, false}, old = {"old", true, true};

static mix_fields fields_of(const rules *rules) {
  return (mix_fields){common, rows, "thing", (const mix_semantics *)rules};
}

static int begin(void **state) {
  mix_error_clear();
  *state = mix_scope_begin();
  return 0;
}
static int end(void **state) {
  mix_status status = mix_error();
  mix_error_clear();
  mix_scope_end(*state);
  return status != MIX_OK;
}

static void expect_error(mix_status status, const char *message) {
  assert_int_equal(mix_error(), status);
  assert_string_equal(mix_error_message(), message);
  mix_error_clear();
}

static void expect_written(const rules *rules, const options *o, const char *expected) {
  mix_fields fields = fields_of(rules);
  json_t *config = mix_fields_write(&fields, o, NULL);
  char *text = mix_json_text(config);
  assert_string_equal(text, expected);
  mix_free(text);
  json_decref(config);
}

/* Options from JSON, resolved; false with the error recorded. */
static bool from_json(const char *text, options *o) {
  mix_fields fields = fields_of(&today);
  json_t *config = mix_json_parse(text, "test");
  *o = (options){.size = sizeof *o};
  bool good = mix_fields_read(&fields, config, o) && mix_fields_resolve(&fields, o);
  json_decref(config);
  return good;
}

static bool from_text(const char *text, options *o) {
  mix_fields fields = fields_of(&today);
  json_t *config = mix_fields_parse(&fields, text);
  *o = (options){.size = sizeof *o};
  bool good = config && mix_fields_read(&fields, config, o) && mix_fields_resolve(&fields, o);
  json_decref(config);
  return good;
}

static void zero_is_the_default_from_c(void **state) {
  (void)state;
  mix_fields fields = fields_of(&today);
  options o = {.size = sizeof o};
  assert_true(mix_fields_resolve(&fields, &o));
  assert_true(o.rate == 0.5 && isinf(o.limit) && o.decay == 0.25 && o.units == 3 && o.top == 0);
  assert_true(o.every == 0 && o.seed == 0 && !o.flag && !o.no_bias && !o.has_label && !o.title);
  assert_string_equal(o.mode, "sum");
  expect_written(&today, &o,
                 "{\"rate\": 0.5, \"limit\": null, \"decay\": 0.25, \"units\": 3, \"top\": null, "
                 "\"every\": 0, \"label\": null, \"seed\": null, \"use_bias\": true, \"mode\": \"sum\"}");
  options zero = {.size = sizeof zero, .rate = MIX_ZERO, .limit = MIX_ZERO, .decay = MIX_ZERO};
  assert_true(mix_fields_resolve(&fields, &zero));
  assert_true(zero.rate == 0 && zero.limit == 0 && zero.decay == 0);
}

static void zero_is_zero_from_json(void **state) {
  (void)state;
  options o;
  assert_true(from_json("{\"rate\": 0, \"limit\": 0.0, \"decay\": 0, \"label\": 0, \"seed\": 7, "
                        "\"flag\": true, \"use_bias\": false, \"mode\": null, \"title\": \"a\", \"x\": 1}",
                        &o));
  assert_true(o.rate == 0 && o.limit == 0 && o.decay == 0 && o.has_label && o.label == 0 && o.seed == 7);
  assert_true(o.flag && o.no_bias);
  expect_written(&today, &o,
                 "{\"title\": \"a\", \"rate\": 0.0, \"limit\": 0.0, \"decay\": null, \"units\": 3, "
                 "\"top\": null, \"every\": 0, \"label\": 0, \"seed\": 7, \"use_bias\": false, "
                 "\"mode\": null}");
  assert_false(from_json("{\"units\": 0}", &o));
  expect_error(MIX_VALUE_ERROR, "thing: units is 0; expected a positive number");
  assert_false(from_json("{\"top\": 0}", &o));
  expect_error(MIX_VALUE_ERROR, "thing: top is 0; expected a positive number");
}

static void null_is_none_or_the_default(void **state) {
  (void)state;
  options o;
  assert_true(from_json("{\"rate\": null, \"limit\": null, \"decay\": null, \"units\": null, \"top\": null, "
                        "\"label\": null, \"seed\": null, \"use_bias\": null}",
                        &o));
  assert_true(o.rate == 0.5 && isinf(o.limit) && o.decay == 0 && o.units == 3 && o.top == 0);
  assert_true(!o.has_label && !o.seed && !o.no_bias);
}

static void generations_have_names_and_fields_of_their_own(void **state) {
  (void)state;
  options o;
  assert_true(from_json("{\"alpha\": 0.75, \"decay\": null, \"flag\": true}", &o));
  assert_true(o.rate == 0.75);
  expect_written(&old, &o,
                 "{\"alpha\": 0.75, \"limit\": null, \"units\": 3, \"top\": null, \"every\": 0, "
                 "\"label\": null, \"seed\": null, \"flag\": true, \"mode\": \"sum\"}");
  assert_true(from_json("{\"alpha\": 0.75, \"rate\": 0.125}", &o));
  assert_true(o.rate == 0.125);
}

static void other_types_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *json, *message;
  } cases[] = {
      {"{\"rate\": \"x\"}", "config: \"rate\" is a string; expected a number"},
      {"{\"alpha\": \"x\"}", "config: \"alpha\" is a string; expected a number"},
      {"{\"units\": 2.5}", "config: \"units\" is a real number; expected an integer"},
      {"{\"every\": true}", "config: \"every\" is true; expected epoch, batch or a number of batches"},
      {"{\"label\": []}", "config: \"label\" is an array; expected an integer"},
      {"{\"seed\": {}}", "config: \"seed\" is an object; expected an integer"},
      {"{\"flag\": 1}", "config: \"flag\" is an integer; expected true or false"},
      {"{\"use_bias\": 0}", "config: \"use_bias\" is an integer; expected true or false"},
      {"{\"mode\": 3}", "config: \"mode\" is an integer; expected a string"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    options o;
    assert_false(from_json(cases[i].json, &o));
    expect_error(MIX_TYPE_ERROR, cases[i].message);
  }
}

static void values_out_of_range_are_refused(void **state) {
  (void)state;
  static const struct {
    options given;
    const char *message;
  } cases[] = {{{.rate = 1.5}, "thing: rate is 1.5; expected a number in [0, 1]"},
               {{.rate = NAN}, "thing: rate is nan; expected a number in [0, 1]"},
               {{.units = -2}, "thing: units is -2; expected a positive number"},
               {{.units = MIX_INT_ZERO}, "thing: units is 0; expected a positive number"},
               {{.top = -1}, "thing: top is -1; expected a positive number"},
               {{.every = -1}, "thing: every is -1; expected a number that is not negative"},
               {{.mode = "max"}, "thing: mode 'max' is not known; expected sum, mean or none"}};
  mix_fields fields = fields_of(&today);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    options o = cases[i].given;
    assert_false(mix_fields_resolve(&fields, &o));
    expect_error(MIX_VALUE_ERROR, cases[i].message);
  }
}

static void ranges_include_their_ends_or_not(void **state) {
  (void)state;
  static const struct {
    mix_field_range range;
    double value;
    bool inside;
  } cases[] = {{MIX_POSITIVE, MIX_ZERO, false},     {MIX_POSITIVE, 1e-9, true},
               {MIX_NOT_NEGATIVE, MIX_ZERO, true},  {MIX_NOT_NEGATIVE, -1e-9, false},
               {MIX_UNIT_INTERVAL, MIX_ZERO, true}, {MIX_UNIT_INTERVAL, 1, true},
               {MIX_UNIT_INTERVAL, 1.01, false},    {MIX_BELOW_ONE, MIX_ZERO, true},
               {MIX_BELOW_ONE, 1, false},           {MIX_BETWEEN_0_AND_1, MIX_ZERO, false},
               {MIX_BETWEEN_0_AND_1, 0.5, true},    {MIX_BETWEEN_0_AND_1, 1, false},
               {MIX_UNBOUNDED, -5, true},           {MIX_UNBOUNDED, -INFINITY, true},
               {MIX_UNBOUNDED, NAN, false},         {MIX_POSITIVE, NAN, false},
               {MIX_NOT_NEGATIVE, NAN, false},      {MIX_UNIT_INTERVAL, NAN, false},
               {MIX_BELOW_ONE, NAN, false},         {MIX_BETWEEN_0_AND_1, NAN, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const mix_field_row row[] = {{FIELD(rate), &mix_field_number, .range = cases[i].range}, {0}};
    options o = {.rate = cases[i].value};
    assert_int_equal(mix_fields_resolve(&(mix_fields){.rows = row, .call = "thing"}, &o), cases[i].inside);
    mix_error_clear();
  }
}

/* A callback's baseline, which there may not be. */
static void nan_is_a_number_where_it_is_the_default(void **state) {
  (void)state;
  static const double defaults[] = {NAN, INFINITY, 0};
  for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
    const mix_field_row row[] = {{FIELD(rate), &mix_field_number, .number = defaults[i]}, {0}};
    options o = {.rate = NAN};
    assert_int_equal(mix_fields_resolve(&(mix_fields){.rows = row, .call = "thing"}, &o), i == 0);
    if (i) expect_error(MIX_VALUE_ERROR, "thing: rate is nan; expected a number");
  }
}

/* None is in no range, but no error. */
static void an_optional_number_may_have_a_range(void **state) {
  (void)state;
  static const mix_field_row row[] = {
      {FIELD(clip), &mix_field_number, .range = MIX_POSITIVE, .optional = true}, {0}};
  static const struct {
    const char *json;
    double clip;
  } cases[] = {{"{}", 0}, {"{\"clip\": null}", 0}, {"{\"clip\": 2}", 2}, {"{\"clip\": 0}", -1}};
  mix_fields fields = {.rows = row, .call = "thing"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    options o = {.size = sizeof o};
    json_t *config = mix_json_parse(cases[i].json, "test");
    bool good = mix_fields_read(&fields, config, &o) && mix_fields_resolve(&fields, &o);
    json_decref(config);
    assert_int_equal(good, cases[i].clip >= 0);
    if (good) assert_true(o.clip == cases[i].clip);
    if (!good) expect_error(MIX_VALUE_ERROR, "thing: clip is 0; expected a positive number");
  }
  assert_false(mix_fields_resolve(&fields, &(options){.clip = -1}));
  expect_error(MIX_VALUE_ERROR, "thing: clip is -1; expected a positive number");
}

static void text_gives_the_same_as_json(void **state) {
  (void)state;
  options o;
  assert_true(from_text("rate=0,limit=2.5,decay=none,units=7,top=null,every=batch,label=-3,seed=9,"
                        "flag=True,use_bias=false,mode=mean,title=a b",
                        &o));
  assert_true(o.rate == 0 && o.limit == 2.5 && o.decay == 0 && o.units == 7 && o.top == 0 && o.every == 1);
  assert_true(o.has_label && o.label == -3 && o.seed == 9 && o.flag && o.no_bias);
  assert_string_equal(o.mode, "mean");
  assert_string_equal(o.title, "a b");
  assert_true(from_text("", &o) && o.rate == 0.5);
  assert_true(from_text("every=epoch,limit=none,", &o) && o.every == 0 && isinf(o.limit));
  assert_true(from_text("every=12", &o) && o.every == 12);
  assert_true(from_text("alpha=0.75", &o) && o.rate == 0.75);
}

static void wrong_text_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {{"rate", "thing: \"rate\" is not of the form key=value"},
               {"rate=x", "thing: rate is 'x'; expected a number"},
               {"rate=", "thing: rate is ''; expected a number"},
               {"rate=inf", "thing: rate is 'inf'; expected a number"},
               {"rate=none", "thing: rate is 'none'; expected a number"},
               {"alpha=x", "thing: alpha is 'x'; expected a number"},
               {"units=1.5", "thing: units is '1.5'; expected an integer"},
               {"units=99999999999999999999", "thing: units is '99999999999999999999'; expected an integer"},
               {"every=day", "thing: every is 'day'; expected epoch, batch or a number of batches"},
               {"flag=1", "thing: flag is '1'; expected true or false"},
               {"no_bias=true",
                "thing: unexpected argument 'no_bias'; known: title, rate, limit, decay, units, top, "
                "every, label, seed, flag, use_bias, mode"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    options o;
    assert_false(from_text(cases[i].text, &o));
    expect_error(MIX_VALUE_ERROR, cases[i].message);
  }
}

static void a_required_value_that_is_missing_is_refused(void **state) {
  (void)state;
  static const mix_field_row needed[] = {{FIELD(rate), &mix_field_number, .required = true},
                                         {FIELD(title), &mix_field_text, .required = true},
                                         {0}};
  mix_fields fields = {.rows = needed, .call = "thing"};
  options o = {.title = "a"};
  assert_false(mix_fields_resolve(&fields, &o));
  expect_error(MIX_TYPE_ERROR, "thing: rate is missing; expected a number, MIX_ZERO for zero");
  o = (options){.rate = MIX_ZERO};
  assert_false(mix_fields_resolve(&fields, &o));
  expect_error(MIX_TYPE_ERROR, "thing: title is missing; expected a string");
  fields.refusal = MIX_VALUE_ERROR;
  assert_false(mix_fields_resolve(&fields, &(options){.rate = 1}));
  expect_error(MIX_VALUE_ERROR, "thing: title is missing; expected a string");
  assert_true(mix_fields_resolve(&fields, &(options){.rate = MIX_ZERO, .title = ""}));
}

static void rows_that_are_not_in_use_are_in_no_config(void **state) {
  (void)state;
  static const size_t in_use[] = {offsetof(options, units), offsetof(options, no_bias), 0};
  mix_fields fields = fields_of(&today);
  fields.in_use = in_use;
  options o = {.size = sizeof o, .title = "t"};
  assert_true(mix_fields_resolve(&fields, &o));
  assert_true(o.rate == 0.5); /* they get their defaults */
  json_t *config = mix_fields_write(&fields, &o, NULL);
  char *text = mix_json_text(config);
  assert_string_equal(text, "{\"title\": \"t\", \"units\": 3, \"use_bias\": true}");
  mix_free(text);
  json_decref(config);
  assert_null(mix_fields_parse(&fields, "rate=1"));
  expect_error(MIX_VALUE_ERROR, "thing: unexpected argument 'rate'; known: title, units, use_bias");
}

static int held; /* of the kind below */
static bool hold(const mix_field *field) {
  (void)field;
  return ++held;
}
static void let_go(const mix_field *field) {
  (void)field;
  held--;
}

static void a_failure_releases_what_was_kept(void **state) {
  (void)state;
  static const mix_value_kind kind = {.size = sizeof(double), .resolve = hold, .release = let_go};
  static const mix_field_row both[] = {{FIELD(rate), &kind},
                                       {FIELD(limit), &kind},
                                       {FIELD(units), &mix_field_integer, .range = MIX_POSITIVE},
                                       {FIELD(decay), &kind},
                                       {0}};
  mix_fields fields = {.rows = both, .call = "thing"};
  options good = {.units = 1}, bad = {.units = -1};
  assert_true(mix_fields_resolve(&fields, &good));
  assert_int_equal(held, 3);
  mix_fields_release(&fields, &good);
  assert_int_equal(held, 0);
  assert_false(mix_fields_resolve(&fields, &bad));
  assert_int_equal(held, 0);
  mix_error_clear();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
int main(void) {
  const struct CMUnitTest tests[] = {TEST(zero_is_the_default_from_c),
                                     TEST(zero_is_zero_from_json),
                                     TEST(null_is_none_or_the_default),
                                     TEST(generations_have_names_and_fields_of_their_own),
                                     TEST(other_types_are_refused),
                                     TEST(values_out_of_range_are_refused),
                                     TEST(ranges_include_their_ends_or_not),
                                     TEST(nan_is_a_number_where_it_is_the_default),
                                     TEST(an_optional_number_may_have_a_range),
                                     TEST(text_gives_the_same_as_json),
                                     TEST(wrong_text_is_refused),
                                     TEST(a_required_value_that_is_missing_is_refused),
                                     TEST(rows_that_are_not_in_use_are_in_no_config),
                                     TEST(a_failure_releases_what_was_kept)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
