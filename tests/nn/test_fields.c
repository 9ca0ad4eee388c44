/* Kinds of fields that hold objects, axes, shapes and lists of numbers. */
#include "nn/support.h"

#include "base/alloc.h"
#include "base/json.h"
#include "nn/fields.h"
#include "nn/weights/weights.h"

typedef struct options {
  size_t size;
  const char *kernel;
  mix_initializer *kernel_object;
  mix_regularizer *regularizer;
  mix_constraint *constraint;
  mix_policy *policy;
  int axis, every_axis;
  mix_axes axes, list;
  mix_shape shape, sizes;
  mix_numbers numbers;
} options;

#define FIELD(member) MIX_FIELD(options, member)
static const mix_field_row rows[] = {MIX_INITIALIZER_FIELD(options, kernel, "zeros"),
                                     {FIELD(regularizer), &mix_field_regularizer},
                                     {FIELD(constraint), &mix_field_constraint},
                                     {FIELD(policy), &mix_field_policy},
                                     {FIELD(axis), &mix_field_axis},
                                     {FIELD(every_axis), &mix_field_axis, .optional = true},
                                     {FIELD(axes), &mix_field_axes},
                                     {FIELD(list), &mix_field_axis_list, .optional = true},
                                     {FIELD(shape), &mix_field_shape, .optional = true},
                                     {FIELD(sizes), &mix_field_sizes},
                                     {FIELD(numbers), &mix_field_numbers},
                                     {0}};

static mix_fields fields(void) {
  return (mix_fields){.rows = rows, .call = "thing", .rules = mix_semantics_current()};
}

/* The member `key` of the config, as text. */
static void expect_member(const options *o, const char *key, const char *expected) {
  mix_fields f = fields();
  json_t *config = mix_fields_write(&f, o, NULL);
  char *text = mix_json_text(json_object_get(config, key));
  assert_string_equal(text, expected);
  mix_free(text);
  json_decref(config);
}

static bool from_json(const char *text, options *o) {
  mix_fields f = fields();
  json_t *config = mix_json_parse(text, "test");
  *o = (options){.size = sizeof *o, .policy = mix_policy_new("float16")};
  bool good = mix_fields_read(&f, config, o) && mix_fields_resolve(&f, o);
  json_decref(config);
  return good;
}

static void defaults(void **state) {
  (void)state;
  options o;
  assert_true(from_json("{}", &o));
  assert_string_equal(mix_initializer_name(o.kernel_object), "zeros");
  assert_true(!o.kernel && !o.regularizer && !o.constraint && o.axis == -1 && o.every_axis == 0);
  static const char *const members[][2] = {
      {"regularizer", "null"}, {"constraint", "null"}, {"policy", "\"float16\""}, {"axis", "-1"},
      {"every_axis", "null"},  {"axes", "-1"},         {"list", "null"},          {"shape", "null"},
      {"sizes", "[]"},         {"numbers", "null"}};
  for (size_t i = 0; i < sizeof members / sizeof *members; i++)
    expect_member(&o, members[i][0], members[i][1]);
  mix_fields f = fields();
  mix_fields_release(&f, &o);
}

static void objects_are_retained_and_released(void **state) {
  (void)state;
  mix_initializer *ones = mix_initializer_new("ones");
  mix_regularizer *l2 = mix_regularizer_new("l2");
  mix_constraint *norm = mix_constraint_new("max_norm");
  options o = {.kernel_object = ones, .regularizer = l2, .constraint = norm};
  mix_fields f = fields();
  assert_true(mix_fields_resolve(&f, &o));
  assert_true(o.kernel_object == ones && mix_references(ones) == 2);
  assert_true(mix_references(l2) == 2 && mix_references(norm) == 2);
  mix_fields_release(&f, &o);
  assert_true(mix_references(ones) == 1 && mix_references(l2) == 1 && mix_references(norm) == 1);
  options both = {.kernel = "ones", .kernel_object = ones};
  expect_refused(mix_fields_resolve(&f, &both), MIX_VALUE_ERROR, "both the initializer 'ones' and an object");
}

