/* Data of several ranks: the same everywhere, of which each has a share, or each rank's own. */
#include "base/error.h"
#include "compile/evaluate.h"
#include "distribute/distribute.h"
#include "tensor/shape.h"
#include "train/data_adapter.h"

bool mix_rank_rows_check(mix_rank_rows rows, const char *call) {
  if (rows != MIX_SHARED && rows != MIX_LOCAL)
    mix_fail_value("%s: rows is %d; expected MIX_SHARED or MIX_LOCAL", call, (int)rows);
  return !mix_failed();
}

/* ---- digests ---- */

enum { SAMPLES = 1024, SAMPLE_BYTES = 8 };

/* FNV-1a */
static uint32_t add_bytes(uint32_t digest, const void *data, size_t size) {
  const unsigned char *bytes = data;
  for (size_t i = 0; i < size; i++) digest = (digest ^ bytes[i]) * 16777619u;
  return digest;
}

/* Whole small tensors; of large ones so many places, which no common width of rows divides evenly. */
static uint32_t add_values(uint32_t digest, mix_tensor *tensor) {
  const size_t size = mix_value_bytes(mix_tensor_dtype(tensor), mix_tensor_shape(tensor));
  mix_pinned pinned;
  if (!size || !mix_tensor_pin(tensor, &pinned)) return digest;
  const char *data = pinned.data;
  if (size <= (size_t)SAMPLES * SAMPLE_BYTES) {
    digest = add_bytes(digest, data, size);
  } else {
    for (size_t i = 0, step = size / SAMPLES; i < SAMPLES; i++)
      digest = add_bytes(digest, data + i * step + i * 2654435761u % (step - SAMPLE_BYTES + 1), SAMPLE_BYTES);
  }
  mix_tensor_unpin(&pinned);
  return digest;
}

uint32_t mix_rank_data_digest(mix_list *arrays, mix_rank_rows rows, bool values) {
  const int32_t kind[] = {(int32_t)rows, mix_list_count(arrays)};
  uint32_t digest = add_bytes(2166136261u, kind, sizeof kind);
  for (int i = 0; rows == MIX_SHARED && mix_is_distributed() && i < mix_list_count(arrays); i++) {
    mix_tensor *tensor = mix_list_get(arrays, i);
    const mix_shape shape = mix_tensor_shape(tensor);
    const int32_t dtype = (int32_t)mix_tensor_dtype(tensor);
    digest = add_bytes(digest, &dtype, sizeof dtype);
    digest = add_bytes(digest, shape.dims, sizeof *shape.dims * (size_t)shape.rank);
    if (values) digest = add_values(digest, tensor);
  }
  return digest ^ digest >> 24; /* 24 bits of it are compared */
}

/* ---- shares ---- */

mix_list *mix_rank_data_share(mix_list *arrays, mix_rank_rows rows) {
  if (!mix_is_distributed() || rows == MIX_LOCAL) return arrays;
  mix_list *share = mix_list_new(0, NULL);
  for (int i = 0; share && i < mix_list_count(arrays); i++) {
    mix_tensor *whole = mix_list_get(arrays, i);
    mix_shape size = mix_tensor_shape(whole), begin = {.rank = size.rank};
    mix_rank_share(size.dims[0], &begin.dims[0], &size.dims[0]);
    mix_tensor *part = mix_slice(whole, begin, size);
    if (!part || mix_evaluate(1, &part) != MIX_OK) return NULL;
    mix_list_append(share, part);
  }
  mix_list_set_structure(share, mix_list_structure(arrays));
  return mix_failed() ? NULL : share;
}

/* ---- before the first batch ---- */

enum { OPENED, ROWS, IS_DATASET, TARGET, CONTINUES, STEPS, DATA_ROWS, BATCH_SIZE, NUMBERS };

static const char *rows_name(int64_t rows) { return rows == MIX_LOCAL ? "MIX_LOCAL" : "MIX_SHARED"; }

/* What decides how many steps there are. Ranks that differ in it would wait for each other forever. */
static bool has_as_many_steps(const char *call, const int64_t *first, const int64_t *other, int rank) {
  const struct {
    int index;
    const char *name, *remedy;
  } numbers[] = {{STEPS, "steps", ""},
                 {DATA_ROWS, "the number of rows", ", or .rows = MIX_LOCAL if each has rows of its own"},
                 {BATCH_SIZE, "batch_size", ""}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !mix_failed(); i++) {
    const int n = numbers[i].index;
    if (other[n] != first[n])
      mix_fail_value("%s: %s is %lld on rank %d, %lld on rank 0; give all ranks the same%s", call,
                     numbers[i].name, (long long)other[n], rank, (long long)first[n], numbers[i].remedy);
  }
  return !mix_failed();
}

