/* Batches of any size for plans of a few sizes: rows of arguments padded, results cut and put together. */
#pragma once

#include <mixtape/object.h>

/* The rows of all arguments of `function` but scalars. -1 with an error that names the argument. */
int64_t mix_batch_rows(mix_list *arguments, const char *function);
/* Rows [first, first + count) of the arguments, then copies of the last one up to `padded` rows. Scoped, in
 * the arguments' memory where nothing is added and kernels can read it there. NULL with the error
 * recorded. */
mix_list *mix_batch_part(mix_list *arguments, int64_t first, int64_t count, int64_t padded);
/* The first rows of results, in their memory. Scoped; NULL with the error recorded. */
mix_list *mix_batch_cut(mix_list *results, int64_t rows);
/* Copies the first `count` rows of results to rows first, ... of `*all`, a list of tensors of `rows` rows,
 * made on the first call; the caller has the reference. False with the error recorded. */
bool mix_batch_collect(mix_list **all, mix_list *results, int64_t first, int64_t count, int64_t rows);
