/* Reads weight maps and applies them. Names fit POSIX's extended regular expressions, which have groups to
 * put into other names. */
#include "saving/weight_map.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/json.h"
#include "base/object.h"
#include "formats/file.h"
#include "tensor/shape.h"
#include <ctype.h>
#include <mixtape/ops.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BYTES = 1 << 24, MAX_RULES = 10000, MAX_PATTERN = 1000, GROUPS = 10, MAX_NAMES = 4 };

typedef struct rule {
  regex_t weight;
  char *tensors[MAX_NAMES]; /* NULL: no further one */
  mix_mapped_weight how;    /* without its name */
} rule;

typedef struct left_out {
  regex_t tensor;
  char *equal; /* the tensor whose values it must have; NULL: any */
} left_out;

struct mix_weight_map {
  mix_object object;
  rule *rules;
  left_out *left_out;
  int count, capacity, left_count, left_capacity;
  char *prefixes[MAX_NAMES]; /* NULL: no further one */
};

static void free_names(char *names[MAX_NAMES]) {
  for (int i = 0; i < MAX_NAMES; i++) mix_free(names[i]);
}

static void finalize(void *object) {
  mix_weight_map *map = object;
  for (int i = 0; i < map->count; i++) {
    regfree(&map->rules[i].weight);
    free_names(map->rules[i].tensors);
  }
  for (int i = 0; i < map->left_count; i++) {
    regfree(&map->left_out[i].tensor);
    mix_free(map->left_out[i].equal);
  }
  mix_free(map->rules);
  mix_free(map->left_out);
  free_names(map->prefixes);
}

static const mix_class weight_map_class = {.name = "weight map", .finalize = finalize};

/* ---- reading ---- */

/* Where messages are: "model_load_weights: map.json: rule 3". */
typedef struct place {
  char text[400];
} place;

static bool compile(regex_t *expression, const json_t *pattern, const place *at, const char *member) {
  char error[200];
  const char *text = json_string_value(pattern);
  if (!text || strlen(text) > MAX_PATTERN)
    return mix_fail_value("%s: %s is %s; expected a regular expression of at most %d bytes", at->text, member,
                          text ? "longer" : mix_json_kind(pattern), MAX_PATTERN);
  const int code = regcomp(expression, text, REG_EXTENDED);
  if (code == REG_ESPACE) return mix_fail_memory("a regular expression");
  if (code) regerror(code, expression, error, sizeof error);
  return !code || mix_fail_value("%s: %s '%.200s' is no extended regular expression: %s", at->text, member,
                                 text, error);
}

/* A name, or a list of up to MAX_NAMES. */
static bool read_names(char *names[MAX_NAMES], const json_t *json, const place *at, const char *member) {
  const size_t count = json_is_array(json) ? json_array_size(json) : 1;
  for (size_t i = 0; i < count && count <= MAX_NAMES; i++) {
    const char *name = json_string_value(json_is_array(json) ? json_array_get(json, i) : json);
    if (!name) break;
    if (!(names[i] = mix_strdup(name))) return false;
  }
  return (count && count <= MAX_NAMES && names[count - 1]) ||
         mix_fail_value("%s: %s is %s; expected a name, or a list of up to %d", at->text, member,
                        json_is_array(json) ? "another list" : mix_json_kind(json), MAX_NAMES);
}

/* "\\1" may name the groups that the expression has. */
static bool check_template(const rule *r, const char *tensor, const place *at) {
  for (const char *c = tensor; *c; c++)
    if (*c == '\\' && !(isdigit((unsigned char)*++c) && (size_t)(*c - '0') <= r->weight.re_nsub))
      return mix_fail_value(
          "%s: tensor '%.200s': a \\ stands before the number of a group in parentheses, of "
          "which weight has %zu",
          at->text, tensor, r->weight.re_nsub);
  return true;
}

static bool read_part(rule *r, const json_t *part, const place *at) {
  int64_t axis = 0;
  mix_mapped_weight *how = &r->how;
  if (!part) return true;
  if (json_array_size(part) != 3 ||
      !mix_json_integer_within(json_array_get(part, 0), 0, MIX_MAX_RANK - 1, &axis) ||
      !mix_json_integer_within(json_array_get(part, 2), 1, INT64_MAX, &how->parts) ||
      !mix_json_integer_within(json_array_get(part, 1), 0, how->parts - 1, &how->part))
    return mix_fail_value("%s: part is not [axis, number, how many]", at->text);
  how->axis = (int)axis;
  return true;
}

