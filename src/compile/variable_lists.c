/* Lists of variables: accumulators of their shapes, and assignments to all of them. */
#include "base/error.h"
#include "graph/variable.h"
#include <mixtape/ops.h>
#include <mixtape/variable_lists.h>
#include <stdio.h>

/* Item `i` as a variable; NULL with the error recorded. */
static mix_variable *variable_at(mix_list *variables, int i, const char *call) {
  mix_variable *variable = mix_failed() ? NULL : mix_list_get(variables, i);
  if (!mix_failed() && !mix_is(variable, &mix_variable_class))
    return mix_fail_type("%s: item %d of the list is no variable", call, i);
  return variable;
}

mix_list *mix_variables_zeros_like(mix_list *variables) {
  if (mix_failed()) return NULL;
  mix_list *zeros = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(variables); i++) {
    mix_variable *variable = variable_at(variables, i, "variables_zeros_like");
    if (!variable) return NULL;
    char name[256];
    snprintf(name, sizeof name, "%.200s/accumulator", mix_variable_name(variable));
    mix_tensor *zero = mix_fill(mix_variable_shape(variable), 0, mix_variable_true_dtype(variable));
    mix_list_append(zeros, mix_variable_new(zero, .name = name, .not_trainable = true));
  }
  return mix_failed() ? NULL : zeros;
}

mix_status mix_variables_assign_zeros(mix_list *variables) {
  for (int i = 0; i < mix_list_count(variables); i++) {
    mix_variable *variable = variable_at(variables, i, "variables_assign_zeros");
    if (!variable) break;
    mix_variable_assign(variable,
                        mix_fill(mix_variable_shape(variable), 0, mix_variable_true_dtype(variable)));
  }
  return mix_error();
}

mix_status mix_variables_assign_add(mix_list *variables, mix_list *values) {
  const int count = mix_list_count(variables);
  if (!mix_failed() && mix_list_count(values) != count)
    mix_fail_value("variables_assign_add: %d values for %d variables", mix_list_count(values), count);
  for (int i = 0; i < count && !mix_failed(); i++) {
    mix_variable *variable = variable_at(variables, i, "variables_assign_add");
    mix_tensor *value = mix_list_get(values, i);
    if (!variable) break;
    if (value) mix_variable_assign_add(variable, mix_cast(value, mix_variable_true_dtype(variable)));
  }
  return mix_error();
}

mix_list *mix_variables_values(mix_list *variables) {
  if (mix_failed()) return NULL;
  mix_list *values = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(variables); i++) {
    mix_variable *variable = variable_at(variables, i, "variables_values");
    if (!variable) return NULL;
    mix_list_append(values, mix_variable_true_value(variable));
  }
  return mix_failed() ? NULL : values;
}
