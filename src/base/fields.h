/* One table of rows describes an options struct. From it come defaults, checks, the copy that an object
 * keeps, JSON both ways, and arguments in text. */
#pragma once

#include <jansson.h>
#include <mixtape/dtype.h>
#include <mixtape/semantics.h>

typedef struct mix_field_row mix_field_row;

/* The rows of an options struct, in use. */
typedef struct mix_fields {
  const mix_field_row *common, *rows; /* each ended by a NULL name; common, which comes first, may be NULL */
  const char *call;                   /* in messages */
  const mix_semantics *rules;         /* of the generation; NULL where no row asks for one */
  /* The error for an unknown name or a missing value; MIX_OK: ValueError and TypeError. */
  mix_status refusal;
  /* The offsets of the rows that configs and text have, ended by 0; NULL: all. The others get their
   * defaults. */
  const size_t *in_use;
} mix_fields;

/* A row and the struct at hand. */
typedef struct mix_field {
  const mix_field_row *row;
  const char *call, *name;    /* in messages; the name may be the alias of the row */
  const mix_semantics *rules; /* as of mix_fields */
  void *options, *value;      /* the struct, and the member at `offset` */
  void *other;                /* the member at the row's `other`; NULL: none */
} mix_field;

typedef bool mix_field_resolve(const mix_field *field);
typedef json_t *mix_field_write(const mix_field *field);
typedef bool mix_field_read(const mix_field *field, const json_t *value);
typedef json_t *mix_field_parse(const char *text);
/* How values are stored, checked and written. A function that is NULL has nothing to do; without `write` a
 * field is not in configs. */
typedef struct mix_value_kind {
  const char *expected; /* what messages ask for: "a number" */
  size_t size;          /* of the value; one of zero bytes is not given */
  /* Turns what the caller gave into what an object keeps: defaults filled in, zero means zero, texts
   * interned, objects retained, memory copied. */
  mix_field_resolve *resolve;
  void (*release)(const mix_field *field);
  mix_field_write *write;
  /* From JSON to the form in which callers give it. Objects and memory are scoped. */
  mix_field_read *read;
  mix_field_parse *parse;    /* NULL without an error: the text is no such value */
  const char *text_expected; /* what messages about text ask for; NULL: `expected` */
} mix_value_kind;

/* NaN, which no config can say, is in none, and passes only where it is the default. */
typedef enum mix_field_range {
  MIX_UNBOUNDED,
  MIX_POSITIVE,
  MIX_NOT_NEGATIVE,
  MIX_UNIT_INTERVAL, /* [0, 1] */
  MIX_BELOW_ONE,     /* [0, 1) */
  MIX_BETWEEN_0_AND_1
} mix_field_range;

struct mix_field_row {
  const char *name; /* in configs, text and messages */
  size_t offset;
  const mix_value_kind *kind;
  double number;         /* the default of a number; not finite: None */
  const char *text;      /* the default of a text or of a name; of sizes, in JSON, what stands for none */
  const char *choices;   /* of a text: "int|count"; NULL: any */
  mix_field_range range; /* of a number */
  bool required;
  bool optional; /* zero, or the text "none", is Keras's None: null in configs */
  /* The offset of a second value: the object beside a name, the flag of a number that is given. */
  size_t other;
  /* The offset of the value of one number, which the kind reads as it reads configs; 0: none. A double where
   * `one_is_real`, else a size (int64_t). Another value beside it is an error. */
  size_t one;
  bool one_is_real;
  const char *alias; /* another name, under which configs are read too; NULL: none */
  /* Offsets of rules (bool) of a generation. Its configs have the field if it has `only` and lacks `except`;
   * not a None with omit_none, or always with MIX_ALWAYS; under the alias with `renamed`. */
  size_t only, except, omit_none, renamed;
};
#define MIX_ALWAYS ((size_t)-1)
/* Sizes and counts go up to this: so many elements have a size in bytes in all dtypes, and a cell's gates can
 * be multiplied by its units. */
#define MIX_FIELD_MAX_SIZE (INT64_MAX / (int64_t)sizeof(double))
/* The begin of a row: a member of an options struct under its own name. */
#define MIX_FIELD(type, member) #member, offsetof(type, member)

extern const mix_value_kind mix_field_number, /* double: MIX_ZERO is 0 */
    mix_field_integer,                        /* int64_t: MIX_INT_ZERO is 0 */
    mix_field_seed,                           /* uint64_t: 0 is none */
    mix_field_boolean, mix_field_negated,     /* negated: the member says the opposite of the name */
    mix_field_flagged,                        /* int64_t that may be zero; the bool at `other` says given */
    mix_field_frequency,                      /* int64_t: epoch is 0, batch 1 */
    mix_field_text,                           /* const char * */
    /* No member: configs have the JSON in `text`. Another value in a config is an error, unless the row is
     * optional: then it says nothing that the library has. `refused` is in no config that is written. */
    mix_field_fixed, mix_field_refused;

/* The functions of mix_field_number and mix_field_text, for kinds that differ in one of them. */
mix_field_resolve mix_resolve_number, mix_resolve_text;
mix_field_write mix_write_text;
mix_field_read mix_read_number, mix_read_text;
mix_field_parse mix_parse_number, mix_parse_text;

static inline void *mix_field_at(const mix_field_row *row, const void *options) {
  return (char *)options + row->offset;
}
/* True if the caller gave the value. */
bool mix_field_given(const mix_field_row *field, const void *options);
/* Records that the value has another type than the field. Returns NULL. */
void *mix_field_mistyped(const mix_field *field, const json_t *value);
/* The value of a field as an integer from `low` to `high`. False with the error recorded
 * (mix_json_integer_read). */
bool mix_field_read_integer(const mix_field *field, const json_t *value, int64_t low, int64_t high,
                            int64_t *number);
/* An axis of a tensor, from its first on or from its end: -MIX_MAX_RANK to MIX_MAX_RANK - 1. False with the
 * error recorded. */
bool mix_field_read_axis(const mix_field *field, const json_t *value, int *axis);

/* On failure the struct holds nothing that must be released. */
bool mix_fields_resolve(const mix_fields *fields, void *options);
void mix_fields_release(const mix_fields *fields, void *options);
/* Adds to the config, which NULL makes a new one. NULL with the error recorded; then it frees the config. */
json_t *mix_fields_write(const mix_fields *fields, const void *options, json_t *config);
/* Members of the config that no row names are ignored. */
bool mix_fields_read(const mix_fields *fields, const json_t *config, void *options);
/* Is each member of the config a row in use that configs of the generation have? Else an error that lists
 * their names. */
bool mix_fields_check(const mix_fields *fields, const json_t *config);
/* The name of an option that configs of the generation have and those of `other` lack, with a value that is
 * not its default; NULL: there is none, or an error. Seeds do not count. */
const char *mix_fields_lost(const mix_fields *fields, const mix_semantics *other, const void *options,
                            size_t options_size);
/* A config from "key=value,key=value"; NULL with the error recorded. The text may be empty. */
json_t *mix_fields_parse(const mix_fields *fields, const char *text);
/* Memory of the innermost scope, zeroed. */
void *mix_scoped_memory(size_t size);