static bool alike(const char *call, const int64_t *first, const int64_t *other, int rank) {
  if (other[ROWS] != first[ROWS])
    mix_fail_value("%s: .rows is %s on rank %d, %s on rank 0; give all ranks the same", call,
                   rows_name(other[ROWS]), rank, rows_name(first[ROWS]));
  else if (other[IS_DATASET] != first[IS_DATASET])
    mix_fail_value("%s: rank %d has %s, rank 0 %s; give all ranks the one or the other", call, rank,
                   other[IS_DATASET] ? "a data set" : "arrays", first[IS_DATASET] ? "a data set" : "arrays");
  return !mix_failed() && has_as_many_steps(call, first, other, rank);
}

/* The longest data decide. Unknown (-1) is longest. */
static void take_longest(mix_data_adapter *adapter, const int64_t *all) {
  int64_t longest = 0;
  bool unknown = false, continues = false;
  for (int r = 0; r < mix_rank_count(); r++, all += NUMBERS) {
    if (all[TARGET] > longest) longest = all[TARGET];
    unknown |= all[TARGET] < 0;
    continues |= all[CONTINUES] != 0;
  }
  if (adapter->batches) {
    mix_batches_extend(adapter->batches, longest);
    mix_data_adapter_set_target(adapter);
  } else if (!adapter->steps) {
    adapter->target = unknown ? -1 : longest;
  }
  adapter->continues = adapter->batches ? adapter->continues : continues;
}

bool mix_data_adapter_meet(mix_data_adapter *adapter, bool opened) {
  if (!mix_is_distributed()) return opened;
  const int ranks = mix_rank_count();
  const int64_t batches = adapter->batches ? mix_batches_count(adapter->batches) : adapter->target;
  const bool shared = adapter->batches && adapter->rows == MIX_SHARED;
  const int64_t own[NUMBERS] = {[OPENED] = opened && !mix_failed(),
                                [ROWS] = adapter->rows,
                                [IS_DATASET] = adapter->dataset != NULL,
                                [TARGET] = batches,
                                [CONTINUES] = adapter->continues,
                                [STEPS] = adapter->steps,
                                [DATA_ROWS] = shared ? mix_batches_rows(adapter->batches) : 0,
                                [BATCH_SIZE] = shared ? mix_batches_size(adapter->batches, 0) : 0};
  int64_t all[ranks * NUMBERS];
  if (!mix_gather_integers(adapter->call, NUMBERS, own, all)) return false;
  for (int r = 0; r < ranks; r++)
    if (!all[r * NUMBERS + OPENED]) return mix_ranks_succeed(adapter->call);
  for (int r = 1; r < ranks; r++)
    if (!alike(adapter->call, all, all + r * NUMBERS, r)) return false;
  if (adapter->rows == MIX_LOCAL) take_longest(adapter, all);
  return true;
}

/* ---- elements of each rank's own data set ---- */

static bool note_form(mix_data_adapter *adapter, mix_list *element) {
  if (adapter->no_rows) return true;
  mix_list *none = mix_list_new(0, NULL);
  for (int i = 0; none && i < mix_list_count(element); i++) {
    mix_tensor *tensor = mix_list_get(element, i);
    mix_shape shape = mix_tensor_shape(tensor);
    shape.dims[0] = 0;
    mix_list_append(none, mix_tensor_from("", mix_tensor_dtype(tensor), shape));
  }
  mix_list_set_structure(none, mix_list_structure(element));
  adapter->no_rows = mix_failed() ? NULL : mix_retain(none);
  return adapter->no_rows != NULL;
}

/* The same error on all ranks where one has none to give. */
static bool may_wait(mix_data_adapter *adapter, mix_list *own) {
  if (own) return note_form(adapter, own);
  if (!adapter->no_rows && !mix_failed())
    mix_fail_value("%s: the data set of this rank gave no batches; give each rank one at least",
                   adapter->call);
  return !mix_failed();
}

mix_list *mix_data_adapter_element_of_ranks(mix_data_adapter *adapter, mix_list *own) {
  enum { NONE, ELEMENT, FAILED };
  const int ranks = mix_rank_count();
  const bool good = may_wait(adapter, own);
  const int64_t has = !good ? FAILED : own ? ELEMENT : NONE;
  int64_t all[ranks];
  bool more = false;
  if (!mix_gather_integers(adapter->call, 1, &has, all)) return NULL;
  for (int r = 0; r < ranks; r++)
    if (all[r] == FAILED) return mix_ranks_succeed(adapter->call), NULL;
  for (int r = 0; r < ranks; r++) more |= all[r] == ELEMENT;
  adapter->waits = more && !own;
  return own ? own : more ? adapter->no_rows : NULL;
}
