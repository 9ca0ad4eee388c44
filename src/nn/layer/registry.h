/* Classes of layers that the user made known, for all calls or for one. */
#pragma once

#include <mixtape/layer.h>

/* "package>name" of a registered class, else the class's own name. Interned. */
const char *mix_registered_name(const mix_layer_class *layer_class);
/* Copies the class of that name. Names of the thread's custom layers come first, then those of the registry,
 * which registered_name (may be NULL) or class_name finds. */
bool mix_custom_layer_find(const char *class_name, const char *registered_name, mix_layer_class *found);
/* The thread's custom layers until they are set back: classes ended by NULL, borrowed. Returns the former. */
const mix_layer_class *const *mix_custom_layers_set(const mix_layer_class *const *classes);