static bool read_transposition(rule *r, const json_t *axes, const place *at) {
  unsigned seen = 0;
  if (!axes) return true;
  const size_t rank = json_array_size(axes);
  for (size_t i = 0; i < rank && rank <= MIX_MAX_RANK; i++) {
    int64_t axis;
    if (mix_json_integer_within(json_array_get(axes, i), 0, (int64_t)rank - 1, &axis))
      seen |= 1u << axis, r->how.transpose[i] = (int)axis;
  }
  r->how.rank = (int)rank;
  return (rank && rank <= MIX_MAX_RANK && seen == (1u << rank) - 1) ||
         mix_fail_value("%s: transpose is not an order of all axes, like [1, 0]", at->text);
}

/* true, false, or how many axes of the weight each axis holds: [1, 2] of (a, b c) to (a, b, c). */
static bool read_reshape(rule *r, const json_t *reshape, const place *at) {
  r->how.reshape = json_is_true(reshape) || json_is_array(reshape);
  if (!reshape || json_is_boolean(reshape)) return true;
  const size_t rank = json_array_size(reshape);
  bool good = rank > 0 && rank <= MIX_MAX_RANK;
  for (size_t i = 0; good && i < rank; i++) {
    int64_t axes = 0;
    good = mix_json_integer_within(json_array_get(reshape, i), 0, MIX_MAX_RANK, &axes);
    r->how.joined[i] = (int)axes;
  }
  r->how.joined_rank = (int)rank;
  return good ||
         mix_fail_value("%s: reshape is %s; expected true, false, or how many axes of the weight each "
                        "axis of the tensor holds, like [1, 2]",
                        at->text, json_is_array(reshape) ? "another list" : mix_json_kind(reshape));
}

static bool check_members(const json_t *object, const char *const *known, const place *at) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)object, key, value) {
    int i = 0;
    while (known[i] && strcmp(known[i], key) != 0) i++;
    if (!known[i]) return mix_fail_value("%s: no member is called '%.100s'", at->text, key);
  }
  return true;
}

static bool read_rule(mix_weight_map *map, const json_t *json, const place *at) {
  static const char *const known[] = {"weight", "tensor", "part", "transpose", "reshape", NULL};
  const json_t *reshape = json_object_get(json, "reshape");
  if (!json_is_object(json))
    return mix_fail_value("%s is %s; expected an object", at->text, mix_json_kind(json));
  if (!check_members(json, known, at) ||
      !mix_reserve(&map->rules, &map->capacity, map->count + 1, sizeof *map->rules))
    return false;
  rule *r = &map->rules[map->count];
  *r = (rule){.how = {0}};
  if (!compile(&r->weight, json_object_get(json, "weight"), at, "weight")) return false;
  map->count++;
  if (!read_names(r->tensors, json_object_get(json, "tensor"), at, "tensor")) return false;
  if (!read_reshape(r, reshape, at)) return false;
  for (int i = 0; i < MAX_NAMES && r->tensors[i]; i++)
    if (!check_template(r, r->tensors[i], at)) return false;
  return read_part(r, json_object_get(json, "part"), at) &&
         read_transposition(r, json_object_get(json, "transpose"), at);
}

/* An expression, or {"tensor": expression, "equal": the name of another tensor}. */
static bool read_left_out(mix_weight_map *map, const json_t *list, const place *at) {
  static const char *const known[] = {"tensor", "equal", NULL};
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *item = json_array_get(list, i), *equal = json_object_get(item, "equal");
    const bool is_object = json_is_object(item);
    if (is_object && (!json_is_string(equal) || !check_members(item, known, at)))
      return mix_failed()
                 ? false
                 : mix_fail_value("%s: equal in an item of leave is %s; expected the name of a tensor",
                                  at->text, equal ? mix_json_kind(equal) : "missing");
    if (!mix_reserve(&map->left_out, &map->left_capacity, map->left_count + 1, sizeof *map->left_out))
      return false;
    left_out *left = &map->left_out[map->left_count];
    *left = (left_out){.equal = NULL};
    if (!compile(&left->tensor, is_object ? json_object_get(item, "tensor") : item, at, "an item of leave"))
      return false;
    map->left_count++;
    if (is_object && !(left->equal = mix_strdup(json_string_value(equal)))) return false;
  }
  return true;
}

