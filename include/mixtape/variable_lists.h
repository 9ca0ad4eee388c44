/* Lists of variables, such as mix_model_trainable_variables: accumulators of their shapes, and assignments to
 * all of them. TypeError if an item is no variable. All may be called in captured functions. */
#ifndef MIXTAPE_VARIABLE_LISTS_H
#define MIXTAPE_VARIABLE_LISTS_H

#include <mixtape/variable.h>

MIX_BEGIN_DECLARATIONS

/* A new list of new variables of zeros, which are not trainable, with the shapes and stored dtypes of the
 * others: accumulators of gradients. */
MIX_API mix_list *mix_variables_zeros_like(mix_list *variables);
/* Assigns zeros to each. */
MIX_API mix_status mix_variables_assign_zeros(mix_list *variables);
/* Adds value i, cast to the variable's stored dtype, to variable i; NULL adds nothing (mix_tape_gradient).
 * ValueError if the lists differ in length. */
MIX_API mix_status mix_variables_assign_add(mix_list *variables, mix_list *values);
/* A new list of their values in their stored dtypes. */
MIX_API mix_list *mix_variables_values(mix_list *variables);

MIX_END_DECLARATIONS
#endif
