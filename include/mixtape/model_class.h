/* Models of classes whose files have a class and its options in place of layers, such as those of KerasHub
 * (docs/manual/kerashub.md), and such classes of one's own. */
#ifndef MIXTAPE_MODEL_CLASS_H
#define MIXTAPE_MODEL_CLASS_H

#include <mixtape/model.h>

MIX_BEGIN_DECLARATIONS

/* A class of models. */
typedef struct mix_model_class {
  size_t size;        /* sizeof(mix_model_class) */
  const char *name;   /* "Encoder" */
  const char *module; /* of its class in Python, which files name; NULL: none */
  /* Required: makes a functional or sequential model of the options in a config. Weights are read in the
   * order of its layers, each under the name of its class. The entries name, trainable and dtype (the policy
   * of the model itself, not of its layers) are set afterwards. Layers and models that the config holds:
   * mix_config_get_layer. NULL with an error, or where one is pending. */
  mix_model *(*from_config)(mix_config *config);
} mix_model_class;
/* Keras's register_keras_serializable(package, name) of a subclass of Model: files and texts that have
 * "package>name" become models by the class (mix_model_load, mix_model_from_json), and are written again with
 * the config that they came from. package NULL: "Custom"; name NULL: that of the class. The class is copied;
 * its function must outlive its use. A second class of one name replaces the first, also one of KerasHub that
 * the library has. Any thread may register; mix_shutdown forgets all. ValueError without a name or a
 * function, and for names with '>'. */
MIX_API mix_status mix_register_model(const char *package, const char *name,
                                      const mix_model_class *model_class);

/* The layer, or the model as a layer, whose object ("class_name", "config") a config has under the key;
 * borrowed. NULL without an error if there is none, or null. */
MIX_API mix_layer *mix_config_get_layer(mix_config *config, const char *key);

MIX_END_DECLARATIONS
#endif
