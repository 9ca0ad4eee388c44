/* The classes of models that the user made known. */
#pragma once

#include <mixtape/model_class.h>

/* Copies the class of that registered name, "package>name"; without a package in the name, the latest of that
 * class name. False without an error: there is none. */
bool mix_model_class_find(const char *class_name, const char *registered_name, mix_model_class *found);