static void objects_from_json(void **state) {
  (void)state;
  options o;
  assert_true(from_json("{\"kernel\": \"ones\", \"regularizer\": \"l2\", \"policy\": \"mixed_float16\", "
                        "\"constraint\": {\"class_name\": \"NonNeg\", \"config\": {}}}",
                        &o));
  assert_string_equal(mix_initializer_name(o.kernel_object), "ones");
  assert_string_equal(mix_regularizer_name(o.regularizer), "l2");
  assert_string_equal(mix_constraint_name(o.constraint), "non_neg");
  assert_string_equal(mix_policy_name(o.policy), "mixed_float16");
  mix_fields f = fields();
  mix_fields_release(&f, &o);
  expect_refused(from_json("{\"kernel\": \"nope\"}", &o), MIX_VALUE_ERROR, "'nope' is not known");
}

static void axes_and_shapes(void **state) {
  (void)state;
  options o;
  mix_fields f = fields();
  assert_true(from_json("{\"axis\": 0, \"every_axis\": 0, \"axes\": [2, -1], \"list\": 1, "
                        "\"shape\": [null, 3], \"sizes\": [-1, 3], \"numbers\": [0, 0.5]}",
                        &o));
  assert_true(o.axis == 0 && o.every_axis == MIX_AXIS_0 && o.axes.count == 2 && o.list.count == 1);
  assert_true(o.shape.dims[0] == MIX_UNKNOWN && o.sizes.dims[0] == MIX_UNKNOWN);
  static const char *const members[][2] = {
      {"axis", "0"},          {"every_axis", "0"},  {"axes", "[2, -1]"},    {"list", "[1]"},
      {"shape", "[null, 3]"}, {"sizes", "[-1, 3]"}, {"numbers", "[0, 0.5]"}};
  for (size_t i = 0; i < sizeof members / sizeof *members; i++)
    expect_member(&o, members[i][0], members[i][1]);
  mix_fields_release(&f, &o);
  assert_true(from_json("{\"axis\": [3], \"axes\": 1, \"numbers\": 0.25}", &o));
  assert_true(o.axis == 3 && o.numbers.count == 1 && o.numbers.values[0] == 0.25);
  expect_member(&o, "axes", "1");
  mix_fields_release(&f, &o);
  options from_c = {.axis = MIX_AXIS_0, .axes = MIX_AXES(1), .policy = mix_policy_new("float16")};
  assert_true(mix_fields_resolve(&f, &from_c) && from_c.axis == 0);
  mix_fields_release(&f, &from_c);
}

/* None acts as the number that its lower 32 bits are. */
static void numbers_out_of_range_are_refused(void **state) {
  (void)state;
#define AXES "expected an integer from -8 to 7"
#define SIZES "expected an integer from -1 to 1152921504606846975"
  static const char *const cases[][2] = {
      {"{\"axis\": 4294967297}", "\"axis\" is 4294967297; " AXES},
      {"{\"axis\": -2147483648}", "\"axis\" is -2147483648; " AXES},
      {"{\"every_axis\": [-4294967295]}", "\"every_axis\" is -4294967295; " AXES},
      {"{\"axes\": 8}", "\"axes\" is 8; " AXES},
      {"{\"axes\": [0, 4294967297]}", "\"axes\" is 4294967297; " AXES},
      {"{\"list\": [4294967298, 1]}", "\"list\" is 4294967298; " AXES},
      {"{\"shape\": [9223372036854775807]}", "\"shape\" is 9223372036854775807; " SIZES},
      {"{\"sizes\": [2, -2]}", "\"sizes\" is -2; " SIZES},
      {"{\"constraint\": {\"class_name\": \"MaxNorm\", \"config\": {\"axis\": 4294967297}}}",
       "\"axis\" is 4294967297; " AXES},
      {"{\"constraint\": {\"class_name\": \"MaxNorm\", \"config\": {\"axis\": [0, 4294967297]}}}",
       "\"axis\" is 4294967297; " AXES}};
#undef AXES
#undef SIZES
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    options o;
    expect_refused(from_json(cases[i][0], &o), MIX_VALUE_ERROR, cases[i][1]);
  }
}