static bool read_map(mix_weight_map *map, const json_t *json, const char *path, const char *call) {
  static const char *const known[] = {"rules", "leave", "prefixes", NULL};
  const json_t *rules = json_object_get(json, "rules"), *leave = json_object_get(json, "leave"),
               *prefixes = json_object_get(json, "prefixes");
  place at;
  snprintf(at.text, sizeof at.text, "%s: %.200s", call, path);
  if (!json_is_array(rules) || json_array_size(rules) > MAX_RULES || (leave && !json_is_array(leave)))
    return mix_fail_value("%s: no weight map; expected {\"rules\": [...], \"leave\": [...]}", at.text);
  bool good = check_members(json, known, &at) && read_left_out(map, leave, &at) &&
              (!prefixes || read_names(map->prefixes, prefixes, &at, "prefixes"));
  for (size_t i = 0; good && i < json_array_size(rules); i++) {
    snprintf(at.text, sizeof at.text, "%s: %.200s: rule %zu", call, path, i);
    good = read_rule(map, json_array_get(rules, i), &at);
  }
  return good;
}

/* Of a file; NULL with the error recorded. */
static char *text_of(const char *path) {
  size_t size;
  char *bytes = mix_file_read(path, MAX_BYTES, &size);
  char *text = bytes ? mix_realloc(bytes, size + 1) : NULL;
  if (text) text[size] = 0;
  if (!text) mix_free(bytes);
  return text;
}

mix_weight_map *mix_weight_map_read(const char *path, const char *call) {
  const char *known = mix_known_weight_map(path);
  char *text = mix_failed() ? NULL : known ? mix_strdup(known) : text_of(path);
  if (!text) return NULL;
  char name[256];
  snprintf(name, sizeof name, "%s: %.200s", call, path);
  json_t *json = mix_json_has_few_values(text, name) ? mix_json_parse(text, name) : NULL;
  mix_free(text);
  mix_weight_map *map = json ? mix_object_new(sizeof *map, &weight_map_class) : NULL;
  const bool good = map && read_map(map, json, path, call);
  json_decref(json);
  if (good) return mix_scoped(map);
  return mix_release(map), NULL;
}

/* ---- looking up ---- */

static bool fits(const regex_t *expression, const char *text, regmatch_t groups[GROUPS]) {
  return !regexec(expression, text, GROUPS, groups, 0) && groups[0].rm_so == 0 &&
         (size_t)groups[0].rm_eo == strlen(text);
}

/* The template with groups of `weight` in it, in the scope. */
static const char *fill(const char *template, const char *weight, const regmatch_t groups[GROUPS]) {
  size_t size = 1;
  for (const char *c = template; *c; c++) size += *c == '\\' ? strlen(weight) : 1;
  char *text = mix_scoped_memory(size), *to = text;
  for (const char *c = template; text && *c; c++) {
    if (*c != '\\') {
      *to++ = *c;
      continue;
    }
    const regmatch_t group = groups[*++c - '0'];
    const size_t length = group.rm_so < 0 ? 0 : (size_t)(group.rm_eo - group.rm_so);
    if (length) memcpy(to, weight + group.rm_so, length);
    to += length;
  }
  if (text) *to = 0;
  return text;
}

/* Of names with and without prefixes that which is there. False: none, or an error. */
static bool find_name(const mix_weight_map *map, const char *tensor, mix_has_tensor *has, const void *context,
                      mix_mapped_weight *found) {
  if (!found->tensor) found->tensor = tensor;
  if (tensor && has(context, tensor)) {
    found->tensor = tensor;
    return true;
  }
  for (int i = 0; tensor && i < MAX_NAMES && map->prefixes[i]; i++) {
    const size_t size = strlen(map->prefixes[i]) + strlen(tensor) + 1;
    char *name = mix_scoped_memory(size);
    if (!name) return false;
    snprintf(name, size, "%s%s", map->prefixes[i], tensor);
    if (!has(context, name)) continue;
    found->tensor = name;
    return true;
  }
  return false;
}

bool mix_weight_map_find(const mix_weight_map *map, const char *weight, mix_has_tensor *has,
                         const void *context, mix_mapped_weight *found) {
  regmatch_t groups[GROUPS];
  *found = (mix_mapped_weight){.tensor = weight};
  for (int i = 0; map && i < map->count; i++) {
    const rule *r = &map->rules[i];
    if (!fits(&r->weight, weight, groups)) continue;
    *found = r->how;
    for (int k = 0; k < MAX_NAMES && r->tensors[k] && !mix_failed(); k++)
      if (find_name(map, fill(r->tensors[k], weight, groups), has, context, found)) break;
    return !mix_failed();
  }
  return true;
}

