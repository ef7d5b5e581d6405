/* The interface of libthimble_tf.so and libthimble_tf_hooks.so, besides thimble.h.
 *
 * TensorFlow always loads libthimble_tf.so, which needs only libc. It opens the hooks only if the
 * user asked for Thimble and TensorFlow is the version it was built for.
 */
#ifndef TF_PLUGIN_TF_PLUGIN_H_
#define TF_PLUGIN_TF_PLUGIN_H_

#include "allocator/thimble.h"

#ifdef __cplusplus
extern "C" {
#endif

#define THIMBLE_TF_CPU (-1)

/* The arena behind TensorFlow's logical device GPU:`device`, or behind CPU:0 (THIMBLE_TF_CPU), or
 * behind CPU:i (THIMBLE_TF_CPU - i). NULL until TensorFlow has made that device, and if Thimble
 * does not serve it. An arena lives until the process ends. In libthimble_tf.so.
 */
thimble_arena* thimble_tf_arena(int device);

/* Puts Thimble into TensorFlow, as TF_GPU_ALLOCATOR and THIMBLE_CONF say. Called once, by
 * libthimble_tf.so. In libthimble_tf_hooks.so, which also has the function below. */
void thimble_tf_install(void);
thimble_arena* thimble_tf_hooked_arena(int device);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TF_PLUGIN_TF_PLUGIN_H_ */