static void what_is_no_axis_or_size_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *json, *part;
    mix_status status;
  } cases[] = {
      {"{\"axis\": [1, 2]}", "\"axis\" is an array; expected an integer", MIX_TYPE_ERROR},
      {"{\"axes\": \"x\"}", "\"axes\" is a string", MIX_TYPE_ERROR},
      {"{\"list\": [1, 2, 3, 4, 5, 6, 7, 8, 9]}", "a list of 9 axes; expected at most 8", MIX_VALUE_ERROR},
      {"{\"shape\": 3}", "\"shape\" is an integer; expected a list of sizes", MIX_TYPE_ERROR},
      {"{\"sizes\": [\"x\"]}", "\"sizes\" is a string", MIX_TYPE_ERROR},
      {"{\"sizes\": [1, 2, 3, 4, 5, 6, 7, 8, 9]}", "has 9 dimensions; expected at most 8", MIX_VALUE_ERROR},
      {"{\"numbers\": [1, true]}", "\"numbers\" holds true; expected a list of numbers", MIX_TYPE_ERROR}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    options o;
    expect_refused(from_json(cases[i].json, &o), cases[i].status, cases[i].part);
  }
  mix_fields f = fields();
  options many = {.axes = {.count = 99}}, empty = {.numbers = {.count = 2}}, deep = {.shape = {.rank = 99}};
  expect_refused(mix_fields_resolve(&f, &many), MIX_VALUE_ERROR, "axes names 99 axes");
  options number = {.axes = {.count = -2}}, zero = {.axes = {.count = MIX_AXIS_0}},
          listed = {.axes = MIX_AXES(1, MIX_AXIS_0)};
  expect_refused(mix_fields_resolve(&f, &number), MIX_VALUE_ERROR, "is the number -2; expected MIX_AXES(-2)");
  expect_refused(mix_fields_resolve(&f, &zero), MIX_VALUE_ERROR,
                 "MIX_AXIS_0, -2147483648; expected MIX_AXES(0)");
  expect_refused(mix_fields_resolve(&f, &listed), MIX_VALUE_ERROR, "where 0 is axis 0 itself");
  expect_refused(mix_fields_resolve(&f, &empty), MIX_TYPE_ERROR, "numbers has 2 numbers and no values");
  expect_refused(mix_fields_resolve(&f, &deep), MIX_VALUE_ERROR, "rank 99");
}

static void text(void **state) {
  (void)state;
  mix_fields f = fields();
  options o = {.size = sizeof o};
  json_t *config = mix_fields_parse(&f, "axis=2,numbers=0:0.5:1,sizes=2:3");
  assert_true(config && mix_fields_read(&f, config, &o));
  assert_true(o.axis == 2 && o.numbers.count == 3 && o.numbers.values[1] == 0.5 && o.sizes.rank == 2);
  json_decref(config);
  expect_refused(mix_fields_parse(&f, "numbers=0:x"), MIX_VALUE_ERROR,
                 "expected numbers with colons between");
  expect_refused(mix_fields_parse(&f, "kernel=ones"), MIX_VALUE_ERROR, "expected an initializer");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(defaults),
                                     TEST(objects_are_retained_and_released),
                                     TEST(objects_from_json),
                                     TEST(axes_and_shapes),
                                     TEST(numbers_out_of_range_are_refused),
                                     TEST(what_is_no_axis_or_size_is_refused),
                                     TEST(text)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