/* With or without one of the prefixes. */
static bool is_left(const mix_weight_map *map, const regex_t *expression, const char *tensor) {
  regmatch_t groups[GROUPS];
  if (fits(expression, tensor, groups)) return true;
  for (int k = 0; k < MAX_NAMES && map->prefixes[k]; k++) {
    const size_t length = strlen(map->prefixes[k]);
    if (!strncmp(tensor, map->prefixes[k], length) && fits(expression, tensor + length, groups)) return true;
  }
  return false;
}

bool mix_weight_map_leaves(const mix_weight_map *map, const char *tensor, mix_has_tensor *has,
                           const void *context, const char **equal) {
  *equal = NULL;
  for (int i = 0; map && i < map->left_count; i++) {
    if (!is_left(map, &map->left_out[i].tensor, tensor)) continue;
    mix_mapped_weight found = {.tensor = NULL};
    if (map->left_out[i].equal) find_name(map, map->left_out[i].equal, has, context, &found);
    *equal = found.tensor;
    return !mix_failed();
  }
  return false;
}

/* ---- values ---- */

bool mix_mapped_weight_is_plain(const mix_mapped_weight *mapped) {
  return !mapped->parts && !mapped->rank && !mapped->reshape;
}

static mix_tensor *part_of(const mix_mapped_weight *mapped, mix_tensor *tensor) {
  mix_shape begin = mix_tensor_shape(tensor), size = begin;
  if (!mapped->parts) return tensor;
  if (mapped->axis >= size.rank || size.dims[mapped->axis] % mapped->parts)
    return mix_fail_value("'%.200s' has shape %s, whose axis %d has no %lld equal parts", mapped->tensor,
                          MIX_SHAPE_TEXT(size), mapped->axis, (long long)mapped->parts);
  size.dims[mapped->axis] /= mapped->parts;
  for (int i = 0; i < size.rank; i++) begin.dims[i] = 0;
  begin.dims[mapped->axis] = mapped->part * size.dims[mapped->axis];
  return mix_slice(tensor, begin, size);
}

mix_shape mix_mapped_weight_joined(const mix_mapped_weight *mapped, mix_shape weight) {
  mix_shape joined = {.rank = mapped->joined_rank};
  int axis = 0;
  for (int i = 0; i < joined.rank; i++) {
    joined.dims[i] = 1;
    for (int k = 0; k < mapped->joined[i] && axis <= weight.rank; k++, axis++)
      joined.dims[i] *= axis < weight.rank ? weight.dims[axis] : 1;
  }
  if (axis != weight.rank) joined.rank = -1;
  return joined;
}

mix_tensor *mix_mapped_weight_value(const mix_mapped_weight *mapped, mix_tensor *tensor, mix_shape shape) {
  mix_tensor *value = part_of(mapped, tensor);
  if (value && mapped->rank) {
    mix_axes axes = {.count = mapped->rank};
    if (mapped->rank != mix_tensor_shape(value).rank)
      return mix_fail_value("'%.200s' has shape %s, and transpose has %d axes", mapped->tensor,
                            MIX_SHAPE_TEXT(mix_tensor_shape(value)), mapped->rank);
    for (int i = 0; i < mapped->rank; i++) axes.axis[i] = mapped->transpose[i];
    value = mix_transpose(value, axes);
  }
  if (!value || !mapped->reshape) return value;
  if (mapped->joined_rank &&
      !mix_shape_equal(mix_tensor_shape(value), mix_mapped_weight_joined(mapped, shape)))
    return mix_fail_value("'%.200s' of shape %s does not hold the axes of %s that its rule's reshape says",
                          mapped->tensor, MIX_SHAPE_TEXT(mix_tensor_shape(value)), MIX_SHAPE_TEXT(shape));
  if (mix_shape_size(mix_tensor_shape(value)) == mix_shape_size(shape)) return mix_reshape(value, shape);
  return mix_fail_value("'%.200s' of shape %s cannot be reshaped to %s", mapped->tensor,
                        MIX_SHAPE_TEXT(mix_tensor_shape(value)), MIX_SHAPE_TEXT(shape));
}
