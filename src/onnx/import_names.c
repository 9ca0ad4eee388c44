/* The values of a node's inputs and outputs, by their names, and its errors. */
#include "onnx/import.h"

#include "base/error.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void *mix_import_fail(const mix_import *in, mix_status status, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return mix_fail(status, "%.200s: node '%.100s' (%.60s, operator set %lld): %s", in->file->path,
                  *in->node->name || !in->node->output_count ? in->node->name : in->node->outputs[0],
                  in->node->op, (long long)in->file->opset, text);
}

/* ---- names ---- */

enum { POOL = 256 };

mix_import_value *mix_import_add_name(mix_import *in, const char *name) {
  if (mix_failed()) return NULL;
  if (json_object_get(in->names, name))
    return mix_fail_format("%s: two values are named '%.100s'", in->file->path, name);
  if (in->value_count == in->value_room) {
    const int room = in->value_room ? 2 * in->value_room : POOL;
    mix_import_value **values = mix_scoped_memory((size_t)room * sizeof(mix_import_value *));
    if (!values) return NULL;
    if (in->value_count) memcpy(values, in->values, (size_t)in->value_count * sizeof(mix_import_value *));
    in->values = values;
    in->value_room = room;
  }
  if (!in->pooled && !(in->pool = mix_scoped_memory(POOL * sizeof *in->pool))) return NULL;
  if (!in->pooled) in->pooled = POOL;
  if (!mix_json_set(in->names, name, json_integer(in->value_count))) return NULL;
  return in->values[in->value_count++] = &in->pool[POOL - in->pooled--];
}

/* ---- inputs ---- */

mix_import_value *mix_import_value_named(const mix_import *in, const char *name) {
  const json_t *index = json_object_get(in->names, name);
  return index ? in->values[json_integer_value(index)] : NULL;
}

mix_import_value *mix_import_input(const mix_import *in, int index) {
  if (index >= in->node->input_count || !*in->node->inputs[index]) return NULL;
  return mix_import_value_named(in, in->node->inputs[index]);
}

bool mix_import_is_constant(const mix_import_value *value) {
  return value->stored || (value->tensor && !mix_tensor_is_symbolic(value->tensor));
}

int mix_import_axis(const mix_import *in, int64_t axis, int rank) {
  const int64_t place = axis < 0 ? axis + rank : axis;
  if (place >= 0 && place < rank) return (int)place;
  return mix_import_fail(in, MIX_FORMAT_ERROR, "axis %lld of a tensor of rank %d", (long long)axis, rank), -1;
}

/* ---- outputs ---- */

bool mix_import_bind_value(mix_import *in, int index, mix_import_value value) {
  if (mix_failed()) return false;
  if (index >= in->node->output_count || !*in->node->outputs[index]) return true;
  mix_import_value *own = mix_import_value_named(in, in->node->outputs[index]);
  if (!own || own->bound) return mix_import_fail(in, MIX_FORMAT_ERROR, "two nodes make one value");
  value.bound = true;
  value.uses = own->uses;
  value.reader = own->reader;
  value.shared = false;
  *own = value;
  return true;
}

bool mix_import_bind(mix_import *in, int index, mix_tensor *tensor) {
  return tensor && mix_import_bind_value(in, index, (mix_import_value){.tensor = tensor});
}

bool mix_import_is_used(const mix_import *in, int index) {
  if (index >= in->node->output_count || !*in->node->outputs[index]) return false;
  const mix_import_value *value = mix_import_value_named(in, in->node->outputs[index]);
  return value && value->uses;
}
