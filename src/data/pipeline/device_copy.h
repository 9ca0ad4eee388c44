/* Data in the memory of the device in force. */
#pragma once

#include <mixtape/tensor.h>

/* Has the device memory of its own? */
bool mix_device_copies(void);
/* Finished tensors as a list of the same structure, whose memory is the device's; of a tensor that is in it
 * twice there is one copy. Scoped; NULL with the error recorded. */
mix_list *mix_device_copy(mix_list *tensors);
